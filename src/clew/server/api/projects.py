"""Projects, plans and datasets of the workspace."""

import json
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse

from clew.auth.access_log import Subject
from clew.auth.roles import Permission
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import NO_SUCH_ADDRESS
from clew.plan import plan_to_json
from clew.plan.json_form import breakpoints_to_json
from clew.server.access.visit import AskingVisit, RunVisit, Visit, may
from clew.server.api.documents import (
    ApiDocument,
    DatasetDocument,
    DatasetsDocument,
    OverviewDocument,
    ProjectDocument,
    ProjectsDocument,
    ProjectVersionDocument,
    SearchDocument,
    VersionDocument,
)
from clew.server.api.etags import unchanging

router = APIRouter(tags=["workspace"])

ProjectVisit = Annotated[Visit, may(Permission.ACTIVATE_PROJECTS)]


@router.get(
    "/overview",
    summary="Get where each project stands in each period",
    responses={200: {"model": OverviewDocument}},
)
def overview(
    visit: RunVisit,
    level: Annotated[str | None, Query(max_length=255)] = None,
    until: Annotated[str | None, Query(max_length=255)] = None,
    periods: Annotated[int, Query(ge=1, le=60)] = 12,
    project: Annotated[str | None, Query(max_length=255)] = None,
) -> JSONResponse:
    """Which run counts for each project and period, whether it is current, and its control totals and checks.

    The periods are of one level of the calendar, the newest first; `until` is the last of them.
    """
    found = visit.workspace.overview(level=level, until=until, periods=periods, project=project)
    return JSONResponse(found.to_json())


@router.get("/search", summary="Search for a name or a value", responses={200: {"model": SearchDocument}})
def search(
    visit: AskingVisit,
    q: Annotated[str, Query(min_length=1, max_length=200, pattern=r"\S", description="The text to search for.")],
) -> JSONResponse:
    """Projects, datasets, columns, periods, runs, trace ids, and rows of the newest results that have this value.

    Says how many results were not looked at. Roles that may not read rows get names only.
    """
    return JSONResponse(visit.workspace.search(q).to_json())


@router.get("/projects", summary="List all projects", responses={200: {"model": ProjectsDocument}})
def projects(visit: RunVisit) -> JSONResponse:
    """Each project with the version that runs."""
    return JSONResponse({"projects": [view.to_json() for view in visit.workspace.projects.all()]})


@router.get(
    "/projects/{project}", summary="Get a project and its versions", responses={200: {"model": ProjectDocument}}
)
def project_page(project: str, visit: RunVisit) -> JSONResponse:
    """By id or name."""
    view = visit.workspace.projects.find(project)
    versions = visit.workspace.projects.versions(view.project)
    return JSONResponse({**view.to_json(), "versions": [version.to_json() for version in versions]})


@router.get(
    "/projects/{project}/versions/{version}",
    summary="Get a frozen definition of a project",
    responses={200: {"model": VersionDocument}},
)
def version_page(
    project: str, version: Annotated[int, Path(ge=1, le=2**31 - 1)], request: Request, visit: RunVisit
) -> Response:
    """The file and the plan as they were when the version was activated."""
    found = visit.workspace.projects.version(project, version)
    return unchanging(
        request,
        lambda: {**found.to_json(), "definition": found.definition, "plan": json.loads(found.plan)},
        found.digest,
        found.status,
    )


@router.post(
    "/projects/{project}/activate",
    summary="Activate a project",
    responses={200: {"model": ProjectVersionDocument}},
)
def activate_project(project: str, visit: ProjectVisit) -> JSONResponse:
    """Checks the file and freezes it as the next version, unless that would break other active definitions.

    If nothing has changed, the version stays the same.
    """
    version = visit.workspace.projects.activate(project)
    visit.has_changed(Subject.PROJECT, version.project, f"activated version {version.version}")
    return JSONResponse(version.to_json())


@router.post(
    "/projects/{project}/deactivate",
    summary="Deactivate a project",
    responses={200: {"model": ProjectVersionDocument}},
)
def deactivate_project(project: str, visit: ProjectVisit) -> JSONResponse:
    """The project no longer runs. Answers 409 if it is not active."""
    version = visit.workspace.projects.deactivate(project)
    visit.has_changed(Subject.PROJECT, version.project, f"deactivated version {version.version}")
    return JSONResponse(version.to_json())


@router.get(
    "/projects/{project}/plan",
    summary="Get the plan of the project's file",
    responses={200: {"model": ApiDocument}},
)
def plan(project: str, visit: RunVisit) -> JSONResponse:
    """The plan of the current file: what a run of it would do."""
    return JSONResponse(plan_to_json(visit.workspace.plan(project)))


@router.get(
    "/projects/{project}/breakpoints",
    summary="List the breakpoints of a project",
    responses={200: {"model": ApiDocument}},
)
def breakpoints(project: str, visit: RunVisit) -> JSONResponse:
    """The breakpoints of the current file: where a run can be captured."""
    return JSONResponse(breakpoints_to_json(visit.workspace.plan(project)))


@router.get("/plans/{digest}", summary="Get a plan by its digest", responses={200: {"model": ApiDocument}})
def plan_by_digest(
    digest: Annotated[str, Path(pattern="^[0-9a-f]{64}$")], request: Request, visit: RunVisit
) -> Response:
    """A plan that at least one run has executed."""
    found = visit.workspace.kept_plan(digest)
    if found is None:
        raise UserError(NO_SUCH_ADDRESS.anywhere(path=request.url.path, hint="no run here has executed this plan"))
    return unchanging(request, lambda: plan_to_json(found), digest)


@router.get("/datasets", summary="List all datasets", responses={200: {"model": DatasetsDocument}})
def datasets(visit: RunVisit) -> JSONResponse:
    """Datasets that are declared in files, and datasets that runs have registered."""
    return JSONResponse({"datasets": [view.to_json() for view in visit.workspace.datasets.all()]})


@router.get("/datasets/{dataset}", summary="Get a dataset", responses={200: {"model": DatasetDocument}})
def dataset_page(dataset: str, visit: RunVisit) -> JSONResponse:
    """By id or name, with its columns and versions."""
    return JSONResponse(visit.workspace.datasets.find(dataset).to_json())
