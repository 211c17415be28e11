"""The history of a run: page by page, or as a stream."""

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from clew.diagnostics import ClewError
from clew.server.access.visit import RunVisit, caller_or_none
from clew.server.api.documents import EventsDocument, VerificationDocument
from clew.server.streams import EventStreams, Position

router = APIRouter(tags=["runs"])

_LARGEST_SEQ = 2**62
_MOST_DIGITS = len(str(_LARGEST_SEQ))


@router.get("/runs/{run}/events", summary="List events of a run", responses={200: {"model": EventsDocument}})
def list_events(
    run: str,
    visit: RunVisit,
    after: Annotated[int, Query(ge=0, le=_LARGEST_SEQ)] = 0,
    limit: Annotated[int, Query(ge=1, le=5000)] = 1000,
) -> JSONResponse:
    """The events after `after`, in order. If one is missing, the page ends before it and reports the gap."""
    return JSONResponse(visit.workspace.find_run(run).event_page(after=after, limit=limit).to_json())


@router.get(
    "/runs/{run}/events/stream",
    summary="Stream events of a run",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}, 204: {"description": "The run has already ended."}},
)
async def stream_events(
    run: str,
    request: Request,
    visit: RunVisit,
    after: Annotated[int, Query(ge=0, le=_LARGEST_SEQ)] = 0,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Server-sent events. A client that reconnects continues after its Last-Event-ID.

    `run-event` for each event, with its run_seq as the id; `stale` if one is missing, `resumed` when it has arrived;
    `end` when the run has ended.
    """
    record = (await run_in_threadpool(visit.workspace.find_run, run)).record
    # Nobody has seen events that do not exist yet: a position beyond the last event would never be reached.
    seen = min(_position(last_event_id, after), record.last_seq)
    if record.status.is_terminal and last_event_id and seen >= record.last_seq:
        return Response(status_code=204)
    streams: EventStreams = request.app.state.streams
    sees_values = await run_in_threadpool(lambda: visit.workspace.sees_values)

    async def still_allowed() -> bool:
        try:
            return await run_in_threadpool(caller_or_none, request) == visit.caller
        except ClewError:
            return False

    parts = streams.listen(record.run_id, Position(seen), still_allowed, sees_values=sees_values)
    return _EventStream(streams, visit.caller.key, parts)


class _EventStream(StreamingResponse):
    """A stream that counts among those of its caller until it has ended. Raises TransientFailure TooManyStreams."""

    def __init__(self, streams: EventStreams, caller: str, parts: AsyncIterator[bytes]) -> None:
        super().__init__(parts, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        self._streams, self._caller = streams, caller
        streams.enter(caller)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._streams.leave(self._caller)


def _position(last_event_id: str | None, after: int) -> int:
    is_number = last_event_id is not None and last_event_id.isdecimal() and len(last_event_id) <= _MOST_DIGITS
    return int(last_event_id) if last_event_id is not None and is_number else after


@router.get(
    "/runs/{run}/events/verification",
    summary="Verify the history of a run",
    responses={200: {"model": VerificationDocument}},
)
def verification(run: str, visit: RunVisit) -> JSONResponse:
    """Checks the hash chain, if the environment keeps one."""
    found = visit.workspace.find_run(run)
    return JSONResponse({"run_id": found.id, **found.verify().to_json()})
