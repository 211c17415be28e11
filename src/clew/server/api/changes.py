"""Questions about two runs. Every read is recorded for both."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response

from clew.auth.access_log import Subject
from clew.server.access.visit import RowVisit
from clew.server.api.documents import (
    ChangeBridgeDocument,
    ComparisonDocument,
    PlanImpactDocument,
    SensitivityDocument,
    WhatIfDocument,
)
from clew.server.api.etags import unchanging

router = APIRouter(tags=["rows"])

_LARGEST = 2**31 - 1
_MOST_ROWS = 1000

Other = Annotated[str, Query(min_length=1, max_length=100, description="Another run of the same project.")]
OutputSeq = Annotated[
    int | None, Query(ge=0, le=_LARGEST, description="The seq of an output; the default is the last.")
]
RowCondition = Annotated[str | None, Query(max_length=10_000, description="A condition on the rows of each run.")]
AtSeq = Annotated[int | None, Query(ge=0, le=_LARGEST, description="After this step, instead of an output.")]


@router.get("/runs/{run}/compare", summary="Compare two runs", responses={200: {"model": ComparisonDocument}})
def compare(
    run: str,
    request: Request,
    visit: RowVisit,
    other: Other,
    output: OutputSeq = None,
    at: AtSeq = None,
    where: RowCondition = None,
    key: Annotated[list[str] | None, Query(max_length=20, description="Match rows by these columns.")] = None,
    sort: Annotated[str | None, Query(max_length=255, description="Largest differences of this column first.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 100,
    offset: Annotated[int, Query(ge=0, le=_LARGEST, description="The number of rows to skip.")] = 0,
) -> Response:
    """Rows that only one of the runs has, rows that changed, and the totals of numbers side by side."""
    first, second = visit.workspace.find_run(run), visit.workspace.find_run(other)
    traces = [each.open_trace() for each in (first, second)]  # nothing to read and to record until both have ended
    asked = "" if where is None else f" where {traces[0].recorded(where)}"
    visit.has_read(Subject.TRACE, first.id, f"compared with {second.id}{asked}")
    visit.has_read(Subject.TRACE, second.id, f"compared with {first.id}{asked}")
    return unchanging(
        request,
        lambda: first.compare(
            second,
            output=output,
            at=at,
            where=where,
            key=tuple(key or ()),
            sort=sort,
            limit=limit,
            offset=offset,
        ).to_json(),
        first.id,
        first.record.last_seq,
        second.id,
        second.record.last_seq,
        traces[0].policy.fingerprint,
    )


@router.get(
    "/runs/{run}/why-changed",
    summary="Explain why a value changed",
    responses={200: {"model": ChangeBridgeDocument}},
)
def why_changed(
    run: str,
    request: Request,
    visit: RowVisit,
    other: Other,
    column: Annotated[str, Query(min_length=1, max_length=255, description="A column whose values are added up.")],
    where: RowCondition = None,
    output: OutputSeq = None,
    at: AtSeq = None,
    mode: Annotated[Literal["shapley", "sequential"], Query(description="How causes share what they do together.")] = (
        "shapley"
    ),
) -> Response:
    """Causes that add up to the difference: operations, data, parameters, the period, TODAY()."""
    first, second = visit.workspace.find_run(run), visit.workspace.find_run(other)
    traces = [each.open_trace() for each in (first, second)]  # nothing to read and to record until both have ended
    asked = "" if where is None else f" where {traces[0].recorded(where)}"
    visit.has_read(Subject.EXPLANATION, first.id, f"why {column} changed{asked} in {second.id}")
    visit.has_read(Subject.EXPLANATION, second.id, f"why {column} changed{asked} since {first.id}")
    return unchanging(
        request,
        lambda: first.why_changed(second, column, where=where, output=output, at=at, mode=mode).to_json(),
        first.id,
        first.record.last_seq,
        second.id,
        second.record.last_seq,
        traces[0].policy.fingerprint,
    )


@router.get("/runs/{run}/what-if", summary="Ask what would be different", responses={200: {"model": WhatIfDocument}})
def what_if(
    run: str,
    request: Request,
    visit: RowVisit,
    sets: Annotated[
        list[str] | None, Query(alias="set", description="DATASET where CONDITION: COLUMN = EXPRESSION")
    ] = None,
    drops: Annotated[list[str] | None, Query(alias="drop", description="DATASET where CONDITION")] = None,
    expressions: Annotated[list[str] | None, Query(alias="expression", description="SEQ.COLUMN = EXPRESSION")] = None,
    parameters: Annotated[list[str] | None, Query(alias="parameter", description="NAME=VALUE")] = None,
    where: RowCondition = None,
    output: OutputSeq = None,
    at: AtSeq = None,
    sort: Annotated[str | None, Query(max_length=255, description="Largest differences of this column first.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = 100,
    offset: Annotated[int, Query(ge=0, le=_LARGEST, description="The number of rows to skip.")] = 0,
) -> Response:
    """The rows and totals that would differ if data or an expression were other than in the run. Nothing is stored."""
    found = visit.workspace.find_run(run)
    trace = found.open_trace()
    values = {name: value for name, _, value in (each.partition("=") for each in parameters or ())}
    asked = found.recorded_suppositions(
        sets=tuple(sets or ()), drops=tuple(drops or ()), expressions=tuple(expressions or ()), parameters=values
    )
    within = "" if where is None else f", where {trace.recorded(where)}"
    visit.has_read(Subject.EXPLANATION, found.id, f"what if: {asked}{within}")
    return unchanging(
        request,
        lambda: found.what_if(
            sets=tuple(sets or ()),
            drops=tuple(drops or ()),
            expressions=tuple(expressions or ()),
            parameters=values,
            where=where,
            output=output,
            at=at,
            sort=sort,
            limit=limit,
            offset=offset,
        ).to_json(),
        found.id,
        found.record.last_seq,
        trace.policy.fingerprint,
    )


@router.get(
    "/runs/{run}/sensitivity",
    summary="Ask what a total hangs on",
    responses={200: {"model": SensitivityDocument}},
)
def sensitivity(
    run: str,
    request: Request,
    visit: RowVisit,
    column: Annotated[str, Query(min_length=1, max_length=255, description="A column whose values are added up.")],
    where: RowCondition = None,
    output: OutputSeq = None,
    at: AtSeq = None,
) -> Response:
    """By how much a total moves if each number that the run has looked up were one percent larger."""
    found = visit.workspace.find_run(run)
    trace = found.open_trace()
    within = "" if where is None else f" where {trace.recorded(where)}"
    visit.has_read(Subject.EXPLANATION, found.id, f"what the total of {column}{within} hangs on")
    return unchanging(
        request,
        lambda: found.sensitivity(column, where=where, output=output, at=at).to_json(),
        found.id,
        found.record.last_seq,
        trace.policy.fingerprint,
    )


@router.get(
    "/runs/{run}/impact",
    summary="Ask what the edited project would change",
    responses={200: {"model": PlanImpactDocument}},
)
def impact(
    run: str,
    visit: RowVisit,
    fail_if: Annotated[str | None, Query(max_length=1_000, description="A condition on each total.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS, description="How many rows of each output are shown.")] = 10,
) -> dict[str, object]:
    """What the project, as the files of the workspace have it now, would have made of a run. Nothing is stored."""
    found = visit.workspace.find_run(run)
    found.open_trace()  # nothing to read and to record until it has ended
    visit.has_read(Subject.EXPLANATION, found.id, f"what {found.project} as edited would change")
    return found.impact(fail_if=fail_if, limit=limit).to_json()
