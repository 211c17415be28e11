"""Lineage by trace id: what a row was made from, and what was made from it, across runs, projects and processes."""

from typing import Annotated

from fastapi import APIRouter, Path, Query
from fastapi.responses import JSONResponse

from clew.auth.access_log import Subject
from clew.server.access.visit import RowVisit
from clew.server.api.documents import LineageDocument
from clew.tracelink import Direction

router = APIRouter(tags=["rows"])


@router.get("/lineage/{trace_id}", summary="Follow a trace id", responses={200: {"model": LineageDocument}})
def lineage(
    trace_id: Annotated[int, Path(ge=1, lt=2**64)],
    visit: RowVisit,
    direction: Direction = Direction.UP,
    depth: Annotated[int, Query(ge=0, le=1000, description="The maximum number of links to follow.")] = 100,
    limit: Annotated[int, Query(ge=1, le=10_000, description="The maximum number of trace ids.")] = 1000,
) -> JSONResponse:
    """A graph of trace ids, each with its rows in runs and its frames from processes."""
    visit.require_own_workspace()
    visit.has_read(Subject.LINEAGE, str(trace_id), direction.value)
    return JSONResponse(visit.workspace.lineage(trace_id, direction.value, depth=depth, limit=limit).to_json())
