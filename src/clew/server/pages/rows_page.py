"""The working dataset after a step: filtered and sorted, with the step's changes marked."""

from collections.abc import Mapping, Sequence
from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics import UserError, render
from clew.lang.types import Kind
from clew.privacy.seen_trace import SeenTrace
from clew.server.pages import addresses, words
from clew.server.pages.row_page import Stepper, stepper
from clew.server.pages.words import ValueCell
from clew.trace.records import RowValues
from clew.trace.results import FoundRow, FoundRows
from clew.trace.row_sets import Order

PAGE = 50
_SYSTEM = frozenset({"_period", "_labels", "_deleted"})
_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})


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
    """The number of rows before the page, if rows are sorted."""
    changed: bool = False
    """Whether only the rows are shown that the step created, changed or deleted, in no other order than theirs."""


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column in the header of the table."""

    name: str
    type: str
    is_number: bool
    sorted: Literal["ascending", "descending", "none"]
    sort_address: str


@dataclass(frozen=True, slots=True)
class ShownCell:
    """A value, its old value if the step changed it, and the address of its explanation."""

    cell: ValueCell
    old: ValueCell | None
    address: str


@dataclass(frozen=True, slots=True)
class ShownRow:
    """A row of the table."""

    row_id: str
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
    problem: str | None
    """Why the condition is not valid, with the position of the error."""
    first: str | None
    """The address of the first page, unless this is the first page."""
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
    shown = _shown(found, query)
    before = _before(trace, found, at)
    return RowsPage(
        run_id=trace.run_id,
        run_address=addresses.run(trace.run_id),
        title=trace.plan.title,
        period=trace.period,
        query=query,
        stepper=stepper(trace, at),
        column_fields=[("columns", name) for name in query.columns],
        all_columns=tuple((name, name in shown) for name, _ in found.columns),
        columns=tuple(_column(trace, name, found, query) for name in shown),
        rows=tuple(_row(trace, row, shown, before, at) for row in found.rows),
        example=_example(trace),
        problem=problem,
        first=_address(trace, query) if query.after or query.offset else None,
        following=_following(trace, query, found),
        everything=_address(trace, query, changed="") if query.changed else None,
        files=_files(trace, query, at),
    )


def _shown(found: FoundRows, query: RowsQuery) -> list[str]:
    names = [name for name, _ in found.columns]
    chosen = [name for name in names if name in query.columns]
    return chosen or [name for name in names if name not in _SYSTEM]


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
    address = _address(trace, query, sort=name, direction="descending" if turned else "")
    return ShownColumn(name, str(type_), type_.kind in _NUMBERS, sorted_, address)  # type: ignore[arg-type]


def _row(
    trace: SeenTrace, row: FoundRow, shown: Sequence[str], before: Mapping[str, RowValues] | None, at: int
) -> ShownRow:
    old = None if before is None else before.get(row.row_id)
    cells = tuple(
        ShownCell(
            words.cell(row.state[name]),
            words.cell(old.get(name)) if old is not None and old.get(name) != row.state[name] else None,
            addresses.explanation(trace.run_id, row.row_id, name, at=at),
        )
        for name in shown
    )
    return ShownRow(
        row_id=row.row_id,
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
    if query.sort and not query.changed:
        return _address(trace, query, offset=query.offset + len(found.rows))
    return _address(trace, query, after=found.rows[-1].row_id)


def _example(trace: SeenTrace) -> str:
    names = trace.plan.input.names
    key = names[0] if names else tuple(column.name for column in trace.plan.input.columns[:1])
    return f'{key[0]} = "…"' if key else "TRUE"
