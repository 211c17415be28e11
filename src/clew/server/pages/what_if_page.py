"""What would be different in a run: a form for suppositions, the totals that they move, and the rows they reach.

Also what a total hangs on: the values of reference data that move it most.
"""

from collections.abc import Callable, Mapping

from clew.change.comparison import DifferingRow
from clew.change.sensitivity import ReferenceEffect, Sensitivity
from clew.change.what_if import WhatIf
from clew.deferred import dataclass
from clew.diagnostics import UserError, render
from clew.lang.types import Kind
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words
from clew.server.pages.compare_page import number_text

WHAT_IF_ROWS = 50
_WORDS = {"changed": "changed", "only_in_a": "gone", "only_in_b": "new"}
_STYLES = {"changed": "updated", "only_in_a": "deleted", "only_in_b": "created"}


@dataclass(frozen=True, slots=True)
class WhatIfQuery:
    """What is supposed to be different."""

    sets: tuple[str, ...] = ()
    drops: tuple[str, ...] = ()
    expressions: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    """NAME=VALUE of each."""
    where: str = ""
    output: int | None = None
    sort: str = ""
    draft: str = ""
    """What may be set, to be edited before it is asked."""
    sensitivity: str = ""
    """The column whose total is asked about, if that is the question."""

    @property
    def is_asked(self) -> bool:
        """Whether anything is supposed."""
        return bool(self.sets or self.drops or self.expressions or self.parameters)

    @property
    def values(self) -> Mapping[str, str]:
        """The values of parameters by name."""
        return {name.strip(): value.strip() for name, _, value in (each.partition("=") for each in self.parameters)}


@dataclass(frozen=True, slots=True)
class SupposedRow:
    """A row that would differ."""

    what: str
    style: str
    key: str
    address: str | None
    changes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class ShownEffect:
    """A value of reference data, and how the total moves with it."""

    dataset: str
    key: str
    column: str
    value: str
    moved_to: str
    difference: str
    slope: str
    rows: str


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    """The question and its answer."""

    run_id: str
    run_address: str
    title: str
    period: str
    settings: tuple[str, ...]
    drops: tuple[str, ...]
    expressions: tuple[str, ...]
    parameters: tuple[str, ...]
    where: str
    outputs: tuple[tuple[int, str, bool], ...]
    has_parameters: bool
    datasets: str
    is_asked: bool
    is_draft: bool
    """Whether the form is filled in and waits to be edited."""
    summary: str
    totals: tuple[tuple[str, str, str, str], ...]
    rows: tuple[SupposedRow, ...]
    has_more: bool
    numbers: tuple[tuple[str, bool], ...]
    """The columns whose totals can be asked about."""
    effects: tuple[ShownEffect, ...]
    sensed: str
    """How many values were tried; empty if that was not asked."""
    problem: str | None


Ask = Callable[[WhatIfQuery], WhatIf]
"""Returns the answer. Raises UserError if the question is wrong."""
AskWhatItHangsOn = Callable[[WhatIfQuery], Sensitivity]


def what_if_page(trace: SeenTrace, query: WhatIfQuery, ask: Ask, sense: AskWhatItHangsOn) -> WhatIfPage:
    """The form, and the answer if anything is supposed, or if it was asked what a total hangs on."""
    answer, sensed, problem = None, None, None
    try:
        if query.is_asked:
            answer = ask(query)
        elif query.sensitivity:
            sensed = sense(query)
    except UserError as error:
        problem = "\n".join(render(each, lambda _file: query.where) for each in error.diagnostics)
    outputs = trace.plan.outputs
    chosen = query.output if query.output is not None else (outputs[-1].seq if outputs else None)
    known = trace.columns.columns(trace.run.columns(trace.run.last))
    exact = [name for name, type_ in known if type_.kind in {Kind.INTEGER, Kind.DECIMAL}]
    moved = [each for each in answer.columns if each.has_totals and each.difference] if answer else []
    return WhatIfPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=words.isolated(trace.plan.title),
        period=trace.period,
        settings=(*query.sets, query.draft),
        drops=(*query.drops, ""),
        expressions=(*query.expressions, ""),
        parameters=(*query.parameters, ""),
        where=query.where,
        outputs=tuple((step.seq, step.name, step.seq == chosen) for step in outputs),
        has_parameters=bool(trace.plan.extensions.parameters),
        datasets=", ".join(dict.fromkeys(use.name for use in trace.plan.datasets_read)),
        is_asked=answer is not None,
        is_draft=bool(query.draft) and not query.is_asked,
        summary=_summary(answer) if answer else "",
        totals=tuple(
            (
                each.name,
                number_text(each.total_a),
                number_text(each.total_b),
                number_text(each.difference, sign="+"),
            )
            for each in moved
        ),
        rows=tuple(_row(answer, row) for row in answer.rows) if answer else (),
        has_more=answer.has_more if answer else False,
        numbers=tuple((name, name == query.sensitivity) for name in exact),
        effects=tuple(_effect(each) for each in sensed.effects) if sensed else (),
        sensed=_sensed(sensed) if sensed else "",
        problem=problem,
    )


def _sensed(found: Sensitivity) -> str:
    """What was tried, and what was not."""
    told = f"{words.counted(found.tried, 'value')} tried, each one percent larger"
    left = f"; {found.not_tried:,} not tried, which fewer rows have looked up" if found.not_tried else ""
    unread = f"; {found.not_looked_up:,} that no row of the total has looked up" if found.not_looked_up else ""
    return f"{told}{left}{unread}"


def _effect(each: ReferenceEffect) -> ShownEffect:
    return ShownEffect(
        dataset=each.dataset,
        key=", ".join(f"{name} {words.cell(value).text}" for name, value in each.key.items()) or "row",
        column=each.column,
        value=number_text(each.value),
        moved_to=number_text(each.moved_to),
        difference=number_text(each.difference, sign="+"),
        slope=f"{each.slope:+,.6g}",
        rows=f"{each.rows:,}",
    )


def _summary(found: WhatIf) -> str:
    return f"{words.counted(found.changed, 'row')} would change, {found.gone:,} would go, {found.new:,} would come"


def _row(found: WhatIf, row: DifferingRow) -> SupposedRow:
    return SupposedRow(
        what=_WORDS[row.change],
        style=_STYLES[row.change],
        key=", ".join(f"{name} {words.cell(value).text}" for name, value in row.key.items()) or "row",
        address=None if row.row_a is None else addresses.row(found.run_id, row.row_a),
        changes=tuple(
            (
                name,
                "" if row.change == "only_in_b" else words.cell(each.old).text,
                "" if row.change == "only_in_a" else words.cell(each.new).text,
            )
            for name, each in row.columns.items()
        ),
    )
