"""What the workspace defines: projects and datasets."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse

from clew.api.datasets import DatasetView
from clew.api.projects import ProjectView
from clew.api.workspace_files import WorkspaceFiles
from clew.auth.access_log import Subject
from clew.auth.roles import Permission
from clew.deferred import dataclass
from clew.definitions import Project, Status
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.events.snapshot import RunStatus
from clew.plan import plan_to_json
from clew.runs.registry import ProjectVersion
from clew.server.access.visit import AskingVisit, RunVisit, Visit, may
from clew.server.pages import addresses
from clew.server.pages.dataset_page import Preview, dataset_page, preview_of
from clew.server.pages.drawing.picture_file import plan_file
from clew.server.pages.drawing.plan_picture import plan_picture
from clew.server.pages.project_charts import CHART_PERIODS, MOST_BARS, charts_of
from clew.server.pages.project_operations import operations_of, scenarios_of
from clew.server.pages.project_page import (
    FILE,
    ComparableDefinition,
    ProjectPage,
    VersionChange,
    can_run,
    project_page,
    require_same_version,
    version_changes,
)
from clew.server.pages.rendering import AtDesk

router = APIRouter()

_RUNS_LOOKED_AT = 30
DecidingVisit = Annotated[Visit, may(Permission.ACTIVATE_PROJECTS)]


@dataclass(frozen=True, slots=True)
class ProjectsPage:
    """All projects."""

    lines: tuple[ProjectView, ...]


@dataclass(frozen=True, slots=True)
class DatasetsPage:
    """All datasets."""

    lines: tuple[DatasetView, ...]


@router.get("/projects")
@router.get("/projects.json")
def projects(visit: RunVisit, desk: AtDesk) -> Response:
    """All projects."""
    found = tuple(visit.workspace.projects.all())
    return desk.page(
        visit,
        "projects.html",
        section="Projects",
        page=lambda: ProjectsPage(found),
        document=lambda: {"projects": [view.to_json() for view in found]},
    )


@router.get("/projects/{project}")
@router.get("/projects/{project}.json")
def one_project(project: str, visit: RunVisit, desk: AtDesk, old: str = "", new: str = "") -> Response:
    """A project, with the changes between two of its versions if they are given."""
    files = visit.workspace.files
    view = visit.workspace.projects.find(project)
    definition = _defined(files, view)
    file_status = definition.status if definition else Status.INACTIVE
    versions = visit.workspace.projects.versions(view.project)
    plan, problems = None, tuple[Diagnostic, ...]()
    try:
        plan = files.plan(view.project)
    except UserError as error:
        problems = error.diagnostics
    compared = _compared(visit, files, view, old, new) if old and new else None

    def page() -> ProjectPage:
        overview = visit.workspace.overview(project=view.project, periods=CHART_PERIODS)
        ended = [run.record for run in visit.workspace.find_runs(project=view.project, limit=MOST_BARS)]
        return project_page(
            view,
            description=definition.description if definition else None,
            file=definition.file if definition else "",
            plan=plan,
            problems=problems,
            versions=versions,
            compared=compared,
            periods=_periods(visit, files) if can_run(view, file_status) else (),
            changes=_changes(visit, view, versions, file_status),
            operations=operations_of(
                plan,
                scenarios_of(definition, files.loaded.workspace.scenarios),
                overview,
            ),
            charts=charts_of(overview, ended),
            tried_on=_last_completed(visit, view.project),
        )

    return desk.page(
        visit,
        "project.html",
        section="Projects",
        page=page,
        document=lambda: {
            **view.to_json(),
            "plan": plan_to_json(plan) if plan else None,
            "versions": [version.to_json() for version in versions],
        },
        scripts=("plan.js",),
    )


@router.get("/projects/{project}/plan.svg")
def plan_of_project(project: str, visit: RunVisit, desk: AtDesk) -> Response:
    """The picture of the plan of a project, as a file."""
    view = visit.workspace.projects.find(project)
    plan = visit.workspace.files.plan(view.project)
    return desk.picture(plan_file(plan_picture(plan), view.name), f"plan-{view.project}")


@router.post("/projects/{project}/runs")
def start_run(
    project: str,
    period: Annotated[str, Form()],
    request_id: Annotated[str, Form()],
    visit: Annotated[Visit, may(Permission.START_RUNS)],
    capture: Annotated[list[str] | None, Form()] = None,
) -> RedirectResponse:
    """Request a run. The form contains a request id, so that sending it twice creates one run."""
    captures = [each for each in capture or () if each]
    run = visit.workspace.submit(project, period.strip(), request_id=request_id, captures=captures)
    return RedirectResponse(addresses.run(run.id), 303)


@router.post("/projects/{project}/activate")
def activate_project(project: str, seen: Annotated[str, Form()], visit: DecidingVisit) -> RedirectResponse:
    """Activate the file that the page showed."""
    version = visit.workspace.projects.activate(project, digest=seen)
    visit.has_changed(Subject.PROJECT, version.project, f"activated version {version.version}")
    return RedirectResponse(addresses.project(version.project), 303)


@router.post("/projects/{project}/deactivate")
def deactivate_project(project: str, seen: Annotated[str, Form()], visit: DecidingVisit) -> RedirectResponse:
    """Deactivate the version that the page showed."""
    projects = visit.workspace.projects
    view = projects.find(project)
    require_same_version(view, seen)
    version = projects.deactivate(view.project)
    visit.has_changed(Subject.PROJECT, version.project, f"deactivated version {version.version}")
    return RedirectResponse(addresses.project(version.project), 303)


@router.get("/datasets")
@router.get("/datasets.json")
def datasets(visit: RunVisit, desk: AtDesk) -> Response:
    """All datasets."""
    found = tuple(visit.workspace.datasets.all())
    return desk.page(
        visit,
        "datasets.html",
        section="Datasets",
        page=lambda: DatasetsPage(found),
        document=lambda: {"datasets": [view.to_json() for view in found]},
    )


@router.get("/datasets/{dataset}")
@router.get("/datasets/{dataset}.json")
def one_dataset(dataset: str, visit: AskingVisit, desk: AtDesk) -> Response:
    """A dataset, with its first rows for those who may read rows."""
    found = visit.workspace.datasets.find(dataset)
    return desk.page(
        visit,
        "dataset.html",
        section="Datasets",
        page=lambda: dataset_page(found, visit.workspace.files, _preview(visit, found)),
        document=found.to_json,
    )


def _preview(visit: Visit, dataset: DatasetView) -> Preview | None:
    if not visit.caller.may(Permission.READ_ROWS):
        return None
    runs = visit.workspace.find_runs(status=RunStatus.COMPLETED.value, limit=_RUNS_LOOKED_AT)
    return preview_of(dataset, runs, visit.workspace.find_run)


def _last_completed(visit: Visit, project: str) -> str | None:
    """The last run of a project that completed; None where the caller may not see its rows."""
    if not visit.caller.may(Permission.READ_ROWS):
        return None
    found = visit.workspace.find_runs(project=project, status=RunStatus.COMPLETED.value, limit=1)
    return found[0].id if found else None


def _defined(files: WorkspaceFiles, view: ProjectView) -> Project | None:
    return next((each for each in files.loaded.workspace.projects if each.id == view.project), None)


def _periods(visit: Visit, files: WorkspaceFiles) -> list[str]:
    if not visit.caller.may(Permission.START_RUNS) or visit.caller.csrf is None:
        return []
    return [period.identifier for period in files.loaded.workspace.periods.periods]


def _changes(
    visit: Visit, view: ProjectView, versions: Sequence[ProjectVersion], file_status: Status
) -> tuple[VersionChange, ...]:
    may_decide = visit.caller.may(Permission.ACTIVATE_PROJECTS) and visit.caller.csrf is not None
    return version_changes(view, versions[0].version if versions else None, file_status, may_decide=may_decide)


def _compared(
    visit: Visit, files: WorkspaceFiles, view: ProjectView, old: str, new: str
) -> tuple[ComparableDefinition, ComparableDefinition]:
    return _definition(visit, files, view, old), _definition(visit, files, view, new)


def _definition(visit: Visit, files: WorkspaceFiles, view: ProjectView, name: str) -> ComparableDefinition:
    if name == FILE:
        project = _defined(files, view)
        text = files.source_of(project.file) if project else None
        return ComparableDefinition("the current file", text or "", view.digest)
    if not name.isdecimal():
        raise UserError(INVALID_REQUEST.anywhere(problem=f'no version "{name}"'))
    found = visit.workspace.projects.version(view.project, int(name))
    return ComparableDefinition(f"version {found.version}", found.definition, found.digest)
