"""Rows of finished runs: history, states and explanations. Every read is recorded."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from clew.auth.access_log import Subject
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.server.access.visit import AskingVisit, RowVisit, RunVisit
from clew.server.api.documents import (
    ChecksDocument,
    ExplanationDocument,
    HistoryDocument,
    QuarantineDocument,
    ReconciliationDocument,
    RowsDocument,
    StateDocument,
    StepRowsDocument,
    TraceDocument,
    TraceRecordsDocument,
    WhyNotDocument,
)
from clew.server.api.etags import unchanging
from clew.trace.row_sets import Order

router = APIRouter(tags=["rows"])

_LARGEST = 2**31 - 1
_MOST_ROWS = 1000
_TOP = 5

Seq = Annotated[int, Path(ge=0, le=_LARGEST)]
At = Annotated[int | None, Query(ge=0, le=_LARGEST, description="After this step; the default is the last.")]
Limit = Annotated[int, Query(ge=1, le=_MOST_ROWS)]
Condition = Annotated[str | None, Query(max_length=10_000, description="A condition in the expression language.")]


@router.get("/runs/{run}/trace", summary="Count the changes of each step", responses={200: {"model": TraceDocument}})
def counts(run: str, request: Request, visit: AskingVisit) -> Response:
    """The number of rows that each step created, changed and deleted, and in which columns."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    return unchanging(
        request,
        lambda: {"run_id": traced.run_id, "steps": [each.to_json() for each in traced.counts()]},
        found.id,
        found.record.last_seq,
    )


@router.get("/runs/{run}/trace/rows", summary="List rows after a step", responses={200: {"model": RowsDocument}})
def rows(
    run: str,
    request: Request,
    visit: RowVisit,
    where: Condition = None,
    at: At = None,
    limit: Limit = 100,
    after: Annotated[str | None, Query(max_length=100, description="The last row id of the previous page.")] = None,
    sort: Annotated[str | None, Query(max_length=255, description="Sort by this column.")] = None,
    descending: bool = False,
    offset: Annotated[int, Query(ge=0, le=_LARGEST, description="The number of rows to skip; only with `sort`.")] = 0,
) -> Response:
    """The working dataset, or those of its rows that match a condition. Deleted rows are included."""
    if sort is not None and after is not None:
        raise UserError(INVALID_REQUEST.anywhere(problem="`after` does not work with `sort`; use `offset`"))
    if sort is None and offset:
        raise UserError(INVALID_REQUEST.anywhere(problem="`offset` works only with `sort`; use `after`"))
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    asked = traced.recorded(where) if where is not None else None
    visit.has_read(Subject.TRACE, found.id, _detail(where=asked, at=at, after=after, sort=sort))
    seen = traced.policy.fingerprint
    if sort is not None:
        order = Order(sort, descending)
        return unchanging(
            request,
            lambda: traced.ordered(where, order, at, limit=limit, offset=offset).to_json(),
            found.id,
            found.record.last_seq,
            seen,
        )
    return unchanging(
        request, lambda: traced.search(where, at, limit, after).to_json(), found.id, found.record.last_seq, seen
    )


@router.get(
    "/runs/{run}/trace/rows/{row}", summary="Get the history of a row", responses={200: {"model": HistoryDocument}}
)
def history(run: str, row: str, request: Request, visit: RowVisit) -> Response:
    """What happened to a row, from the load or its creation to the last step that changed it."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    visit.has_read(Subject.TRACE, found.id, _detail(row=row))

    def build() -> dict[str, object]:
        told = traced.history(row)
        if told.diagnostic is not None:
            raise UserError(told.diagnostic)
        return told.to_json()

    return unchanging(request, build, found.id, found.record.last_seq, traced.policy.fingerprint)


@router.get(
    "/runs/{run}/trace/rows/{row}/at/{seq}", summary="Get a row after a step", responses={200: {"model": StateDocument}}
)
def state(run: str, row: str, seq: Seq, request: Request, visit: RowVisit) -> Response:
    """The state of a row after a step; 0 is the load step."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    visit.has_read(Subject.TRACE, found.id, _detail(row=row, at=seq))

    def build() -> dict[str, object]:
        told = traced.state(row, seq)
        if told.diagnostic is not None:
            raise UserError(told.diagnostic)
        return told.to_json()

    return unchanging(request, build, found.id, found.record.last_seq, traced.policy.fingerprint)


