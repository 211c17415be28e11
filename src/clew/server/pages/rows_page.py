"""The working dataset after a step: filtered and sorted, with the step's changes marked."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics import UserError, render
from clew.lang.narrowing import literal_of, within
from clew.lang.text_form import name_text
from clew.lang.types import Kind
from clew.plan.operations import CreatingStep
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words
from clew.server.pages.row_page import Stepper, stepper
from clew.server.pages.words import ValueCell
from clew.trace.records import RowValues
from clew.trace.results import FoundRow, FoundRows
from clew.trace.row_sets import Order

PAGE = 50
_LONGEST_TRAIL = 40
_SYSTEM = frozenset({"_period", "_labels", "_deleted"})
_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
ORDERED = _NUMBERS | {Kind.DATE}
"""Columns for which a range says something to people."""


@dataclass(frozen=True, slots=True)
class RowsQuery:
    """What the page shows."""

    at: int | None = None
    where: str = ""
    sort: str = ""
    descending: bool = False
    columns: tuple[str, ...] = ()
    """If empty, all data columns are shown."""
    after: str = ""
    """The last row of the previous page, if rows are not sorted."""
    offset: int = 0
    """The number of rows before the page."""
    trail: tuple[str, ...] = ()
    """The last rows of the pages before the previous one, if rows are not sorted: the way back."""
    changed: bool = False
    """Whether only the rows are shown that the step created, changed or deleted, in no other order than theirs."""


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column in the header of the table."""

    name: str
    type: str
    is_number: bool
    sorted: Literal["ascending", "descending", "none"]
    sort_address: str | None
    """None where rows come in no other order than theirs."""
    values_address: str | None
    """Which values it has; None where the caller does not see it as it is, and may not filter by it."""
    written: str
    """Its name as conditions write it."""
    is_ordered: bool
    """Whether its values are greater and less, and not only other ones."""


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A value, its old value if the step changed it, and the address of its explanation."""

    cell: ValueCell
    old: ValueCell | None
    address: str
    is_number: bool
    """Whether the column has numbers, so that its NULLs stand where they do."""
    literal: str | None
    """The value as conditions write it; None where rows cannot be filtered by it."""


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of the table."""

    row_id: str
    short_id: str
    """The end of the id, as long as tells it from the others of the page."""
    address: str
    change: Literal["created", "updated", "deleted"] | None
    """What the step did to it."""
    is_deleted: bool
    cells: tuple[ShownCell, ...]


@dataclass(frozen=True, slots=True)
class RowsPage:
    """A page of rows."""

    run_id: str
    run_address: str
    title: str
    period: str
    query: RowsQuery
    stepper: Stepper
    column_fields: list[tuple[str, str]]
    """The chosen columns, as fields for forms."""
    all_columns: tuple[tuple[str, bool], ...]
    """Every column and whether it is shown."""
    columns: tuple[ShownColumn, ...]
    rows: tuple[ShownRow, ...]
    example: str
    """An example of a condition."""
    narrowing: str
    """What stands before a condition that narrows the present one down."""
    check_address: str
    """Where a condition is checked while it is typed."""
    problem: str | None
    """Why the condition is not valid, with the position of the error."""
    told: str
    """Which rows of how many these are."""
    hidden: int
    """How many columns are not shown since others were chosen."""
    all_columns_address: str
    first: str | None
    """The address of the first page, unless this is the first page."""
    previous: str | None
    following: str | None
    everything: str | None
    """The address of all rows, where only those are shown that the step changed."""
    files: tuple[tuple[str, str], ...]
    """The formats in which all of these rows can be downloaded, with addresses."""


def find_rows(trace: SeenTrace, query: RowsQuery) -> FoundRows:
    """The rows of a page. Raises UserError if the condition, the column or the step is wrong."""
    where = query.where.strip() or None
    if query.changed:
        return trace.touched(trace.run.checked_step(query.at), PAGE, query.after or None, where)
    if query.sort:
        order = Order(query.sort, descending=query.descending)
        return trace.ordered(where, order, query.at, limit=PAGE, offset=query.offset)
    return trace.search(where, query.at, PAGE, query.after or None)


