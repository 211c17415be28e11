"""What the workspace defines: projects and datasets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Form, Response
from fastapi.responses import RedirectResponse

from clew.api.checking import find_project
from clew.api.datasets import DatasetView, find_dataset, list_datasets
from clew.api.projects import ProjectView, activate, deactivate, list_projects, project_version, show_project
from clew.api.workspace_files import WorkspaceFiles
from clew.auth.access_log import Subject
from clew.auth.roles import Permission
from clew.definitions import Status
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.plan import plan_to_json
from clew.runs.registry import ProjectVersion
from clew.server.access.visit import RunVisit, Visit, may
from clew.server.pages import addresses
from clew.server.pages.project_page import (
    FILE,
    ComparableDefinition,
    VersionChange,
    can_run,
    project_page,
    require_same_file,
    require_same_version,
    version_changes,
)
from clew.server.pages.rendering import AtDesk

router = APIRouter()

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
    found = tuple(list_projects(visit.workspace, visit.site.state))
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
    """A project, with what changed between two of its versions where they are named."""
    workspace, state = visit.workspace, visit.site.state
    view = show_project(workspace, state, project)
    definition = find_project(workspace.loaded, view.project)
    file_status = definition.status if definition else Status.INACTIVE
    versions = state.projects.project_versions(view.project)
    plan, problems = None, tuple[Diagnostic, ...]()
    try:
        plan = workspace.plan(view.project)
    except UserError as error:
        problems = error.diagnostics
    compared = _compared(visit, workspace, view, old, new) if old and new else None
    return desk.page(
        visit,
        "project.html",
        section="Projects",
        page=lambda: project_page(
            view,
            description=definition.description if definition else None,
            file=definition.file if definition else "",
            plan=plan,
            problems=problems,
            versions=versions,
            compared=compared,
            periods=_periods(visit, workspace) if can_run(view, file_status) else (),
            changes=_changes(visit, view, versions, file_status),
        ),
        document=lambda: {
            **view.to_json(),
            "plan": plan_to_json(plan) if plan else None,
            "versions": [version.to_json() for version in versions],
        },
        scripts=("plan.js",),
    )


@router.post("/projects/{project}/runs")
def start_run(
    project: str,
    period: Annotated[str, Form()],
    request_id: Annotated[str, Form()],
    visit: Annotated[Visit, may(Permission.START_RUNS)],
) -> RedirectResponse:
    """Ask for a run. The form carries a request id, so that sending it twice gives one run."""
    run = visit.starter.submit(project, period.strip(), request_id)
    return RedirectResponse(addresses.run(run.run_id), 303)


@router.post("/projects/{project}/activate")
def activate_project(project: str, seen: Annotated[str, Form()], visit: DecidingVisit) -> RedirectResponse:
    """Make the file that the page has shown the version that runs."""
    workspace, state = visit.workspace_now, visit.site.state
    view = show_project(workspace, state, project)
    require_same_file(workspace, view.project, seen)
    version = activate(workspace, state, view.project, visit.caller.name)
    visit.has_changed(Subject.PROJECT, version.project, f"activated version {version.version}")
    return RedirectResponse(addresses.project(version.project), 303)


@router.post("/projects/{project}/deactivate")
def deactivate_project(project: str, seen: Annotated[str, Form()], visit: DecidingVisit) -> RedirectResponse:
    """Take the version that the page has shown out of use."""
    workspace, state = visit.workspace, visit.site.state
    view = show_project(workspace, state, project)
    require_same_version(view, seen)
    version = deactivate(workspace, state, view.project, visit.caller.name)
    visit.has_changed(Subject.PROJECT, version.project, f"deactivated version {version.version}")
    return RedirectResponse(addresses.project(version.project), 303)


@router.get("/datasets")
@router.get("/datasets.json")
def datasets(visit: RunVisit, desk: AtDesk) -> Response:
    """All datasets."""
    found = tuple(list_datasets(visit.workspace, visit.site.state))
    return desk.page(
        visit,
        "datasets.html",
        section="Datasets",
        page=lambda: DatasetsPage(found),
        document=lambda: {"datasets": [view.to_json() for view in found]},
    )


@router.get("/datasets/{dataset}")
@router.get("/datasets/{dataset}.json")
def one_dataset(dataset: str, visit: RunVisit, desk: AtDesk) -> Response:
    """A dataset."""
    found = find_dataset(visit.workspace, visit.site.state, dataset)
    return desk.page(visit, "dataset.html", section="Datasets", page=lambda: found, document=found.to_json)


def _periods(visit: Visit, workspace: WorkspaceFiles) -> list[str]:
    if not visit.caller.may(Permission.START_RUNS) or visit.caller.csrf is None:
        return []
    return [period.identifier for period in workspace.loaded.workspace.periods.periods]


def _changes(
    visit: Visit, view: ProjectView, versions: Sequence[ProjectVersion], file_status: Status
) -> tuple[VersionChange, ...]:
    may_decide = visit.caller.may(Permission.ACTIVATE_PROJECTS) and visit.caller.csrf is not None
    return version_changes(view, versions[0].version if versions else None, file_status, may_decide=may_decide)


def _compared(
    visit: Visit, workspace: WorkspaceFiles, view: ProjectView, old: str, new: str
) -> tuple[ComparableDefinition, ComparableDefinition]:
    return _definition(visit, workspace, view, old), _definition(visit, workspace, view, new)


def _definition(visit: Visit, workspace: WorkspaceFiles, view: ProjectView, name: str) -> ComparableDefinition:
    if name == FILE:
        project = find_project(workspace.loaded, view.project)
        text = workspace.source_of(project.file) if project else None
        return ComparableDefinition("the file as it is", text or "", view.digest)
    if not name.isdecimal():
        raise UserError(INVALID_REQUEST.anywhere(problem=f'no version "{name}"'))
    found = project_version(visit.site.state, view.project, int(name))
    return ComparableDefinition(f"version {found.version}", found.definition, found.digest)
