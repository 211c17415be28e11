"""Which version of a project runs: what the buttons of its page would do, said before it is done."""

from dataclasses import dataclass
from typing import Literal

from clew.app.running.projects import ProjectView
from clew.app.workspace import Workspace
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import PROJECT_CHANGED
from clew.model import Status
from clew.server.pages import addresses


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A button of the page, and what it asks before anything happens."""

    name: Literal["activate", "deactivate"]
    title: str
    meaning: str
    address: str
    seen: str
    """What the page has shown. Where that has changed in the meantime, nothing is done."""
    is_grave: bool


def version_changes(
    view: ProjectView, newest: int | None, file_status: Status, *, may_decide: bool
) -> tuple[VersionChange, ...]:
    """What somebody may do with the versions of a project as it stands."""
    if not may_decide:
        return ()
    found = list[VersionChange]()
    if view.state != "active" and view.digest is not None:
        title = f"Activate version {(newest or 0) + 1}"
        meaning = _meaning_of_activation(view, (newest or 0) + 1)
        found.append(VersionChange("activate", title, meaning, _address(view, "activate"), view.digest, is_grave=False))
    if view.state in {"active", "modified"}:
        title = f"Deactivate version {view.version}"
        meaning = _meaning_of_deactivation(view, file_status)
        seen = str(view.version)
        found.append(VersionChange("deactivate", title, meaning, _address(view, "deactivate"), seen, is_grave=True))
    return tuple(found)


def can_run(view: ProjectView, file_status: Status) -> bool:
    """Whether a run can be asked for: of the active version, or of the file, as a draft or for the first time."""
    if view.state in {"active", "modified"}:
        return True
    if view.digest is None:
        return False
    return file_status is Status.DRAFT or (view.state == "draft" and file_status is Status.ACTIVE)


def require_same_file(workspace: Workspace, project: str, digest: str) -> None:
    """UserError ProjectChanged where the file says something else than the page that the decision was taken on."""
    if workspace.plan(project).digest != digest:
        raise UserError(PROJECT_CHANGED.anywhere(project=project))


def require_same_version(view: ProjectView, version: str) -> None:
    """UserError ProjectChanged where another version runs than on the page that the decision was taken on."""
    if view.state in {"active", "modified"} and str(view.version) != version:
        raise UserError(PROJECT_CHANGED.anywhere(project=view.project))


def _address(view: ProjectView, name: str) -> str:
    return f"{addresses.project(view.project)}/{name}"


def _meaning_of_activation(view: ProjectView, number: int) -> str:
    frozen = f"The file as it stands is checked again and frozen as version {number}."
    if view.state == "modified":
        return f"{frozen} Runs that are asked for from now on take it instead of version {view.version}."
    return f"{frozen} Runs take that version from now on, whatever becomes of the file."


def _meaning_of_deactivation(view: ProjectView, file_status: Status) -> str:
    under_way = "Runs that were asked for before go on to their end."
    if file_status is Status.DRAFT:
        return f"Version {view.version} is taken out of use; new runs take the file as a draft. {under_way}"
    return (
        f"Version {view.version} is taken out of use, and no run of this project can be asked for until a version is "
        f"activated again. {under_way}"
    )
