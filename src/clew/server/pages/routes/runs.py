"""Runs: the list, and the page of a run."""

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Form, Query, Response
from fastapi.responses import RedirectResponse

from clew.api.overview import MOST_PERIODS
from clew.api.run import Run
from clew.auth.roles import Permission
from clew.events.snapshot import RunStatus
from clew.server.access.visit import AskingVisit, RunVisit, Visit, may
from clew.server.pages import addresses
from clew.server.pages.log_page import LogPage, log_page
from clew.server.pages.overview_page import overview_page
from clew.server.pages.rendering import AtDesk
from clew.server.pages.routes.rows import title_of
from clew.server.pages.run_page import Around, RunPage, run_page
from clew.server.pages.runs_page import RunListQuery, RunsPage, runs_page
from clew.server.pages.search_page import search_page

router = APIRouter()

_PAGE = 50


@router.get("/")
@router.get("/overview")
@router.get("/overview.json")
def home(
    visit: RunVisit,
    desk: AtDesk,
    level: str = "",
    until: str = "",
    periods: Annotated[int, Query(ge=1, le=MOST_PERIODS)] = 12,
) -> Response:
    """The start page: where each project stands in each period."""
    found = visit.workspace.overview(level=level or None, until=until or None, periods=periods)
    return desk.page(
        visit,
        "overview.html",
        section="Overview",
        page=lambda: overview_page(found, may_read_rows=visit.caller.may(Permission.READ_ROWS), periods=periods),
        document=found.to_json,
    )


@router.get("/search")
@router.get("/search.json")
def search(visit: AskingVisit, desk: AtDesk, q: Annotated[str, Query(max_length=200)] = "") -> Response:
    """What has a name or a value."""
    found = visit.workspace.search(q) if q.strip() else None
    return desk.page(
        visit,
        "search.html",
        section="Search",
        page=lambda: search_page(q, found),
        document=lambda: found.to_json() if found is not None else {"text": "", "hits": []},
    )


@router.get("/runs")
@router.get("/runs.json")
def runs(
    visit: RunVisit, desk: AtDesk, project: str = "", period: str = "", status: str = "", before: str = ""
) -> Response:
    """The list of runs."""
    wanted = RunListQuery(project, period.strip(), status if status in set(RunStatus) else "")
    found = visit.workspace.find_runs(
        project=wanted.project or None,
        period=wanted.period or None,
        status=wanted.status or None,
        limit=_PAGE + 1,
        before=before or None,
    )

    def page() -> RunsPage:
        looked = [(run.record, run.projected().snapshot) for run in found[:_PAGE]]
        return runs_page(looked, wanted, visit.project_ids(), has_more=len(found) > _PAGE)

    return desk.page(
        visit,
        "runs.html",
        section="Runs",
        page=page,
        document=lambda: {
            "runs": [run.record.to_json() for run in found[:_PAGE]],
            "has_more": len(found) > _PAGE,
        },
        scripts=("refresh.js",),
    )


@router.get("/runs/{run}")
@router.get("/runs/{run}.json")
def one_run(run: str, visit: RunVisit, desk: AtDesk) -> Response:
    """A run."""
    found = visit.workspace.get_run(run).sealed()
    return desk.page(
        visit,
        "run.html",
        section="Runs",
        page=lambda: _run_page(visit, found),
        document=found.to_json,
        scripts=("run.js",),
    )


@router.get("/runs/{run}/fragment")
def run_fragment(run: str, visit: RunVisit, desk: AtDesk) -> Response:
    """The current content of the page of a run, without its frame. The page fetches it after every event."""
    return desk.fragment("run_state.html", _run_page(visit, visit.workspace.get_run(run)))


@router.get("/runs/{run}/log")
@router.get("/runs/{run}/log.json")
def driver_log(run: str, visit: Annotated[Visit, may(Permission.SEND_SIGNALS)], desk: AtDesk) -> Response:
    """What the drivers of a run did and met."""
    found = visit.workspace.find_run(run)
    lines = found.driver_log()

    def page() -> LogPage:
        title = title_of(visit, found.id)
        return log_page(found.id, title.title, title.period, lines)

    return desk.page(
        visit,
        "log.html",
        section="Runs",
        page=page,
        document=lambda: {"run_id": found.id, "lines": [line.to_json() for line in lines]},
        scripts=("refresh.js",),
    )


@router.post("/runs/{run}/rerun")
def start_rerun(
    run: str,
    request_id: Annotated[str, Form()],
    visit: Annotated[Visit, may(Permission.START_RUNS)],
    changed_inputs: Annotated[bool, Form()] = False,
) -> RedirectResponse:
    """Request a rerun. The form contains a request id, so that sending it twice creates one run."""
    made = visit.workspace.find_run(run).submit_rerun(changed_inputs=changed_inputs, request_id=request_id)
    return RedirectResponse(addresses.run(made.id), 303)


def _run_page(visit: Visit, run: Run) -> RunPage:
    caller = visit.caller

    around = Around(
        now=datetime.now(UTC),
        signals=run.possible_signals(),
        may_read_rows=caller.may(Permission.READ_ROWS),
        may_read_captures=caller.may(Permission.READ_CAPTURES),
        may_read_log=caller.may(Permission.READ_ROWS) and caller.may(Permission.SEND_SIGNALS),
        may_start=caller.may(Permission.START_RUNS) and caller.csrf is not None,
        verification=run.last_verification(),
        source_of=run.source_of,
    )
    return run_page(run.view, run.inputs(), run.events(), around)
