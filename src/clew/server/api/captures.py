"""Captures: the working dataset at a breakpoint. Every read is recorded."""

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


@router.get("/captures", summary="List captures, newest first", responses={200: {"model": CapturesDocument}})
def list_captures(
    visit: CaptureVisit,
    run: Annotated[str | None, Query(max_length=255, description="Only captures of this run.")] = None,
    request_id: Annotated[
        str | None, Query(max_length=255, description="Only captures of the run with this request id.")
    ] = None,
    status: CaptureStatus | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> JSONResponse:
    """A description of each capture, without rows."""
    wanted = status.value if status is not None else None
    found = visit.workspace.captures(run=run, request_id=request_id, status=wanted, limit=limit)
    return JSONResponse({"captures": [capture.to_json() for capture in found]})


@router.get("/captures/{capture}", summary="Get a capture", responses={200: {"model": CaptureDocument}})
def show_capture(capture: str, visit: CaptureVisit) -> JSONResponse:
    """By its full id: the manifest, and statistics of its columns."""
    found = visit.workspace.capture(capture)
    visit.has_read(Subject.CAPTURE, found.id, "statistics")
    return JSONResponse(found.described())


@router.get(
    "/captures/{capture}/rows", summary="List rows of a capture", responses={200: {"model": CaptureRowsDocument}}
)
def rows_of_capture(
    capture: str, visit: CaptureVisit, limit: Annotated[int, Query(ge=1, le=10_000)] = 100
) -> JSONResponse:
    """The first rows that are not deleted, in the order of the run."""
    found = visit.workspace.capture(capture)
    visit.has_read(Subject.CAPTURE, found.id, f"first {limit} rows")
    return JSONResponse(found.first_rows(limit))


@router.get(
    "/captures/{capture}/diff/{other}",
    summary="Compare a capture with another one",
    responses={200: {"model": CaptureDiffDocument}},
)
def diff(
    capture: str,
    other: str,
    visit: CaptureVisit,
    key: Annotated[list[str], Query(max_length=20, description="Columns that identify a row.")] = [],  # noqa: B006 - FastAPI copies it
    examples: Annotated[int, Query(ge=0, le=1000)] = 10,
) -> JSONResponse:
    """Rows added, removed and changed, and columns side by side."""
    before, after = visit.workspace.capture(capture), visit.workspace.capture(other)
    visit.has_read(Subject.CAPTURE, before.id, f"compared with {after.id}")
    visit.has_read(Subject.CAPTURE, after.id, f"compared with {before.id}")
    return JSONResponse(before.diff(after, key=key, examples=examples).to_json())


@router.get(
    "/captures/{capture}/report",
    summary="Download a capture as a page",
    response_class=Response,
    responses={200: {"content": {"text/html": {}}}},
)
def report(capture: str, visit: CaptureVisit) -> Response:
    """One HTML file, including plots."""
    found = visit.workspace.capture(capture)
    visit.has_read(Subject.CAPTURE, found.id, "report")
    named = {"Content-Disposition": f'attachment; filename="{found.id}.html"'}
    return HTMLResponse(found.report(), headers=named)
