"""The projects of a workspace, and which definition of each runs: the activated version, or the file as a draft."""

import json
from typing import Literal

from clew.api.opened_environment import EnvironmentAccess, Principal
from clew.api.state import State
from clew.api.workspace_files import WorkspaceFiles
from clew.auth.roles import Permission
from clew.deferred import dataclass
from clew.definitions import Project, Status
from clew.diagnostics import UserError, raise_if_any
from clew.diagnostics.codes.runs import NO_SUCH_VERSION, PROJECT_NOT_ACTIVE
from clew.diagnostics.codes.server import PROJECT_CHANGED
from clew.plan import Plan, plan_from_json, plan_to_json
from clew.plan.frozen_resolvers import frozen
from clew.runs.registry import ProjectVersion
from clew.runs.version_conflicts import Registries, broken_by

ProjectState = Literal["draft", "active", "modified", "inactive"]


@dataclass(frozen=True, slots=True)
class ProjectView:
    """A project with the state of its file and its versions."""

    project: str
    name: str
    state: ProjectState
    version: int | None
    digest: str | None
    """The digest of the current files, as activation would keep them; None if they do not compile."""

    def to_json(self) -> dict[str, object]:
        """The form of `projects --json`."""
        return {
            "project": self.project,
            "name": self.name,
            "state": self.state,
            "version": self.version,
            "digest": self.digest,
        }


@dataclass(frozen=True, slots=True)
class ProjectChoice:
    """The definition of a project that a run uses."""

    project: str
    plan: Plan
    version: int | None
    """None for the file as a draft."""
    is_first_run: bool = False
    """Whether this run creates the version: the file says active, but the project has not been activated yet."""


def plan_to_run(files: WorkspaceFiles, state: State, name: str) -> ProjectChoice:
    """What a run uses: the active version, or the file as a draft.

    If the file says that the project is active, but it has not been activated yet, its first run activates it.
    """
    choice = choose(files, state, name)
    if choice.is_first_run:
        activate(files, state, choice.project, actor="first run")
    return choice


def plan_of_current_definitions(files: WorkspaceFiles, state: State, name: str, principal: Principal) -> ProjectChoice:
    """What a run uses that wants the definitions as they are now.

    They become the version that runs, if they are not yet: only what is on record as a version writes outside of the
    sandbox. A draft always runs as it is. Raises UserError Forbidden for who may not activate projects.
    """
    choice = choose(files, state, name)
    if choice.version is None or choice.is_first_run or not is_modified(files, choice):
        return plan_to_run(files, state, name)
    principal.require(Permission.ACTIVATE_PROJECTS)
    made = activate(files, state, choice.project, actor=principal.name)
    return ProjectChoice(choice.project, plan_of_version(made), made.version)


def choose(files: WorkspaceFiles, state: State, name: str) -> ProjectChoice:
    """What a run would use. Changes nothing."""
    project = files.project(name)
    active = state.projects.active(project.id)
    if active is not None:
        return ProjectChoice(project.id, plan_of_version(active), active.version)
    versions = state.projects.project_versions(project.id)
    if project.status is Status.INACTIVE or (versions and project.status is Status.ACTIVE):
        raise UserError(PROJECT_NOT_ACTIVE.at(project.place("status"), project=project.id))
    plan = files.plan(project.id)
    if project.status is Status.ACTIVE:
        return ProjectChoice(project.id, frozen_plan(files, plan), version=1, is_first_run=True)
    return ProjectChoice(project.id, plan, None)


def is_modified(files: WorkspaceFiles, choice: ProjectChoice) -> bool:
    """Whether the file has changed since the version that runs."""
    if choice.version is None or choice.is_first_run:
        return False
    try:
        plan = files.plan(choice.project)
        return choice.plan.digest != (frozen_plan(files, plan) if choice.plan.extensions.resolvers else plan).digest
    except UserError:
        return True


def plan_of_files(files: WorkspaceFiles, name: str) -> Plan:
    """The plan of the files as they are now, with the digest that a run of them has. Drafts run without resolvers."""
    plan = files.plan(name)
    if files.project(name).status is not Status.ACTIVE:
        return plan
    return files.kept_by_version(name, lambda: frozen_plan(files, plan))


def frozen_plan(files: WorkspaceFiles, plan: Plan) -> Plan:
    """A plan as activation keeps it, with the resolvers of the datasets that it reads."""
    return frozen(plan, files.loaded.workspace, files.source_of)


def plan_of_version(version: ProjectVersion) -> Plan:
    """The plan that a version keeps."""
    return plan_from_json(json.loads(version.plan))


def _keeps_none(version: ProjectVersion) -> bool:
    """Whether a version keeps no resolvers that could be compared: one of an older Clew, or one that needs none."""
    return not plan_of_version(version).extensions.resolvers


