"""Filtering rows by clicking and typing: the values of a column, and what a condition lacks."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse, RedirectResponse

from clew.auth.access_log import Subject
from clew.auth.roles import Permission
from clew.server.access.visit import RowVisit, Visit, may
from clew.server.pages.column_page import MOST_VALUES, ColumnQuery, column_page, range_address, told_while_typing
from clew.server.pages.rendering import AtDesk
from clew.server.pages.rows_page import RowsQuery

router = APIRouter()

_LONGEST = 10_000
End = Annotated[str, Query(max_length=100, pattern=r"^[-+0-9.]*$")]


@router.get("/runs/{run}/values")
@router.get("/runs/{run}/values.json")
def values(
    run: str,
    column: str,
    visit: RowVisit,
    desk: AtDesk,
    at: Annotated[int | None, Query(ge=0)] = None,
    where: str = "",
    sort: str = "",
    direction: str = "",
    columns: Annotated[list[str] | None, Query()] = None,
    changed: str = "",
    least: End = "",
    greatest: End = "",
) -> Response:
    """Which values a column has; with the end of a range, the rows whose values lie in it."""
    trace = visit.workspace.find_run(run).open_trace()
    rows = RowsQuery(at, where, sort, direction == "descending", tuple(columns or ()), changed=bool(changed))
    query = ColumnQuery(column, rows, least, greatest)
    asked = f" where {trace.recorded(where)}" if where.strip() else ""
    visit.has_read(
        Subject.TRACE, trace.run_id, f"values of {column} after step {at if at is not None else 'last'}{asked}"
    )
    if least or greatest:
        types = dict(trace.no_rows(at).columns)
        if column in types:
            return RedirectResponse(range_address(trace, query, types[column].kind), 303)
    found = trace.values(column, where.strip() or None, at, most=MOST_VALUES)
    return desk.page(
        visit,
        "column.html",
        section="Runs",
        page=lambda: column_page(trace, query, found),
        document=found.to_json,
    )


@router.get("/runs/{run}/condition")
def condition(
    run: str,
    visit: Annotated[Visit, may(Permission.READ_ROWS)],
    where: Annotated[str, Query(max_length=_LONGEST)] = "",
    cursor: Annotated[int | None, Query(ge=0)] = None,
    at: Annotated[int | None, Query(ge=0)] = None,
) -> Response:
    """What a condition lacks while it is typed, and what can stand at the cursor."""
    trace = visit.workspace.find_run(run).open_trace()
    return JSONResponse(dict(told_while_typing(trace, where, cursor, at)))
