"""Projects, plans and datasets of the workspace."""

import json
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from fastapi.responses import JSONResponse

from clew.auth.access_log import Subject
from clew.auth.roles import Permission
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import NO_SUCH_ADDRESS
from clew.plan import plan_to_json
from clew.plan.json_form import breakpoints_to_json
from clew.server.access.visit import RunVisit, Visit, may
from clew.server.api.documents import (
    ApiDocument,
    DatasetDocument,
    DatasetsDocument,
    ProjectDocument,
    ProjectsDocument,
    ProjectVersionDocument,
    VersionDocument,
)
from clew.server.api.etags import unchanging

router = APIRouter(tags=["workspace"])

ProjectVisit = Annotated[Visit, may(Permission.ACTIVATE_PROJECTS)]


@router.get("/projects", summary="All projects", responses={200: {"model": ProjectsDocument}})
def projects(visit: RunVisit) -> JSONResponse:
    """Each with which version of it runs."""
    return JSONResponse({"projects": [view.to_json() for view in visit.workspace.projects.all()]})


@router.get("/projects/{project}", summary="A project and its versions", responses={200: {"model": ProjectDocument}})
def project_page(project: str, visit: RunVisit) -> JSONResponse:
    """By id or name."""
    view = visit.workspace.projects.find(project)
    versions = visit.workspace.projects.versions(view.project)
    return JSONResponse({**view.to_json(), "versions": [version.to_json() for version in versions]})


@router.get(
    "/projects/{project}/versions/{version}",
    summary="A frozen definition of a project",
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
    summary="Make the project's file the version that runs",
    responses={200: {"model": ProjectVersionDocument}},
)
def activate_project(project: str, visit: ProjectVisit) -> JSONResponse:
    """The file is checked and frozen as the next version, unless that would break others that are active.

    Activated again without a change it stays the same version.
    """
    version = visit.workspace.projects.activate(project)
    visit.has_changed(Subject.PROJECT, version.project, f"activated version {version.version}")
    return JSONResponse(version.to_json())


@router.post(
    "/projects/{project}/deactivate",
    summary="Take a project out of use",
    responses={200: {"model": ProjectVersionDocument}},
)
def deactivate_project(project: str, visit: ProjectVisit) -> JSONResponse:
    """It does not run any more; 409 where it is not active."""
    version = visit.workspace.projects.deactivate(project)
    visit.has_changed(Subject.PROJECT, version.project, f"deactivated version {version.version}")
    return JSONResponse(version.to_json())


@router.get(
    "/projects/{project}/plan",
    summary="What a run of the project's file would do",
    responses={200: {"model": ApiDocument}},
)
def plan(project: str, visit: RunVisit) -> JSONResponse:
    """The plan of the file as it stands."""
    return JSONResponse(plan_to_json(visit.workspace.plan(project)))


@router.get(
    "/projects/{project}/breakpoints",
    summary="Where a run of the project can be captured",
    responses={200: {"model": ApiDocument}},
)
def breakpoints(project: str, visit: RunVisit) -> JSONResponse:
    """The breakpoints of the file as it stands."""
    return JSONResponse(breakpoints_to_json(visit.workspace.plan(project)))


@router.get("/plans/{digest}", summary="A plan by its digest", responses={200: {"model": ApiDocument}})
def plan_by_digest(
    digest: Annotated[str, Path(pattern="^[0-9a-f]{64}$")], request: Request, visit: RunVisit
) -> Response:
    """A plan that some run has executed."""
    found = visit.workspace.kept_plan(digest)
    if found is None:
        raise UserError(NO_SUCH_ADDRESS.anywhere(path=request.url.path, hint="no run here has executed this plan"))
    return unchanging(request, lambda: plan_to_json(found), digest)


@router.get("/datasets", summary="All datasets", responses={200: {"model": DatasetsDocument}})
def datasets(visit: RunVisit) -> JSONResponse:
    """Those that files declare, and those that runs have registered."""
    return JSONResponse({"datasets": [view.to_json() for view in visit.workspace.datasets.all()]})


@router.get("/datasets/{dataset}", summary="A dataset", responses={200: {"model": DatasetDocument}})
def dataset_page(dataset: str, visit: RunVisit) -> JSONResponse:
    """By id or name, with its columns and versions."""
    return JSONResponse(visit.workspace.datasets.find(dataset).to_json())
