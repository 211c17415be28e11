"""What would be different in a run: a form for suppositions, the totals that they move, and the rows they reach."""

from collections.abc import Callable

from clew.change.comparison import DifferingRow
from clew.change.what_if import WhatIf
from clew.deferred import dataclass
from clew.diagnostics import UserError, render
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
    sort: str = ""
    draft: str = ""
    """What may be set, to be edited before it is asked."""

    @property
    def is_asked(self) -> bool:
        """Whether anything is supposed."""
        return bool(self.sets or self.drops or self.expressions)


@dataclass(frozen=True, slots=True)
class SupposedRow:
    """A row that would differ."""

    what: str
    style: str
    key: str
    address: str | None
    changes: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class WhatIfPage:
    """The question and its answer."""

    run_id: str
    run_address: str
    title: str
    period: str
    setting: str
    dropped: str
    expression: str
    datasets: str
    is_asked: bool
    is_draft: bool
    """Whether the form is filled in and waits to be edited."""
    summary: str
    totals: tuple[tuple[str, str, str, str], ...]
    rows: tuple[SupposedRow, ...]
    has_more: bool
    problem: str | None


Ask = Callable[[WhatIfQuery], WhatIf]
"""Returns the answer. Raises UserError if the question is wrong."""


def what_if_page(trace: SeenTrace, query: WhatIfQuery, ask: Ask) -> WhatIfPage:
    """The form, and the answer if anything is supposed."""
    answer, problem = None, None
    if query.is_asked:
        try:
            answer = ask(query)
        except UserError as error:
            problem = "\n".join(render(each, lambda _file: None) for each in error.diagnostics)
    moved = [each for each in answer.columns if each.has_totals and each.difference] if answer else []
    return WhatIfPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=trace.plan.title,
        period=trace.period,
        setting=next(iter(query.sets), query.draft),
        dropped=next(iter(query.drops), ""),
        expression=next(iter(query.expressions), ""),
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
        problem=problem,
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