def activate(files: WorkspaceFiles, state: State, name: str, actor: str) -> ProjectVersion:
    """Check a project and freeze it as the version that runs, unless that would break other active projects."""
    project = files.project(name)
    plan = frozen_plan(files, files.plan(project.id))
    on_record = Registries(state.datasets, state.projects)
    raise_if_any(list(broken_by(plan, files.loaded.workspace.projects, on_record)))
    return state.projects.activate(
        project=project.id,
        digest=plan.digest,
        plan=json.dumps(plan_to_json(plan), sort_keys=True),
        definition=files.source_of(project.file) or "",
        actor=actor,
    )


def deactivate(files: WorkspaceFiles, state: State, name: str, actor: str) -> ProjectVersion:
    """Make the active version of a project inactive."""
    return state.projects.deactivate(files.project(name).id, actor)


def list_projects(files: WorkspaceFiles, state: State) -> list[ProjectView]:
    """All projects, with the state of their versions."""
    return [_view(files, state, project) for project in files.loaded.workspace.projects]


def show_project(files: WorkspaceFiles, state: State, name: str) -> ProjectView:
    """A project by id or name."""
    return _view(files, state, files.project(name))


def project_version(state: State, project: str, version: int) -> ProjectVersion:
    """A version of a project by its number. Raises UserError if there is none."""
    versions = state.projects.project_versions(project)
    for each in versions:
        if each.version == version:
            return each
    known = ", ".join(str(each.version) for each in versions) or "none"
    raise UserError(NO_SUCH_VERSION.anywhere(project=project, version=version, hint=f"the versions are {known}"))


def _view(files: WorkspaceFiles, state: State, project: Project) -> ProjectView:
    versions = state.projects.project_versions(project.id)
    active = next((version for version in versions if version.status == "active"), None)
    try:
        plan = files.plan(project.id)
        digest = plan.digest if active is not None and _keeps_none(active) else frozen_plan(files, plan).digest
    except UserError:
        digest = None
    if active is not None:
        current: ProjectState = "active" if active.digest == digest else "modified"
        return ProjectView(project.id, project.name, current, active.version, digest)
    newest = versions[0].version if versions else None
    return ProjectView(project.id, project.name, "inactive" if versions else "draft", newest, digest)


class Projects:
    """The projects of a workspace in one environment."""

    def __init__(self, access: EnvironmentAccess) -> None:
        self._access = access

    def all(self) -> list[ProjectView]:
        """All projects, with the state of their versions."""
        with self._access.opened() as at:
            return list_projects(at.files, at.state)

    def find(self, name: str) -> ProjectView:
        """A project by id or name."""
        with self._access.opened() as at:
            return show_project(at.files, at.state, name)

    def versions(self, name: str) -> tuple[ProjectVersion, ...]:
        """The versions of a project by id or name, newest first."""
        with self._access.opened() as at:
            return tuple(at.state.projects.project_versions(at.files.project(name).id))

    def version(self, name: str, number: int) -> ProjectVersion:
        """A version of a project by its number. Raises UserError NoSuchVersion if there is none."""
        with self._access.opened() as at:
            return project_version(at.state, at.files.project(name).id, number)

    def active(self, name: str) -> ProjectVersion | None:
        """The version of a project that runs, if it was activated."""
        with self._access.opened() as at:
            return at.state.projects.active(at.files.project(name).id)

    def choice(self, name: str) -> ProjectChoice:
        """What a run of a project would use. Changes nothing."""
        with self._access.opened() as at:
            return choose(at.files, at.state, name)

    def is_modified(self, choice: ProjectChoice) -> bool:
        """Whether the file has changed since the version that runs."""
        with self._access.opened() as at:
            return is_modified(at.files, choice)

    def activate(self, name: str, *, digest: str | None = None) -> ProjectVersion:
        """Check a project and freeze its file as the version that runs. An unchanged file keeps its version.

        With a digest, raises UserError ProjectChanged if the plan of the file now has a different one.
        """
        with self._access.opened() as at:
            at.principal.require(Permission.ACTIVATE_PROJECTS)
            files = at.files_now
            if digest is not None:
                plan = files.plan(files.project(name).id)
                if digest not in {plan.digest, frozen_plan(files, plan).digest}:
                    raise UserError(PROJECT_CHANGED.anywhere(project=files.project(name).id))
            return activate(files, at.state, name, at.principal.name)

    def deactivate(self, name: str) -> ProjectVersion:
        """Make the active version of a project inactive, so that it no longer runs."""
        with self._access.opened() as at:
            at.principal.require(Permission.ACTIVATE_PROJECTS)
            return deactivate(at.files, at.state, name, at.principal.name)
