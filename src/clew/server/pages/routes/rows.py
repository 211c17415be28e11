"""Rows: the working dataset at a step, the history of a row, and explanations."""

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse

from clew.api.questions import ExplainedValue
from clew.auth.access_log import Subject
from clew.privacy.seen_trace import SeenTrace
from clew.server.access.visit import RowVisit, Visit
from clew.server.api.evidence import pack_of
from clew.server.pages import words
from clew.server.pages.explain_page import TOP, Verdict, explain_file, explain_page, more_rows, rows_before
from clew.server.pages.explain_tree import MOST_ON_A_PAGE, MOST_STREAMED, RunTitle
from clew.server.pages.quarantine_page import quarantine_page
from clew.server.pages.reconciliation_page import reconciliation_page
from clew.server.pages.rendering import AtDesk
from clew.server.pages.row_page import row_page
from clew.server.pages.rows_page import RowsQuery, find_rows, rows_page
from clew.server.pages.why_not_page import WhyNotQuery, why_not_page

router = APIRouter()

_MOST_AT_ONCE = 100
_LONGEST_TRAIL = 60
StepQuery = Annotated[int | None, Query(ge=0)]


@router.get("/runs/{run}/rows")
@router.get("/runs/{run}/rows.json")
def rows(
    run: str,
    visit: RowVisit,
    desk: AtDesk,
    at: StepQuery = None,
    where: str = "",
    sort: str = "",
    direction: str = "",
    columns: Annotated[list[str] | None, Query()] = None,
    after: str = "",
    offset: Annotated[int, Query(ge=0)] = 0,
    trail: Annotated[list[str] | None, Query(max_length=_LONGEST_TRAIL)] = None,
    changed: str = "",
) -> Response:
    """The working dataset after a step, or with `changed` what the step created, changed and deleted."""
    trace = visit.workspace.find_run(run).open_trace()
    shown = tuple(columns or ())
    way_back = tuple(trail or ())
    query = RowsQuery(at, where, sort, direction == "descending", shown, after, offset, way_back, changed=bool(changed))
    which = "rows changed by" if query.changed else "rows after"
    asked = f" where {trace.recorded(where)}" if where.strip() else ""
    visit.has_read(Subject.TRACE, trace.run_id, f"{which} step {at if at is not None else 'last'}{asked}")
    return desk.page(
        visit,
        "rows.html",
        section="Runs",
        page=lambda: rows_page(trace, query),
        document=lambda: find_rows(trace, query).to_json(),
        scripts=("rows.js",),
    )


@router.get("/runs/{run}/rows/{row}")
@router.get("/runs/{run}/rows/{row}.json")
def one_row(run: str, row: str, visit: RowVisit, desk: AtDesk, at: StepQuery = None) -> Response:
    """The history of a row."""
    asked = visit.workspace.find_run(run)
    trace = asked.open_trace()
    visit.has_read(Subject.TRACE, trace.run_id, f"row {row}")
    history = trace.history(row)
    seq = trace.run.checked_step(at)
    return desk.page(
        visit,
        "row.html",
        section="Runs",
        page=lambda: row_page(trace, history, seq, asked.source_state),
        document=lambda: history.to_json() | _at_step(trace, history.row_id, seq),
        scripts=("rows.js",),
    )


@router.get("/runs/{run}/explain.html")
def explanation_file(
    run: str,
    row: str,
    column: str,
    visit: RowVisit,
    desk: AtDesk,
    at: StepQuery = None,
    top: Annotated[int, Query(ge=1)] = TOP,
) -> Response:
    """The explanation as one file, to keep, send or print."""
    found = _explained(visit, run, row, column, at, top)
    page = explain_file(found, lambda run_id: title_of(visit, run_id), top=top)
    text = desk.templates.render("explain_file.html", page=page, style=desk.templates.style)
    name = f"explanation-{found.run_id[:8]}.html"
    return HTMLResponse(text, headers={"Content-Disposition": f'attachment; filename="{name}"'})


@router.get("/runs/{run}/evidence.zip")
def evidence_file(
    run: str, visit: RowVisit, row: str | None = None, column: str | None = None, at: StepQuery = None
) -> Response:
    """The evidence of a run, or of a value, as a signed file."""
    found = visit.workspace.find_run(run)
    wanted = (row, column) if row is not None and column is not None else (None, None)
    return pack_of(visit, found, row=wanted[0], column=wanted[1], where=None, at=at, output=None)


