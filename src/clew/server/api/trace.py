"""Rows of runs that have ended: their history, their states, why they are what they are. Every reading is on record."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from clew.auth.access_log import Subject
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.server.access.visit import RowVisit, RunVisit
from clew.server.api.documents import (
    ExplanationDocument,
    HistoryDocument,
    RowsDocument,
    StateDocument,
    StepRowsDocument,
    TraceDocument,
    WhyNotDocument,
)
from clew.server.api.etags import unchanging
from clew.trace.row_sets import Order

router = APIRouter(tags=["rows"])

_LARGEST = 2**31 - 1
_MOST_ROWS = 1000
_TOP = 5

Seq = Annotated[int, Path(ge=0, le=_LARGEST)]
At = Annotated[int | None, Query(ge=0, le=_LARGEST, description="After this step; the last if left out.")]
Limit = Annotated[int, Query(ge=1, le=_MOST_ROWS)]
Condition = Annotated[str | None, Query(max_length=10_000, description="A condition in the expression language.")]


@router.get("/runs/{run}/trace", summary="What each step did, in numbers", responses={200: {"model": TraceDocument}})
def counts(run: str, request: Request, visit: RunVisit) -> Response:
    """How many rows each step created, changed and deleted, and in which columns."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    return unchanging(
        request,
        lambda: {"run_id": traced.run_id, "steps": [each.to_json() for each in traced.counts()]},
        found.id,
        found.record.last_seq,
    )


@router.get("/runs/{run}/trace/rows", summary="Rows after a step", responses={200: {"model": RowsDocument}})
def rows(
    run: str,
    request: Request,
    visit: RowVisit,
    where: Condition = None,
    at: At = None,
    limit: Limit = 100,
    after: Annotated[str | None, Query(max_length=100, description="The last row id of the page before.")] = None,
    sort: Annotated[str | None, Query(max_length=255, description="Sort by this column.")] = None,
    descending: bool = False,
    offset: Annotated[int, Query(ge=0, le=_LARGEST, description="Rows to leave out; with `sort` only.")] = 0,
) -> Response:
    """The working dataset, all of it or the rows that a condition finds, deleted rows among them."""
    if sort is not None and after is not None:
        raise UserError(INVALID_REQUEST.anywhere(problem="`after` is for rows in their own order; use `offset`"))
    if sort is None and offset:
        raise UserError(INVALID_REQUEST.anywhere(problem="`offset` is for sorted rows; use `after`"))
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    visit.has_read(Subject.TRACE, found.id, _detail(where=where, at=at, after=after, sort=sort))
    if sort is not None:
        order = Order(sort, descending)
        return unchanging(
            request,
            lambda: traced.ordered(where, order, at, limit=limit, offset=offset).to_json(),
            found.id,
            found.record.last_seq,
        )
    return unchanging(
        request, lambda: traced.search(where, at, limit, after).to_json(), found.id, found.record.last_seq
    )


@router.get("/runs/{run}/trace/rows/{row}", summary="The history of a row", responses={200: {"model": HistoryDocument}})
def history(run: str, row: str, request: Request, visit: RowVisit) -> Response:
    """What happened to a row, from loading or its creation to the last step that changed it."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    visit.has_read(Subject.TRACE, found.id, _detail(row=row))

    def build() -> dict[str, object]:
        told = traced.history(row)
        if told.diagnostic is not None:
            raise UserError(told.diagnostic)
        return told.to_json()

    return unchanging(request, build, found.id, found.record.last_seq)


@router.get(
    "/runs/{run}/trace/rows/{row}/at/{seq}", summary="A row after a step", responses={200: {"model": StateDocument}}
)
def state(run: str, row: str, seq: Seq, request: Request, visit: RowVisit) -> Response:
    """A row as it was; 0 is loading."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    visit.has_read(Subject.TRACE, found.id, _detail(row=row, at=seq))

    def build() -> dict[str, object]:
        told = traced.state(row, seq)
        if told.diagnostic is not None:
            raise UserError(told.diagnostic)
        return told.to_json()

    return unchanging(request, build, found.id, found.record.last_seq)


@router.get(
    "/runs/{run}/trace/steps/{seq}",
    summary="What a step did to each row",
    responses={200: {"model": StepRowsDocument}},
)
def step(
    run: str,
    seq: Seq,
    request: Request,
    visit: RowVisit,
    limit: Limit = 100,
    after: Annotated[str | None, Query(max_length=100, description="The last row id of the page before.")] = None,
) -> Response:
    """Every row that a step created, changed or deleted, a page at a time."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    visit.has_read(Subject.TRACE, found.id, _detail(step=seq, after=after))
    return unchanging(request, lambda: traced.step_rows(seq, limit, after).to_json(), found.id, found.record.last_seq)


@router.get("/runs/{run}/explain", summary="Why a value is what it is", responses={200: {"model": ExplanationDocument}})
def explanation(
    run: str,
    request: Request,
    visit: RowVisit,
    column: Annotated[str, Query(min_length=1, max_length=255)],
    row: Annotated[str | None, Query(max_length=100, description="A row id; or use `where`.")] = None,
    where: Condition = None,
    at: At = None,
    everything: Annotated[bool, Query(alias="all", description="Every row behind a summary.")] = False,
) -> Response:
    """A tree: the step that last set the value, its expression with the values that went in, down to the sources."""
    if (row is None) == (where is None):
        raise UserError(INVALID_REQUEST.anywhere(problem="give either `row` or `where`"))
    found = visit.workspace.find_run(run)
    found.open_trace()  # While the run goes on there is nothing to read, so there is no reading to record either.
    visit.has_read(Subject.EXPLANATION, found.id, _detail(row=row, where=where, column=column, at=at))

    def build() -> dict[str, object]:
        row_id = row if row is not None else found.row_where(where or "", at=at)
        return found.explain(row_id, column, at=at, top=None if everything else _TOP).to_json()

    return unchanging(request, build, found.id, found.record.last_seq)


@router.get("/runs/{run}/why-not", summary="Why rows are not in an output", responses={200: {"model": WhyNotDocument}})
def why_rows_are_not(
    run: str,
    visit: RowVisit,
    where: Annotated[str, Query(min_length=1, max_length=10_000, description="A condition on the rows as loaded.")],
    output: Annotated[int | None, Query(ge=0, le=_LARGEST, description="The seq of the output.")] = None,
) -> Response:
    """What became of loaded rows: the step that deleted them, or the selector that left them out.

    Where no row matches: the rules that said what was read, and where such a row is. That changes with other runs and
    with files, so the answer is not kept.
    """
    found = visit.workspace.find_run(run)
    visit.has_read(Subject.EXPLANATION, found.id, _detail(why_not=where, output=output))
    return JSONResponse(found.why_not(where, output=output).to_json(), headers={"Cache-Control": "no-store"})


def _detail(**asked: object) -> str:
    """What was asked for, in words for the access log."""
    return ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None) or "all rows"
