"""Which definition of a project runs: the activated version, or the file as a draft."""

import json
from dataclasses import dataclass
from typing import Literal

from clew.app.running.state import State
from clew.app.workspace import Workspace
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.runs import PROJECT_NOT_ACTIVE
from clew.diagnostics.codes.workspace import UNKNOWN_PROJECT
from clew.model import Project, Status
from clew.plan import Plan, plan_from_json, plan_to_json
from clew.runs.registry import ProjectVersion

ProjectState = Literal["draft", "active", "modified", "inactive"]


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project as its file and its versions have it."""

    project: str
    name: str
    state: ProjectState
    version: int | None
    digest: str | None
    """Of the file as it stands; None where it does not compile."""

    def to_json(self) -> dict[str, object]:
        """The form of `projects --json`."""
        return {
            "project": self.project,
            "name": self.name,
            "state": self.state,
            "version": self.version,
            "digest": self.digest,
        }


def plan_to_run(workspace: Workspace, state: State, name: str) -> tuple[int | None, Plan]:
    """The version and the plan that a run takes: the active version's, or the file's with None for a draft.

    A project whose file says that it is active and that nobody has activated yet is activated by its first run.
    """
    project = _project(workspace, name)
    active = state.projects.active(project.id)
    if active is not None:
        return active.version, plan_from_json(json.loads(active.plan))
    plan = workspace.plan(project.id)
    if project.status is Status.ACTIVE and not state.projects.project_versions(project.id):
        return activate(workspace, state, project.id, actor="first run").version, plan
    if project.status is Status.INACTIVE:
        raise UserError(PROJECT_NOT_ACTIVE.at(project.place("status"), project=project.id))
    return None, plan


def activate(workspace: Workspace, state: State, name: str, actor: str) -> ProjectVersion:
    """Check a project and freeze it as the version that runs."""
    project = _project(workspace, name)
    plan = workspace.plan(project.id)
    return state.projects.activate(
        project=project.id,
        digest=plan.digest,
        plan=json.dumps(plan_to_json(plan), sort_keys=True),
        definition=workspace.source_of(project.file) or "",
        actor=actor,
    )


def deactivate(workspace: Workspace, state: State, name: str, actor: str) -> ProjectVersion:
    """Make the active version of a project inactive."""
    return state.projects.deactivate(_project(workspace, name).id, actor)


def list_projects(workspace: Workspace, state: State) -> list[ProjectView]:
    """All projects, with what became of their versions."""
    return [_view(workspace, state, project) for project in workspace.loaded.workspace.projects]


def _view(workspace: Workspace, state: State, project: Project) -> ProjectView:
    try:
        digest = workspace.plan(project.id).digest
    except UserError:
        digest = None
    versions = state.projects.project_versions(project.id)
    active = next((version for version in versions if version.status == "active"), None)
    if active is not None:
        current: ProjectState = "active" if active.digest == digest else "modified"
        return ProjectView(project.id, project.name, current, active.version, digest)
    newest = versions[0].version if versions else None
    return ProjectView(project.id, project.name, "inactive" if versions else "draft", newest, digest)


def _project(workspace: Workspace, name: str) -> Project:
    found = workspace.loaded.workspace.project(name)
    if found is None:
        hint = did_you_mean(name, [project.id for project in workspace.loaded.workspace.projects])
        raise UserError(UNKNOWN_PROJECT.anywhere(name=name, hint=hint))
    return found
