"""Outputs of a run: what each of them has written."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from clew.auth.access_log import Subject
from clew.server.access.visit import RowVisit
from clew.server.pages.output_page import output_page, output_query, output_step
from clew.server.pages.rendering import AtDesk
from clew.server.pages.rows_page import find_rows

router = APIRouter()

_LONGEST_TRAIL = 60


@router.get("/runs/{run}/outputs/{output}")
@router.get("/runs/{run}/outputs/{output}.json")
def one_output(
    run: str,
    output: int,
    visit: RowVisit,
    desk: AtDesk,
    after: str = "",
    offset: Annotated[int, Query(ge=0)] = 0,
    trail: Annotated[list[str] | None, Query(max_length=_LONGEST_TRAIL)] = None,
) -> Response:
    """An output with its rows."""
    asked = visit.workspace.get_run(run)
    trace = asked.open_trace()
    step = output_step(trace, output)
    query = output_query(step, after, offset, tuple(trail or ()))
    visit.has_read(Subject.TRACE, trace.run_id, f"rows written by step {output}")
    return desk.page(
        visit,
        "output.html",
        section="Runs",
        page=lambda: output_page(asked, trace, step, query),
        document=lambda: {"seq": output, "columns": list(step.columns), **find_rows(trace, query).to_json()},
        scripts=("rows.js",),
    )
