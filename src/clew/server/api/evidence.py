"""Evidence packs of runs that have ended. Every pack is recorded, as a read of rows and in the ledger."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from clew.api.run import Run
from clew.auth.access_log import Subject
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.server.access.visit import RowVisit, Visit

router = APIRouter(tags=["rows"])

ZIP = "application/zip"
_LARGEST = 2**31 - 1
Step = Annotated[int | None, Query(ge=0, le=_LARGEST)]


@router.get(
    "/runs/{run}/evidence",
    summary="Download an evidence pack",
    response_class=Response,
    responses={200: {"content": {ZIP: {"schema": {"type": "string", "format": "binary"}}}}},
)
def evidence(
    run: str,
    visit: RowVisit,
    column: Annotated[str | None, Query(min_length=1, max_length=255)] = None,
    row: Annotated[str | None, Query(max_length=100, description="A row id; or use `where`.")] = None,
    where: Annotated[str | None, Query(max_length=10_000, description="A condition that matches one row.")] = None,
    at: Step = None,
    output: Annotated[int | None, Query(ge=0, le=_LARGEST, description="Explain every value of this output.")] = None,
) -> Response:
    """A signed ZIP file: plan, events, versions, explanations with all rows behind them, and a program to verify it.

    Explains a column of a row, every value of an output, or, without either, the run alone.
    """
    found = visit.workspace.find_run(run)
    names_row = (row is None) != (where is None)
    if (
        names_row != (column is not None)
        or (row is not None and where is not None)
        or (names_row and output is not None)
    ):
        problem = "give `column` with either `row` or `where`, or `output`, or none of them"
        raise UserError(INVALID_REQUEST.anywhere(problem=problem))
    return pack_of(visit, found, row=row, column=column, where=where, at=at, output=output)


def pack_of(
    visit: Visit,
    run: Run,
    *,
    row: str | None,
    column: str | None,
    where: str | None,
    at: int | None,
    output: int | None,
) -> Response:
    """A pack as a file to save."""
    asked = run.open_trace().recorded(where) if where is not None else None
    told = {"row": row, "where": asked, "column": column, "at": at, "output": output}
    detail = ", ".join(f"{name} {value}" for name, value in told.items() if value is not None) or "the run"
    visit.has_read(Subject.EXPLANATION, run.id, f"evidence pack: {detail}")
    pack = run.evidence(row, column, where=where, at=at, output=output)
    name = f"evidence-{run.id[:8]}.zip"
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(pack.to_bytes(), media_type=ZIP, headers=headers)
