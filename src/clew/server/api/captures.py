"""Captures: what the working dataset was at a breakpoint. Every reading is on record."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse, JSONResponse

from clew.auth.access_log import Subject
from clew.captures.queue import CaptureStatus
from clew.server.access.visit import CaptureVisit
from clew.server.api.documents import (
    CaptureDiffDocument,
    CaptureDocument,
    CaptureRowsDocument,
    CapturesDocument,
)

router = APIRouter(tags=["captures"])


@router.get("/captures", summary="List captures, the newest first", responses={200: {"model": CapturesDocument}})
def list_captures(
    visit: CaptureVisit,
    run: Annotated[str | None, Query(max_length=255, description="Those of a run.")] = None,
    request_id: Annotated[str | None, Query(max_length=255, description="Those of a request for a run.")] = None,
    status: CaptureStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> JSONResponse:
    """What each is, without anything of its rows."""
    wanted = status.value if status is not None else None
    found = visit.workspace.captures(run=run, request_id=request_id, status=wanted, limit=limit)
    return JSONResponse({"captures": [capture.to_json() for capture in found]})


@router.get("/captures/{capture}", summary="A capture", responses={200: {"model": CaptureDocument}})
def show_capture(capture: str, visit: CaptureVisit) -> JSONResponse:
    """By its whole id: its manifest, and its columns in numbers."""
    found = visit.workspace.capture(capture)
    visit.has_read(Subject.CAPTURE, found.id, "statistics")
    return JSONResponse(found.described())


@router.get("/captures/{capture}/rows", summary="Rows of a capture", responses={200: {"model": CaptureRowsDocument}})
def rows_of_capture(
    capture: str, visit: CaptureVisit, limit: Annotated[int, Query(ge=1, le=10_000)] = 100
) -> JSONResponse:
    """The first rows that are not deleted, in the order that they had in the run."""
    found = visit.workspace.capture(capture)
    visit.has_read(Subject.CAPTURE, found.id, f"first {limit} rows")
    return JSONResponse(found.first_rows(limit))


@router.get(
    "/captures/{capture}/diff/{other}",
    summary="In what another capture differs",
    responses={200: {"model": CaptureDiffDocument}},
)
def diff(
    capture: str,
    other: str,
    visit: CaptureVisit,
    key: Annotated[list[str], Query(max_length=20, description="Columns that tell rows apart.")] = [],  # noqa: B006 - FastAPI copies it
    examples: Annotated[int, Query(ge=0, le=1000)] = 10,
) -> JSONResponse:
    """Rows added, removed and changed, and columns side by side."""
    before, after = visit.workspace.capture(capture), visit.workspace.capture(other)
    visit.has_read(Subject.CAPTURE, before.id, f"compared with {after.id}")
    visit.has_read(Subject.CAPTURE, after.id, f"compared with {before.id}")
    return JSONResponse(before.diff(after, key=key, examples=examples).to_json())


@router.get(
    "/captures/{capture}/report",
    summary="A page about a capture, to keep",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}},
)
def report(capture: str, visit: CaptureVisit) -> Response:
    """One file with plots in it, for downloading."""
    found = visit.workspace.capture(capture)
    visit.has_read(Subject.CAPTURE, found.id, "report")
    named = {"Content-Disposition": f'attachment; filename="{found.id}.html"'}
    return HTMLResponse(found.report(), headers=named)
