"""Why a value changed: a waterfall from one run to the other, whose bars lead to rows."""

from collections.abc import Callable, Sequence
from decimal import Decimal

from clew.change.bridge import BridgeCause, BridgeMode, ChangeBridge
from clew.deferred import dataclass
from clew.diagnostics import UserError, render
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words
from clew.server.pages.drawing.bridge_chart import BridgePicture, bridge_picture

_WIDTH = 1000
"""Of the drawing, in its own units."""
_MOST_ROWS = 10


@dataclass(frozen=True, slots=True)
class WhyChangedQuery:
    """The other run, the column, and which rows."""

    other: str = ""
    column: str = ""
    where: str = ""
    output: int | None = None
    mode: BridgeMode = "shapley"


@dataclass(frozen=True, slots=True)
class CauseLine:
    """Something that belongs to a cause, and where its history is."""

    text: str
    address: str | None = None


@dataclass(frozen=True, slots=True)
class WaterfallBar:
    """A bar of the drawing, and what is behind it."""

    title: str
    amount: str
    alone: str
    style: str
    x: int
    width: int
    lines: tuple[CauseLine, ...]
    address: str
    """The rows that the cause is made of, or moves."""


@dataclass(frozen=True, slots=True)
class WhyChangedPage:
    """The question and its answer."""

    run_id: str
    run_address: str
    title: str
    period: str
    others: tuple[tuple[str, str, bool], ...]
    columns: tuple[tuple[str, bool], ...]
    where: str
    outputs: tuple[tuple[int, str, bool], ...]
    is_sequential: bool
    is_asked: bool
    value_a: str
    value_b: str
    bars: tuple[WaterfallBar, ...]
    picture: BridgePicture | None
    remarks: tuple[str, ...]
    problem: str | None


Ask = Callable[[WhyChangedQuery], ChangeBridge]
"""Returns the answer. Raises UserError if the question is wrong."""


def why_changed_page(
    trace: SeenTrace, others: Sequence[tuple[str, str]], query: WhyChangedQuery, ask: Ask
) -> WhyChangedPage:
    """The form, and the answer if there is a question. `others` are ids and names of runs of the project."""
    answer, problem = None, None
    if query.other and query.column:
        try:
            answer = ask(query)
        except UserError as error:
            problem = "\n".join(render(each, lambda _file: query.where) for each in error.diagnostics)
    outputs = trace.plan.outputs
    chosen = query.output if query.output is not None else (outputs[-1].seq if outputs else None)
    columns = [name for name, type_ in trace.columns.columns(trace.run.columns(trace.run.last)) if type_.is_numeric]
    return WhyChangedPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=words.isolated(trace.plan.title),
        period=trace.period,
        others=tuple((run_id, name, run_id == query.other) for run_id, name in others),
        columns=tuple((name, name == query.column) for name in columns),
        where=query.where,
        outputs=tuple((step.seq, step.name, step.seq == chosen) for step in outputs),
        is_sequential=query.mode == "sequential",
        is_asked=answer is not None,
        value_a=f"{answer.value_a:,f}" if answer else "",
        value_b=f"{answer.value_b:,f}" if answer else "",
        bars=_bars(answer) if answer else (),
        picture=_picture(answer) if answer else None,
        remarks=(*answer.notes, *(f"Without effect: {each}." for each in answer.without_effect)) if answer else (),
        problem=problem,
    )


def _picture(found: ChangeBridge) -> BridgePicture:
    return bridge_picture(found.value_a, [(cause.title, cause.amount) for cause in found.causes], found.value_b)


def _bars(found: ChangeBridge) -> tuple[WaterfallBar, ...]:
    """Each bar starts where the one before it ends."""
    places, at = list[tuple[Decimal, Decimal]](), found.value_a
    for cause in found.causes:
        places.append((at, at + cause.amount))
        at += cause.amount
    ends = [each for place in places for each in place] or [found.value_a]
    low, high = min(ends), max(ends)
    unit = (high - low) or Decimal(1)
    bars = list[WaterfallBar]()
    for cause, (start, end) in zip(found.causes, places, strict=True):
        first, last = (int((each - low) * _WIDTH / unit) for each in (min(start, end), max(start, end)))
        bars.append(
            WaterfallBar(
                title=cause.title,
                amount=f"{cause.amount:+,f}",
                alone=f"{cause.alone:+,f}" if cause.interaction else "",
                style="created" if cause.amount >= 0 else "deleted",
                x=first,
                width=max(2, last - first),
                lines=tuple(_lines(found, cause)),
                address=_address(found, cause),
            )
        )
    return tuple(bars)


def _address(found: ChangeBridge, cause: BridgeCause) -> str:
    """The rows of a cause: those of the input that differ, those that an operation changed, or all that moved."""
    if cause.kind == "input":
        return addresses.compare(found.run_a, other=found.run_b, at=0)
    if cause.seq_a is not None and cause.seq_b is None:
        return addresses.rows(found.run_a, at=cause.seq_a, changed="1")
    if cause.seq_b is not None and cause.seq_a is None:
        return addresses.rows(found.run_b, at=cause.seq_b, changed="1")
    if cause.seq_a is not None:
        return addresses.compare(found.run_a, other=found.run_b, at=cause.seq_a)
    return addresses.compare(
        found.run_a,
        other=found.run_b,
        where=found.where,
        output=None if found.point_a.output is None else found.point_a.seq,
        sort=found.column,
    )


def _lines(bridge: ChangeBridge, cause: BridgeCause) -> list[CauseLine]:
    found = [CauseLine(each) for each in cause.details]
    for row in cause.rows[:_MOST_ROWS]:
        key = ", ".join(f"{name} {words.cell(value).text}" for name, value in row.key.items()) or "row"
        changes = ", ".join(
            f"{name} {words.cell(row.old.get(name)).text} → {words.cell(value).text}" for name, value in row.new.items()
        )
        text = f"{key} {row.change}" + (f": {changes}" if row.change == "changed" else "")
        run_id, row_id = (bridge.run_b, row.row_b) if row.row_b is not None else (bridge.run_a, row.row_a)
        found.append(CauseLine(text, None if row_id is None else addresses.row(run_id, row_id)))
    if cause.row_count > _MOST_ROWS:
        found.append(CauseLine(f"{cause.row_count - _MOST_ROWS:,} more rows"))
    return found
