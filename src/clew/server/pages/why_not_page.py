"""Why rows are not in an output."""

from collections.abc import Callable

from clew.deferred import dataclass
from clew.diagnostics import UserError, render
from clew.explain.outline import DELETED_BEFORE, kept_text, never_loaded_lines, not_written_text, shown, source_text
from clew.explain.tree import Decision, Deleted
from clew.explain.why_not import DeletedBefore, InOutput, LeftOut, MadeLater, NotWritten, Whereabouts, WhyNot
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words


@dataclass(frozen=True, slots=True)
class WhyNotQuery:
    """A condition on the rows as loaded, and an output; the default is the last one."""

    where: str
    output: int | None = None


@dataclass(frozen=True, slots=True)
class ShownReason:
    """A condition, its result for the row, and the values that decided it."""

    condition: str
    was: str
    because: str


@dataclass(frozen=True, slots=True)
class Fate:
    """What happened to a row."""

    label: str
    address: str
    source: str | None
    verdict: str
    is_in: bool
    selector: str | None
    reasons: tuple[ShownReason, ...]

    @property
    def conditions(self) -> tuple[str, ...]:
        """The conditions that decided."""
        return tuple(reason.condition for reason in self.reasons)


@dataclass(frozen=True, slots=True)
class WhyNotPage:
    """The question and its answer."""

    run_id: str
    run_address: str
    title: str
    period: str
    where: str
    outputs: tuple[tuple[int, str, bool], ...]
    """Seq, name, and whether it is selected."""
    dataset: str
    is_asked: bool
    fates: tuple[Fate, ...]
    has_more: bool
    never_loaded: tuple[str, ...]
    """Where the run looked for a row that it did not find, and where such a row exists."""
    problem: str | None
    example: str


Ask = Callable[[WhyNotQuery], WhyNot]
"""Returns the answer. Raises UserError if the condition or the output is wrong."""


def why_not_page(trace: SeenTrace, query: WhyNotQuery, ask: Ask) -> WhyNotPage:
    """The form, and the answer if a condition was given."""
    answer, problem = None, None
    if query.where:
        try:
            answer = ask(query)
        except UserError as error:
            problem = "\n".join(render(each, lambda _file: query.where) for each in error.diagnostics)
    outputs = trace.plan.outputs
    chosen = query.output if query.output is not None else (outputs[-1].seq if outputs else None)
    key = next(iter(trace.plan.input.names), ())
    return WhyNotPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=words.isolated(trace.plan.title),
        period=trace.period,
        where=query.where,
        outputs=tuple((step.seq, step.name, step.seq == chosen) for step in outputs),
        dataset=trace.plan.input.name,
        is_asked=answer is not None,
        fates=tuple(_fate(trace, row) for row in answer.rows) if answer else (),
        has_more=answer.has_more if answer else False,
        never_loaded=never_loaded_lines(answer.never_loaded) if answer and answer.never_loaded else (),
        problem=problem,
        example=f'{key[0]} = "…"' if key else 'column = "…"',
    )


def _fate(trace: SeenTrace, row: Whereabouts) -> Fate:
    verdict, selector, reasons = _verdict(row)
    return Fate(
        label=row.label or row.row_id,
        address=addresses.row(trace.run_id, row.row_id),
        source=source_text(row.source) if row.source else None,
        verdict=verdict,
        is_in=isinstance(row.verdict, InOutput),
        selector=selector,
        reasons=reasons,
    )


def _verdict(row: Whereabouts) -> tuple[str, str | None, tuple[ShownReason, ...]]:
    match row.verdict:
        case Deleted() as deleted:
            text = f"deleted in step {deleted.step.seq} “{deleted.step.name}”{kept_text(deleted)}"
            return text, deleted.resolved or deleted.selector, tuple(map(_reason, deleted.decisions))
        case LeftOut() as left:
            return (
                "left out by the output’s selector",
                left.resolved or left.selector,
                tuple(map(_reason, left.decisions)),
            )
        case NotWritten() as unwritten:
            return not_written_text(unwritten), None, ()
        case DeletedBefore():
            return DELETED_BEFORE, None, ()
        case MadeLater():
            return "created after the output was written", None, ()
        case InOutput():
            return "in the output", None, ()


def _reason(each: Decision) -> ShownReason:
    because = ", ".join(f"{name} = {shown(value)}" for name, value in each.values.items())
    return ShownReason(each.condition, shown(each.value), because)
