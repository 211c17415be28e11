"""Captures: the working dataset at a breakpoint."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from fastapi import APIRouter, Query, Response

from clew.api.capture import Capture
from clew.auth.access_log import Subject
from clew.captures.captured_rows import ROW_ID
from clew.captures.statistics import Statistics
from clew.diagnostics import UserError
from clew.lang.typed import Value
from clew.server.access.visit import CaptureVisit, Visit
from clew.server.pages.captures_page import (
    EXAMPLES,
    SAMPLE,
    AskedDiff,
    CapturePage,
    capture_page,
    captures_page,
    diff_page,
    in_order_of_time,
)
from clew.server.pages.rendering import AtDesk

router = APIRouter()

_MOST = 200


@router.get("/captures")
@router.get("/captures.json")
def captures(visit: CaptureVisit, desk: AtDesk, run: str = "") -> Response:
    """All captures, or those of a run."""
    found = visit.workspace.captures(run=run or None, limit=_MOST)
    return desk.page(
        visit,
        "captures.html",
        section="Captures",
        page=lambda: captures_page(found),
        document=lambda: {"captures": [capture.to_json() for capture in found]},
    )


@router.get("/captures/{capture}")
@router.get("/captures/{capture}.json")
def one_capture(
    capture: str,
    visit: CaptureVisit,
    desk: AtDesk,
    other: str = "",
    examples: Annotated[int, Query(ge=1, le=EXAMPLES[-1])] = EXAMPLES[0],
) -> Response:
    """A capture, or its differences from another one."""
    found = visit.workspace.capture(capture)
    visit.has_read(Subject.CAPTURE, found.id, f"compared with {other}" if other else "shown")
    if other:
        return _compared(visit, desk, visit.workspace.capture(other), found, examples)

    def page() -> CapturePage:
        return _page(found, visit.workspace.captures(limit=_MOST))

    def document() -> Mapping[str, object]:
        statistics = _statistics(found)[0]
        return {**found.to_json(), "statistics": statistics.to_json() if statistics else None}

    return desk.page(visit, "capture.html", section="Captures", page=page, document=document)


def _page(found: Capture, all_captures: Sequence[Capture]) -> CapturePage:
    statistics, problem = _statistics(found)
    alike = [each for each in all_captures if each.breakpoint == found.breakpoint]
    return capture_page(found, statistics, _sample(found), alike, problem)


def _statistics(found: Capture) -> tuple[Statistics | None, str | None]:
    try:
        return found.statistics(), None
    except UserError as error:
        return None, error.diagnostic.message


def _sample(found: Capture) -> tuple[Sequence[str], Sequence[Sequence[Value]]]:
    """The first rows; none if the capture has only statistics."""
    try:
        table = found.first(SAMPLE)
    except UserError:
        return (), ()
    names = [name for name in table.column_names if name != ROW_ID]
    return names, list(zip(*(table[name].to_pylist() for name in names), strict=True))


def _compared(visit: Visit, desk: AtDesk, other: Capture, found: Capture, examples: int) -> Response:
    visit.has_read(Subject.CAPTURE, other.id, f"compared with {found.id}")
    before, after = (other, found) if desk.wants_json else in_order_of_time(other, found)
    diff = before.diff(after, examples=examples)
    return desk.page(
        visit,
        "capture_diff.html",
        section="Captures",
        page=lambda: diff_page(before, after, diff, AskedDiff(found.id, other.id, examples)),
        document=diff.to_json,
    )