@router.get("/runs/{run}/explain/rows")
def explained_rows(
    run: str,
    row: str,
    column: str,
    visit: RowVisit,
    desk: AtDesk,
    at: StepQuery = None,
    skip: Annotated[int, Query(ge=0, lt=MOST_STREAMED)] = 0,
    top: Annotated[int, Query(ge=1, le=MOST_STREAMED)] = TOP,
    scale: Annotated[str, Query(max_length=60)] = "",
    share: Annotated[str, Query(max_length=60)] = "",
    verdict: Annotated[str, Query(max_length=60)] = "",
) -> Response:
    """More of the rows behind a summary. A script asks for them piece by piece, so that the first are there at once."""
    last = min(top, skip + _MOST_AT_ONCE)
    found = _explained(visit, run, row, column, at, last, skip)
    before, so_far = rows_before(skip, scale, share), Verdict.read(verdict)
    return desk.fragment("explain_rows.html", more_rows(found, lambda run_id: title_of(visit, run_id), before, so_far))


@router.get("/runs/{run}/explain")
@router.get("/runs/{run}/explain.json")
def explanation(
    run: str,
    row: str,
    column: str,
    visit: RowVisit,
    desk: AtDesk,
    at: StepQuery = None,
    top: Annotated[int, Query(ge=1)] = TOP,
    restated: bool = False,
) -> Response:
    """Why a value is what it is, and what earlier runs had in its place if that is asked."""
    found = _explained(visit, run, row, column, at, top)
    earlier = visit.workspace.find_run(run).restatements(row, column, at=at) if restated else None
    return desk.page(
        visit,
        "explain.html",
        section="Runs",
        page=lambda: explain_page(found, lambda run_id: title_of(visit, run_id), top=top, restated=earlier),
        document=lambda: {**found.to_json(), **({} if earlier is None else {"restated": earlier.to_json()})},
        scripts=("tree.js",),
    )


@router.get("/runs/{run}/why-not")
@router.get("/runs/{run}/why-not.json")
def not_in_output(
    run: str, visit: RowVisit, desk: AtDesk, where: str = "", output: Annotated[int | None, Query(ge=0)] = None
) -> Response:
    """Why rows are not in an output."""
    asked = visit.workspace.find_run(run)
    trace = asked.open_trace()
    query = WhyNotQuery(where.strip(), output)
    if query.where:
        visit.has_read(Subject.EXPLANATION, trace.run_id, f"why not: {trace.recorded(query.where)}")
    return desk.page(
        visit,
        "why_not.html",
        section="Runs",
        page=lambda: why_not_page(trace, query, lambda wanted: asked.why_not(wanted.where, output=wanted.output)),
        document=lambda: asked.why_not(query.where, output=query.output).to_json(),
    )


@router.get("/runs/{run}/reconciliation")
@router.get("/runs/{run}/reconciliation.json")
def reconciliation(run: str, visit: RowVisit, desk: AtDesk) -> Response:
    """What came in and went out, for each output."""
    asked = visit.workspace.find_run(run)
    trace = asked.open_trace()
    visit.has_read(Subject.TRACE, trace.run_id, "reconciliation")
    return desk.page(
        visit,
        "reconciliation.html",
        section="Runs",
        page=lambda: reconciliation_page(asked.reconcile(), trace.plan.title, trace.period),
        document=lambda: asked.reconcile().to_json(),
    )


@router.get("/runs/{run}/quarantine")
@router.get("/runs/{run}/quarantine.json")
def quarantine(run: str, visit: RowVisit, desk: AtDesk) -> Response:
    """The rows that were not loaded, with the reasons."""
    asked = visit.workspace.find_run(run)
    trace = asked.open_trace()
    visit.has_read(Subject.TRACE, trace.run_id, "quarantine")
    return desk.page(
        visit,
        "quarantine.html",
        section="Runs",
        page=lambda: quarantine_page(trace.run_id, asked.quarantine(), trace.plan.title, trace.period),
        document=lambda: {"run_id": trace.run_id, "rows": [row.to_json() for row in asked.quarantine()]},
    )


def _at_step(trace: SeenTrace, row: str, seq: int) -> dict[str, object]:
    return {"at": seq, "row_at_step": trace.state(row, seq).to_json()["row_at_step"]}


def title_of(visit: Visit, run_id: str) -> RunTitle:
    """The title of a run."""
    view = visit.workspace.get_run(run_id).view
    request = view.record.request
    return RunTitle(words.isolated(view.plan.title if view.plan else request.project_id), request.period)


def _explained(
    visit: Visit, run: str, row: str, column: str, at: int | None, top: int, skip: int = 0
) -> ExplainedValue:
    asked = visit.workspace.find_run(run)
    visit.has_read(Subject.EXPLANATION, asked.id, f"row {row} column {column}")
    return asked.explain(row, column, at=at, top=top if skip else min(top, MOST_ON_A_PAGE), skip=skip)
