"""Two runs side by side: totals, and the rows that differ, each of which leads to its history."""

from collections.abc import Callable, Sequence

from clew.change.comparison import Amount, ColumnTotals, DifferingRow, RunComparison
from clew.deferred import dataclass
from clew.diagnostics import UserError, render
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words

PAGE_ROWS = 50
_WORDS = {"changed": "changed", "only_in_a": "only in the first", "only_in_b": "only in the second"}
_STYLES = {"changed": "updated", "only_in_a": "deleted", "only_in_b": "created"}


@dataclass(frozen=True, slots=True)
class CompareQuery:
    """The other run, and which rows."""

    other: str = ""
    where: str = ""
    sort: str = ""
    output: int | None = None
    offset: int = 0
    at: int | None = None
    """The working dataset after a step, instead of an output."""


@dataclass(frozen=True, slots=True)
class OtherRun:
    """A run to compare with."""

    run_id: str
    name: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class ComparedTotal:
    """A total in both runs."""

    name: str
    first: str
    second: str
    difference: str
    changed: str
    sort_address: str


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A row that differs, with the addresses of its histories."""

    what: str
    style: str
    key: str
    address_a: str | None
    address_b: str | None
    changes: tuple["ComparedValue", ...]


@dataclass(frozen=True, slots=True)
class ComparedValue:
    """A value that differs, with the addresses of its explanations."""

    column: str
    old: str
    new: str
    why_a: str | None
    why_b: str | None


@dataclass(frozen=True, slots=True)
class ComparePage:
    """The question and its answer."""

    run_id: str
    run_address: str
    title: str
    period: str
    others: tuple[OtherRun, ...]
    outputs: tuple[tuple[int, str, bool], ...]
    at: int | None
    where: str
    sort: str
    is_asked: bool
    summary: str
    totals: tuple[ComparedTotal, ...]
    rows: tuple[ComparedRow, ...]
    remarks: tuple[str, ...]
    next_address: str | None
    problem: str | None
    files: tuple[tuple[str, str], ...] = ()
    """The formats in which the rows that differ can be downloaded, with addresses."""


Ask = Callable[[CompareQuery], RunComparison]
"""Returns the answer. Raises UserError if the question is wrong."""


def compare_page(trace: SeenTrace, others: Sequence[tuple[str, str]], query: CompareQuery, ask: Ask) -> ComparePage:
    """The form, and the answer if another run was chosen. `others` are ids and names of runs of the project."""
    answer, problem = None, None
    if query.other:
        try:
            answer = ask(query)
        except UserError as error:
            problem = "\n".join(render(each, lambda _file: query.where) for each in error.diagnostics)
    outputs = trace.plan.outputs
    chosen = query.output if query.output is not None else (outputs[-1].seq if outputs else None)
    return ComparePage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=words.isolated(trace.plan.title),
        period=trace.period,
        others=tuple(OtherRun(run_id, name, run_id == query.other) for run_id, name in others),
        outputs=tuple((step.seq, step.name, step.seq == chosen) for step in outputs),
        at=query.at,
        where=query.where,
        sort=query.sort,
        is_asked=answer is not None,
        summary=_summary(answer, query.at) if answer else "",
        totals=tuple(_total(trace.run_id, query, each) for each in answer.columns if each.has_totals) if answer else (),
        rows=tuple(_row(answer, row) for row in answer.rows) if answer else (),
        remarks=_remarks(answer) if answer else (),
        next_address=_address(trace.run_id, query, offset=answer.next_offset) if answer and answer.has_more else None,
        problem=problem,
        files=tuple(
            (
                name,
                addresses.comparison_file(
                    trace.run_id, format_, other=query.other, output=query.output, at=query.at, where=query.where
                ),
            )
            for format_, name in words.FORMATS
        ),
    )


def _address(run_id: str, query: CompareQuery, *, sort: str | None = None, offset: int | None = None) -> str:
    return addresses.compare(
        run_id,
        other=query.other,
        where=query.where,
        output=query.output,
        at=query.at,
        sort=query.sort if sort is None else sort,
        offset=offset,
    )


def _summary(found: RunComparison, at: int | None) -> str:
    counts = found.counts
    place = "" if at is None else "As loaded: " if at == 0 else f'After step {at} "{found.point_a.name}": '
    return (
        f"{place}{counts.changed:,} changed, {counts.only_in_a:,} only in the first, "
        f"{counts.only_in_b:,} only in the second, {counts.same:,} the same"
    )


def _total(run_id: str, query: CompareQuery, column: ColumnTotals) -> ComparedTotal:
    return ComparedTotal(
        name=column.name,
        first=number_text(column.total_a),
        second=number_text(column.total_b),
        difference=number_text(column.difference, sign="+"),
        changed=f"{column.changed:,}",
        sort_address=_address(run_id, query, sort=column.name),
    )


def number_text(value: Amount | None, sign: str = "") -> str:
    """An amount as pages show it."""
    if value is None:
        return ""
    kind = "g" if isinstance(value, float) else "f"
    return format(value, f"{sign if value else ''},{kind}")


def _row(found: RunComparison, row: DifferingRow) -> ComparedRow:
    return ComparedRow(
        what=_WORDS[row.change],
        style=_STYLES[row.change],
        key=", ".join(f"{name} {words.cell(value).text}" for name, value in row.key.items()) or "row",
        address_a=None if row.row_a is None else addresses.row(found.run_a, row.row_a),
        address_b=None if row.row_b is None else addresses.row(found.run_b, row.row_b),
        changes=tuple(
            ComparedValue(
                name,
                "" if row.change == "only_in_b" else words.cell(each.old).text,
                "" if row.change == "only_in_a" else words.cell(each.new).text,
                _why(found.run_a, row.row_a, name, found.point_a.seq),
                _why(found.run_b, row.row_b, name, found.point_b.seq),
            )
            for name, each in row.columns.items()
        ),
    )


def _why(run_id: str, row_id: str | None, column: str, seq: int) -> str | None:
    return None if row_id is None else addresses.explanation(run_id, row_id, column, at=seq)


def _remarks(found: RunComparison) -> tuple[str, ...]:
    sides = ((found.columns_only_in_a, "first"), (found.columns_only_in_b, "second"))
    return (
        *found.notes,
        *(f"Only the {which} run has {', '.join(names)}." for names, which in sides if names),
        *(f"{each.column} is not compared: {each.because}." for each in found.not_compared),
    )