def rows_page(trace: SeenTrace, query: RowsQuery) -> RowsPage:
    """A page of the working dataset after a step."""
    at = trace.run.checked_step(query.at)
    problem = None
    try:
        found = find_rows(trace, query)
    except UserError as error:
        problem = "\n".join(render(each, lambda _file: query.where) for each in error.diagnostics)
        found = trace.no_rows(at)
    if set(query.columns) == {name for name, _ in found.columns if name not in _SYSTEM}:
        query = replace(query, columns=())  # all that there are: a later step may add more
    shown = _shown(trace, found, query, at)
    before = _before(trace, found, at)
    tail = words.tail_length([row.row_id for row in found.rows])
    return RowsPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=words.isolated(trace.plan.title),
        period=trace.period,
        query=query,
        stepper=stepper(trace, at),
        column_fields=[("columns", name) for name in query.columns],
        all_columns=tuple((name, name in shown) for name, _ in found.columns),
        columns=tuple(_column(trace, name, found, query) for name in shown),
        rows=tuple(_row(trace, row, shown, before, at, tail) for row in found.rows),
        example=_example(trace),
        narrowing=within(query.where),
        check_address=addresses.condition(trace.run_id, at=at),
        problem=problem,
        told=words.page_of_rows(query.offset, len(found.rows), None if problem else _total(trace, query, found, at)),
        hidden=len([name for name, _ in found.columns if name not in _SYSTEM and name not in shown]),
        all_columns_address=_address(trace, query, columns=[], offset=query.offset or "", after=query.after),
        first=_address(trace, query) if query.after or query.offset else None,
        previous=_previous(trace, query),
        following=_following(trace, query, found),
        everything=_address(trace, query, changed="") if query.changed else None,
        files=_files(trace, query, at),
    )


def _shown(trace: SeenTrace, found: FoundRows, query: RowsQuery, at: int) -> list[str]:
    """The columns on the page. Where only rows are shown that a step changed, what it has set comes after the key."""
    names = [name for name, _ in found.columns]
    chosen = [name for name in dict.fromkeys(query.columns) if name in names]
    if chosen:
        return chosen
    data = [name for name in names if name not in _SYSTEM]
    if not query.changed or at == 0:
        return data
    step = next(step for step in trace.plan.steps if step.seq == at)
    # The key of what was loaded says nothing about rows that a step has created.
    key = () if isinstance(step, CreatingStep) else next(iter(trace.plan.input.names), ())
    was_set = [name for name in data if name in step.columns_set and name not in key]
    return list(dict.fromkeys([*(name for name in data if name in key), *was_set, *data]))


def _total(trace: SeenTrace, query: RowsQuery, found: FoundRows, at: int) -> int | None:
    """How many rows there are on all pages; None if only looking at each would tell."""
    if not found.has_more and not query.offset and not query.after:
        return len(found.rows)
    where = query.where.strip() or None
    if not query.changed:
        return trace.count(where, at)
    return None if where is not None else trace.count_of_step(at)


def _before(trace: SeenTrace, found: FoundRows, at: int) -> Mapping[str, RowValues] | None:
    """The same rows before the step; None for the load step."""
    if at == 0:
        return None
    return trace.states([row.row_id for row in found.rows], trace.run.before(at))


def _column(trace: SeenTrace, name: str, found: FoundRows, query: RowsQuery) -> ShownColumn:
    type_ = dict(found.columns)[name]
    is_sorted = query.sort == name
    sorted_ = ("descending" if query.descending else "ascending") if is_sorted else "none"
    turned = is_sorted and not query.descending
    address = _address(trace, query, sort=name, direction="descending" if turned else "") if not query.changed else None
    return ShownColumn(
        name=name,
        type=str(type_),
        is_number=type_.kind in _NUMBERS,
        sorted=sorted_,  # type: ignore[arg-type]
        sort_address=address,
        values_address=_values(trace, query, name, found.at),
        written=name_text(name),
        is_ordered=type_.kind in ORDERED,
    )