@router.get(
    "/runs/{run}/trace/steps/{seq}",
    summary="List what a step did to each row",
    responses={200: {"model": StepRowsDocument}},
)
def step(
    run: str,
    seq: Seq,
    request: Request,
    visit: RowVisit,
    limit: Limit = 100,
    after: Annotated[str | None, Query(max_length=100, description="The last row id of the previous page.")] = None,
) -> Response:
    """Every row that a step created, changed or deleted, one page at a time."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()
    visit.has_read(Subject.TRACE, found.id, _detail(step=seq, after=after))
    return unchanging(
        request,
        lambda: traced.step_rows(seq, limit, after).to_json(),
        found.id,
        found.record.last_seq,
        traced.policy.fingerprint,
    )


@router.get(
    "/runs/{run}/trace/records",
    summary="List trace records",
    responses={200: {"model": TraceRecordsDocument}},
)
def records(
    run: str,
    request: Request,
    visit: RowVisit,
    row: Annotated[str | None, Query(max_length=100, description="Only the records of this row.")] = None,
    step: Annotated[int | None, Query(ge=0, le=_LARGEST, description="Only the records of this step.")] = None,
    limit: Limit = 100,
    after: Annotated[str | None, Query(max_length=120, description="The `next` of the previous page.")] = None,
) -> Response:
    """What each step did to each row: the values before and after of the columns that changed."""
    if row is not None and (step is not None or after is not None):
        raise UserError(INVALID_REQUEST.anywhere(problem="`row` does not work with `step` and `after`"))
    found = visit.workspace.find_run(run)
    traced = found.open_trace()  # While the run is running there is nothing to read, so there is no read to record.
    visit.has_read(Subject.TRACE, found.id, _detail(records_of=row, step=step, after=after))
    return unchanging(
        request,
        lambda: found.records(row, step=step, limit=limit, after=after).to_json(),
        found.id,
        found.record.last_seq,
        traced.policy.fingerprint,
    )


@router.get("/runs/{run}/explain", summary="Explain a value", responses={200: {"model": ExplanationDocument}})
def explanation(
    run: str,
    request: Request,
    visit: RowVisit,
    column: Annotated[str, Query(min_length=1, max_length=255)],
    row: Annotated[str | None, Query(max_length=100, description="A row id; or use `where`.")] = None,
    where: Condition = None,
    at: At = None,
    everything: Annotated[bool, Query(alias="all", description="Include every row of a summary.")] = False,
    restated: Annotated[
        bool, Query(description="Also what earlier runs for the same period had in its place, under `restated`.")
    ] = False,
) -> Response:
    """A tree: the step that last set the value, its expression and input values, down to the sources."""
    if (row is None) == (where is None):
        raise UserError(INVALID_REQUEST.anywhere(problem="give either `row` or `where`"))
    found = visit.workspace.find_run(run)
    traced = found.open_trace()  # While the run is running there is nothing to read, so there is no read to record.
    asked = traced.recorded(where) if where is not None else None
    visit.has_read(Subject.EXPLANATION, found.id, _detail(row=row, where=asked, column=column, at=at))

    def build() -> dict[str, object]:
        row_id = row if row is not None else found.row_where(where or "", at=at)
        told = found.explain(row_id, column, at=at, top=None if everything else _TOP).to_json()
        return {**told, "restated": found.restatements(row_id, column, at=at).to_json()} if restated else told

    if restated:  # which hangs on other runs, too
        return JSONResponse(build(), headers={"Cache-Control": "no-store"})
    return unchanging(request, build, found.id, found.record.last_seq, traced.policy.fingerprint)


@router.get(
    "/runs/{run}/why-not", summary="Explain why rows are not in an output", responses={200: {"model": WhyNotDocument}}
)
def why_rows_are_not(
    run: str,
    visit: RowVisit,
    where: Annotated[str, Query(min_length=1, max_length=10_000, description="A condition on the rows as loaded.")],
    output: Annotated[int | None, Query(ge=0, le=_LARGEST, description="The seq of the output.")] = None,
) -> Response:
    """What happened to loaded rows: the step that deleted them, or the selector that left them out.

    If no row matches: the rules that decided what was read, and where such a row is. That changes with other runs and
    with files, so the answer is not cached.
    """
    found = visit.workspace.find_run(run)
    asked = found.open_trace().recorded(where)
    visit.has_read(Subject.EXPLANATION, found.id, _detail(why_not=asked, output=output))
    return JSONResponse(found.why_not(where, output=output).to_json(), headers={"Cache-Control": "no-store"})


@router.get(
    "/runs/{run}/reconciliation",
    summary="Compare what came in with what went out",
    responses={200: {"model": ReconciliationDocument}},
)
def reconciliation(run: str, request: Request, visit: RowVisit) -> Response:
    """A waterfall from the source to each output, in rows and in every control total that the caller may see."""
    found = visit.workspace.find_run(run)
    traced = found.open_trace()  # While the run is running there is nothing to read, so there is no read to record.
    visit.has_read(Subject.TRACE, found.id, "reconciliation")
    return unchanging(
        request, lambda: found.reconcile().to_json(), found.id, found.record.last_seq, traced.policy.fingerprint
    )


@router.get(
    "/runs/{run}/quarantine",
    summary="List the rows that were not loaded",
    responses={200: {"model": QuarantineDocument}},
)
def quarantine(
    run: str,
    visit: RowVisit,
    dataset: Annotated[str | None, Query(max_length=200, description="Only the rows of this dataset.")] = None,
) -> JSONResponse:
    """Rows that are not as their dataset says, with file, line, column, value and reason."""
    found = visit.workspace.find_run(run)
    found.open_trace()  # While the run is running there is nothing to read, so there is no read to record.
    visit.has_read(Subject.TRACE, found.id, "quarantine")
    rows = [row.to_json() for row in found.quarantine(dataset)]
    return JSONResponse({"run_id": found.id, "rows": rows}, headers={"Cache-Control": "no-store"})


@router.get(
    "/runs/{run}/checks",
    summary="Get what the checks of a run found",
    responses={200: {"model": ChecksDocument}},
)
def checks(run: str, visit: RunVisit) -> JSONResponse:
    """Every check of the run with its outcome and the number of rows that fail; of a running one so far."""
    return JSONResponse(visit.workspace.get_run(run).checks().to_json())


@router.get(
    "/runs/{run}/checks/rows",
    summary="List the rows that fail a check",
    responses={200: {"model": RowsDocument}},
)
def failing_rows(
    run: str,
    visit: RowVisit,
    name: Annotated[str, Query(max_length=1000, description="The name of the check.")],
    limit: Limit = 100,
    after: Annotated[str | None, Query(max_length=100, description="The last row id of the previous page.")] = None,
) -> JSONResponse:
    """The rows as they stood where the check looked, found in the trace. Refused where the caller may not see why."""
    found = visit.workspace.get_run(run)
    visit.has_read(Subject.TRACE, found.id, f"rows that fail the check {name}")
    return JSONResponse(found.failing_rows(name, limit=limit, after=after).to_json())


def _detail(**asked: object) -> str:
    """The request in words, for the access record."""
    return ", ".join(f"{name} {value}" for name, value in asked.items() if value is not None) or "all rows"
