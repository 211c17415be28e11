"""The values of a column: the most frequent ones, and from where to where they go. Each leads to its rows.

Also what the field for conditions is told while someone types.
"""

from collections.abc import Mapping

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.lang.completion import completions
from clew.lang.narrowing import between, literal_of, only, within, without
from clew.lang.types import Kind
from clew.plan.columns import SYSTEM_COLUMNS
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words
from clew.server.pages.rows_page import ORDERED, RowsQuery
from clew.server.pages.words import ValueCell
from clew.trace.column_values import ColumnValues

MOST_VALUES = 20
_BAR = 100


@dataclass(frozen=True, slots=True)
class ColumnQuery:
    """Which column is asked about, of which rows, and the range that was typed."""

    name: str
    rows: RowsQuery
    least: str = ""
    greatest: str = ""


@dataclass(frozen=True, slots=True)
class FrequentValue:
    """A value with its number of rows, and the addresses of the rows that have it and of the others."""

    cell: ValueCell
    rows: str
    length: int
    """Of its bar, in hundredths of that of the most frequent value."""
    only_address: str | None
    without_address: str | None


@dataclass(frozen=True, slots=True)
class ColumnPage:
    """The values of a column."""

    run_id: str
    run_address: str
    rows_address: str
    action: str
    title: str
    period: str
    name: str
    type: str
    where: str
    told: str
    note: str
    """What was not looked at, in words; empty if that is nothing."""
    values: tuple[FrequentValue, ...]
    has_more: bool
    least: ValueCell | None
    greatest: ValueCell | None
    is_ordered: bool
    range_kind: str
    """The kind of field for an end of a range: number or date."""
    hidden_fields: tuple[tuple[str, str], ...]


def column_page(trace: SeenTrace, query: ColumnQuery, found: ColumnValues) -> ColumnPage:
    """The page of the values of a column."""
    most = max((count for _, count in found.top), default=1)
    present = [words.cell(each) if each is not None else None for each in (found.least, found.greatest)]
    missing = f"{words.counted(found.nulls, 'row')} without one" if found.nulls else ""
    return ColumnPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        rows_address=_rows(trace, query, query.rows.where),
        action=f"{addresses.run(trace.run_id)}/values",
        title=words.isolated(trace.plan.title),
        period=trace.period,
        name=query.name,
        type=str(found.type),
        where=query.rows.where,
        told=words.joined(words.counted(found.distinct, "value"), f"in {words.counted(found.rows, 'row')}", missing),
        note=_note(query, found),
        values=tuple(
            FrequentValue(
                cell=words.cell(value),
                rows=f"{count:,}",
                length=max(1, round(_BAR * count / most)),
                only_address=_narrowed(trace, query, only(query.name, literal)) if literal is not None else None,
                without_address=_narrowed(trace, query, without(query.name, literal)) if literal is not None else None,
            )
            for value, count in found.top
            for literal in [literal_of(value)]
        ),
        has_more=found.distinct + bool(found.nulls) > len(found.top),
        least=present[0],
        greatest=present[1],
        is_ordered=found.type.kind in ORDERED and found.least is not None,
        range_kind="date" if found.type.kind is Kind.DATE else "number",
        hidden_fields=tuple(
            (name, text)
            for name, text in (
                ("column", query.name),
                ("at", str(found.at)),
                ("where", query.rows.where),
                ("sort", query.rows.sort),
                ("direction", "descending" if query.rows.descending else ""),
                ("changed", "1" if query.rows.changed else ""),
                *(("columns", name) for name in query.rows.columns),
            )
            if text
        ),
    )


def _note(query: ColumnQuery, found: ColumnValues) -> str:
    first = "" if found.is_whole else f"These are the values of the first {found.rows:,} rows that match."
    touched = "Counted are all rows after the step, not only those that it has touched." if query.rows.changed else ""
    return f"{first} {touched}".strip()


def range_address(trace: SeenTrace, query: ColumnQuery, kind: Kind) -> str:
    """The rows whose values lie in the range that was typed."""
    ends = [f'DATE("{end}")' if end and kind is Kind.DATE else end for end in (query.least, query.greatest)]
    clause = between(query.name, *ends)
    return _narrowed(trace, query, clause) if clause else _rows(trace, query, query.rows.where)


def told_while_typing(trace: SeenTrace, typed: str, cursor: int | None, at: int | None) -> Mapping[str, object]:
    """Why a condition is not valid yet, and where; and what can stand at the cursor. From the checker that filters."""
    seq = trace.run.checked_step(at)
    types = {name: type_ for name, type_ in trace.no_rows(seq).columns if trace.columns.is_clear(name)}
    columns = {**{name: type_ for name, type_ in types.items() if name not in SYSTEM_COLUMNS}, **SYSTEM_COLUMNS}
    offered = completions(typed[: len(typed) if cursor is None else cursor], columns)
    problem: dict[str, object] | None = None
    if typed.strip():
        try:
            trace.require_question(typed)
            trace.columns_in(typed, seq)
        except UserError as error:
            first = error.diagnostics[0]
            problem = {"message": first.message, "hint": first.hint or ""}
            if first.span is not None:
                problem |= {"line": first.span.line, "column": first.span.column, "length": first.span.length}
    return {"problem": problem, "completions": offered.to_json()}


def _narrowed(trace: SeenTrace, query: ColumnQuery, clause: str) -> str:
    return _rows(trace, query, within(query.rows.where) + clause)


def _rows(trace: SeenTrace, query: ColumnQuery, where: str) -> str:
    return addresses.rows(
        trace.run_id,
        at=query.rows.at,
        where=where,
        sort=query.rows.sort,
        direction="descending" if query.rows.descending else "",
        columns=list(query.rows.columns),
        changed="1" if query.rows.changed else "",
    )
