"""Tables as files: rows of runs, comparisons, captures. Every download is recorded as the read of rows that it is."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Query, Response

from clew.auth.access_log import Subject
from clew.server.access.visit import CaptureVisit, RowVisit

if TYPE_CHECKING:
    from clew.api.table_downloads import TableFile

router = APIRouter()

_LARGEST = 2**31 - 1
_MOST_ROWS = 50_000
_FILES: dict[int | str, dict[str, Any]] = {
    200: {
        "content": {
            "text/csv": {"schema": {"type": "string"}},
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": {
                "schema": {"type": "string", "format": "binary"}
            },
            "application/vnd.apache.parquet": {"schema": {"type": "string", "format": "binary"}},
        }
    }
}

Wanted = Annotated[Literal["csv", "xlsx", "parquet"], Query(alias="format")]
Step = Annotated[int | None, Query(ge=0, le=_LARGEST)]
AtSeq = Annotated[int | None, Query(ge=0, le=_LARGEST, description="After this step, instead of an output.")]
Condition = Annotated[str | None, Query(max_length=10_000, description="A condition in the expression language.")]


@router.get(
    "/runs/{run}/download/rows",
    summary="Download rows of a run",
    tags=["rows"],
    response_class=Response,
    responses=_FILES,
)
def rows(
    run: str,
    visit: RowVisit,
    wanted: Wanted = "csv",
    where: Condition = None,
    at: Annotated[int | None, Query(ge=0, le=_LARGEST, description="After this step; the default is the last.")] = None,
    step: Annotated[int | None, Query(ge=0, le=_LARGEST, description="Only rows that this step changed.")] = None,
    output: Annotated[int | None, Query(ge=0, le=_LARGEST, description="Only what this output has written.")] = None,
    sort: Annotated[str | None, Query(max_length=255, description="Sort by this column.")] = None,
    descending: bool = False,
    columns: Annotated[list[str] | None, Query(max_length=1000, description="Only these columns.")] = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = _MOST_ROWS,
) -> Response:
    """A file with at most 50,000 rows; `X-Clew-Truncated` says whether there are more, and so does its name."""
    found = visit.workspace.find_run(run)
    trace = found.open_trace()
    told = {
        "where": trace.recorded(where) if where else None,
        "at": at,
        "step": step,
        "output": output,
        "sort": sort,
    }
    detail = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None) or "all rows"
    visit.has_read(Subject.TRACE, found.id, f"download as {wanted}: {detail}")
    return _sent(
        found.download(
            wanted,
            where=where or None,
            at=at,
            step=step,
            output=output,
            sort=sort or None,
            descending=descending,
            columns=tuple(columns or ()),
            limit=limit,
        )
    )


@router.get(
    "/runs/{run}/download/compare",
    summary="Download the rows in which two runs differ",
    tags=["rows"],
    response_class=Response,
    responses=_FILES,
)
def comparison(
    run: str,
    visit: RowVisit,
    other: Annotated[str, Query(min_length=1, max_length=100, description="Another run of the same project.")],
    wanted: Wanted = "csv",
    output: Step = None,
    at: AtSeq = None,
    where: Condition = None,
) -> Response:
    """A line for each column of each row that differs, of at most 10,000 rows."""
    first, second = visit.workspace.find_run(run), visit.workspace.find_run(other)
    traces = [each.open_trace() for each in (first, second)]  # nothing to read and to record until both have ended
    asked = f" where {traces[0].recorded(where)}" if where else ""
    visit.has_read(Subject.TRACE, first.id, f"download as {wanted}: compared with {second.id}{asked}")
    visit.has_read(Subject.TRACE, second.id, f"download as {wanted}: compared with {first.id}{asked}")
    return _sent(first.download_comparison(second.id, wanted, output=output, at=at, where=where or None))


@router.get(
    "/captures/{capture}/download",
    summary="Download the rows of a capture",
    tags=["captures"],
    response_class=Response,
    responses=_FILES,
)
def captured_rows(
    capture: str,
    visit: CaptureVisit,
    wanted: Wanted = "csv",
    limit: Annotated[int, Query(ge=1, le=_MOST_ROWS)] = _MOST_ROWS,
) -> Response:
    """The first rows that are not deleted, in the order of the run."""
    found = visit.workspace.capture(capture)
    visit.has_read(Subject.CAPTURE, found.id, f"download as {wanted}: first {limit} rows")
    return _sent(found.download(wanted, limit=limit))


def _sent(file: "TableFile") -> Response:
    headers = {
        "Content-Disposition": f'attachment; filename="{file.name}"',
        "Cache-Control": "no-store",
        "X-Clew-Rows": str(file.rows),
        "X-Clew-Truncated": "true" if file.is_cut else "false",
    }
    return Response(file.content, media_type=file.media_type, headers=headers)
