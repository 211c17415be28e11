"""Runs: list, show and request them, and send signals to them."""

import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from clew.auth.roles import Permission
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.runs import RUN_NOT_FOUND
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.events.snapshot import RunStatus
from clew.plan import plan_to_json
from clew.runs.signals import SignalType
from clew.server.access.visit import RunVisit, Visit, may, may_try
from clew.server.api.documents import (
    ApiDocument,
    RerunWish,
    RunDocument,
    RunListDocument,
    RunWish,
    SignalDocument,
    SignalWish,
    SnapshotDocument,
)
from clew.server.api.etags import unchanging

router = APIRouter(tags=["runs"])

_ACCEPTED, _REFUSED = 202, 409


@router.get("/runs", summary="List runs, newest first", responses={200: {"model": RunListDocument}})
def list_runs(
    visit: RunVisit,
    project: Annotated[str | None, Query(max_length=255)] = None,
    period: Annotated[str | None, Query(max_length=255)] = None,
    status: RunStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    cursor: Annotated[str | None, Query(max_length=500)] = None,
) -> JSONResponse:
    """Runs of the caller's tenant, one page at a time."""
    found = visit.workspace.find_runs(
        project=project,
        period=period,
        status=status.value if status is not None else None,
        limit=limit + 1,
        before=_item_of(cursor) if cursor is not None else None,
    )
    shown, has_more = found[:limit], len(found) > limit
    return JSONResponse(
        {
            "runs": [run.record.to_json() for run in shown],
            "has_more": has_more,
            "next_cursor": _cursor_of(shown[-1].id) if has_more else None,
        }
    )


@router.post(
    "/runs",
    summary="Request a run",
    status_code=_ACCEPTED,
    responses={_ACCEPTED: {"model": RunDocument}},
)
def start_run(wish: RunWish, visit: Annotated[Visit, may(Permission.START_RUNS)]) -> JSONResponse:
    """Creates a run, which waits for a worker. `Location` has the address of its state.

    The same request id returns the same run. An environment that is busy and rejects runs answers 429 and says
    when to retry the request.
    """
    run = visit.workspace.submit(
        wish.project,
        wish.period,
        request_id=wish.request_id,
        captures=wish.captures,
        parameters=wish.parameters,
        with_current_definitions=wish.with_current_definitions,
        as_of=wish.as_of,
    )
    return JSONResponse(run.to_json(), _ACCEPTED, {"Location": f"/api/v1/runs/{run.id}"})


@router.post(
    "/runs/{run}/rerun",
    summary="Repeat a run, and take over what is still the same",
    status_code=_ACCEPTED,
    responses={_ACCEPTED: {"model": RunDocument}},
)
def start_rerun(run: str, wish: RerunWish, visit: Annotated[Visit, may(Permission.START_RUNS)]) -> JSONResponse:
    """Creates a run of the same project and period, which waits for a worker. `reuse` of its steps says what it took
    over from this one, and why the rest was computed.
    """
    made = visit.workspace.find_run(run).submit_rerun(
        changed_inputs=wish.changed_inputs, parameters=wish.parameters, request_id=wish.request_id
    )
    return JSONResponse(made.to_json(), _ACCEPTED, {"Location": f"/api/v1/runs/{made.id}"})


@router.get("/runs/{run}", summary="Get a run with its steps and outputs", responses={200: {"model": RunDocument}})
def show_run(run: str, visit: RunVisit) -> JSONResponse:
    """A run by its id, or by the first characters of the id."""
    return JSONResponse(visit.workspace.get_run(run).sealed().to_json())


@router.get("/runs/{run}/snapshot", summary="Get the state of a run", responses={200: {"model": SnapshotDocument}})
def snapshot(run: str, visit: RunVisit) -> JSONResponse:
    """The state reduced from its events so far. If one is missing, the snapshot is stale and names the gap."""
    projected = visit.workspace.find_run(run).projected()
    gap = projected.gap.to_json() if projected.gap is not None else None
    return JSONResponse({**projected.snapshot.to_json(), "stale": projected.is_stale, "gap": gap})


@router.get("/runs/{run}/plan", summary="Get the plan of a run", responses={200: {"model": ApiDocument}})
def plan_of_run(run: str, request: Request, visit: RunVisit) -> Response:
    """The plan that the run executes, frozen when the run was requested."""
    plan = visit.workspace.get_run(run).plan
    if plan is None:
        raise UserError(RUN_NOT_FOUND.anywhere(run_id=run, hint="its plan has been deleted"))
    return unchanging(request, lambda: plan_to_json(plan), plan.digest)


@router.post(
    "/runs/{run}/signals",
    summary="Send a signal to a run: pause, resume, cancel, approve, retry or skip",
    responses={200: {"model": SignalDocument}, _REFUSED: {"model": SignalDocument}},
)
def signal(run: str, wish: SignalWish, visit: Annotated[Visit, may_try(Permission.SEND_SIGNALS)]) -> JSONResponse:
    """Returns the decision, which is recorded with its reason. Answers 409 if the signal is refused.

    A signal of a caller whose role may send none is recorded, too, and answered with 403.
    """
    outcome = visit.workspace.find_run(run).signal(
        _signal_type(wish.signal),
        step=str(wish.step) if wish.step is not None else None,
        reason=wish.reason,
        signal_id=wish.signal_id,
        with_current_definitions=wish.with_current_definitions,
    )
    visit.caller.require(Permission.SEND_SIGNALS)
    return JSONResponse(outcome.to_json(), 200 if outcome.is_accepted else _REFUSED)


def _cursor_of(name: str) -> str:
    """The position where a page of a list ended, as an opaque text for clients."""
    return base64.urlsafe_b64encode(name.encode()).decode().rstrip("=")


def _item_of(cursor: str) -> str:
    """The last item before a cursor. Raises UserError InvalidRequest if this server did not create the cursor."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise UserError(INVALID_REQUEST.anywhere(problem="the cursor is not valid")) from error


def _signal_type(name: str) -> SignalType:
    known = [each.value for each in SignalType]
    if name.upper() not in known:
        hint = did_you_mean(name.upper(), known) or f"the signals are {', '.join(known)}"
        raise UserError(INVALID_REQUEST.anywhere(problem=f'no signal "{name}"', hint=hint))
    return SignalType(name.upper())