def _values(trace: SeenTrace, query: RowsQuery, name: str, at: int) -> str | None:
    if not trace.columns.is_clear(name):
        return None
    return addresses.column_values(
        trace.run_id,
        name,
        at=at,
        where=query.where,
        sort=query.sort,
        direction="descending" if query.descending else "",
        columns=list(query.columns),
        changed="1" if query.changed else "",
    )


def _row(
    trace: SeenTrace, row: FoundRow, shown: Sequence[str], before: Mapping[str, RowValues] | None, at: int, tail: int
) -> ShownRow:
    old = None if before is None else before.get(row.row_id)
    numbers = {name for name, type_ in trace.run.columns(at) if type_.kind in _NUMBERS}
    cells = tuple(
        ShownCell(
            words.cell(row.state[name]),
            words.cell(old.get(name)) if old is not None and old.get(name) != row.state[name] else None,
            addresses.explanation(trace.run_id, row.row_id, name, at=at),
            name in numbers,
            literal_of(row.state[name]) if trace.columns.is_clear(name) else None,
        )
        for name in shown
    )
    return ShownRow(
        row_id=row.row_id,
        short_id=row.row_id[-tail:],
        address=addresses.row(trace.run_id, row.row_id, at=at),
        change=_change(row.state, old) if before is not None else None,
        is_deleted=row.state.get("_deleted") is True,
        cells=cells,
    )


def _change(state: RowValues, old: RowValues | None) -> Literal["created", "updated", "deleted"] | None:
    if old is None:
        return "created"
    if state.get("_deleted") and not old.get("_deleted"):
        return "deleted"
    return "updated" if any(old.get(name) != value for name, value in state.items()) else None


def _address(trace: SeenTrace, query: RowsQuery, **other: object) -> str:
    given: dict[str, object] = {
        "at": query.at,
        "where": query.where,
        "sort": query.sort,
        "direction": "descending" if query.descending else "",
        "columns": list(query.columns),
        "changed": "1" if query.changed else "",
    }
    return addresses.rows(trace.run_id, **(given | other))


def _files(trace: SeenTrace, query: RowsQuery, at: int) -> tuple[tuple[str, str], ...]:
    given: dict[str, object] = {
        "step" if query.changed else "at": at,
        "where": query.where,
        "sort": "" if query.changed else query.sort,
        "descending": "true" if query.descending and query.sort and not query.changed else "",
        "columns": list(query.columns),
    }
    return tuple((name, addresses.rows_file(trace.run_id, format_, **given)) for format_, name in words.FORMATS)


def _following(trace: SeenTrace, query: RowsQuery, found: FoundRows) -> str | None:
    if not found.has_more:
        return None
    offset = query.offset + len(found.rows)
    if query.sort and not query.changed:
        return _address(trace, query, offset=offset)
    trail = [*query.trail, query.after][-_LONGEST_TRAIL:]
    return _address(trace, query, after=found.rows[-1].row_id, offset=offset, trail=[each for each in trail if each])


def _previous(trace: SeenTrace, query: RowsQuery) -> str | None:
    """The page before, as far as it is known how this one was reached."""
    offset = max(0, query.offset - PAGE)
    if query.sort and not query.changed:
        return _address(trace, query, offset=offset or "") if query.offset else None
    if not query.after or (not query.trail and offset):
        return None
    after = query.trail[-1] if query.trail and offset else ""
    return _address(trace, query, after=after, offset=offset or "", trail=list(query.trail[:-1]))


def _example(trace: SeenTrace) -> str:
    names = trace.plan.input.names
    key = names[0] if names else tuple(column.name for column in trace.plan.input.columns[:1])
    return f'{key[0]} = "…"' if key else "TRUE"
