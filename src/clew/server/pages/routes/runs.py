"""Runs: the list, and one of them."""

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from clew.api.run_view import RunView
from clew.auth.roles import Permission
from clew.diagnostics import UserError
from clew.events.snapshot import RunStatus
from clew.runs.clock import utc_now
from clew.runs.request import RunFilter
from clew.runs.signals import NEEDED_ROLE, SignalType
from clew.server.access.visit import RunVisit, Visit
from clew.server.pages.rendering import AtDesk
from clew.server.pages.run_page import Around, RunPage, run_page
from clew.server.pages.runs_page import RunListQuery, RunsPage, runs_page

router = APIRouter()

_PAGE = 50


@router.get("/")
def home(visit: RunVisit) -> RedirectResponse:
    """Runs are what most people come for."""
    del visit
    return RedirectResponse("/runs", 307)


@router.get("/runs")
@router.get("/runs.json")
def runs(
    visit: RunVisit, desk: AtDesk, project: str = "", period: str = "", status: str = "", before: str = ""
) -> Response:
    """The list of runs."""
    wanted = RunListQuery(project, period.strip(), status if status in set(RunStatus) else "")
    which = RunFilter(
        environment_id=visit.site.environment.name,
        project_id=wanted.project or None,
        period=wanted.period or None,
        status=RunStatus(wanted.status) if wanted.status else None,
    )
    reader = visit.runs
    found = reader.runs(which, _PAGE + 1, reader.find(before) if before else None)

    def page() -> RunsPage:
        looked = [(run, reader.projected(run.run_id).snapshot) for run in found[:_PAGE]]
        return runs_page(looked, wanted, _projects(visit), has_more=len(found) > _PAGE)

    return desk.page(
        visit,
        "runs.html",
        section="Runs",
        page=page,
        document=lambda: {
            "runs": [run.to_json() for run in found[:_PAGE]],
            "has_more": len(found) > _PAGE,
        },
    )


@router.get("/runs/{run}")
@router.get("/runs/{run}.json")
def one_run(run: str, visit: RunVisit, desk: AtDesk) -> Response:
    """A run."""
    view = visit.runs.view(run)
    return desk.page(
        visit,
        "run.html",
        section="Runs",
        page=lambda: _run_page(visit, view),
        document=view.to_json,
        scripts=("run.js",),
    )


@router.get("/runs/{run}/fragment")
def run_fragment(run: str, visit: RunVisit, desk: AtDesk) -> Response:
    """What the page of a run shows now, without the frame around it: the page asks for it whenever an event comes."""
    return desk.fragment("run_state.html", _run_page(visit, visit.runs.view(run)))


def _run_page(visit: Visit, view: RunView) -> RunPage:
    reader = visit.runs
    return run_page(view, reader.parts(view.snapshot), reader.events(view.record.run_id), _around(visit, view))


def _projects(visit: Visit) -> list[str]:
    try:
        return [project.id for project in visit.workspace.loaded.workspace.projects]
    except UserError:
        return []


def _around(visit: Visit, view: RunView) -> Around:
    caller = visit.caller

    def may_send(signal: SignalType) -> bool:
        return caller.may(Permission.SEND_SIGNALS) and caller.role.signal_role >= NEEDED_ROLE[signal]

    return Around(
        now=utc_now(),
        may_send=may_send,
        may_read_rows=caller.may(Permission.READ_ROWS),
        may_read_captures=caller.may(Permission.READ_CAPTURES),
        source_of=lambda file: _source(visit, view, file),
    )


def _source(visit: Visit, view: RunView, file: str) -> str | None:
    """A file as it was when the run's version was activated; as it stands now for what versions do not keep."""
    workspace = visit.site.live.current()
    request = view.record.request
    project = next((each for each in workspace.loaded.workspace.projects if each.id == request.project_id), None)
    if project is not None and project.file == file:
        for version in visit.site.state.projects.project_versions(project.id):
            if str(version.version) == request.project_version:
                return version.definition
    return workspace.source_of(file)
