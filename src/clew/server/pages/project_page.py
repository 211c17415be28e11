"""A project: its plan as a picture, its column lineage, and its versions.

Also the buttons that activate and deactivate it, with a description of what each would do.
"""

import difflib
from collections.abc import Iterator, Sequence
from typing import Literal

from clew.api.projects import ProjectView
from clew.deferred import dataclass
from clew.definitions import CaptureMode, Status
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.server import PROJECT_CHANGED
from clew.plan import Plan
from clew.plan.lineage import SourceColumn
from clew.runs.registry import ProjectVersion
from clew.server.pages import addresses, words
from clew.server.pages.drawing.plan_picture import PlanPicture, plan_picture
from clew.server.pages.project_charts import Chart
from clew.server.pages.project_operations import ToldOperations


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A button of the page, and the text of its confirmation."""

    name: Literal["activate", "deactivate"]
    title: str
    meaning: str
    address: str
    seen: str
    """What the page showed. If that has changed in the meantime, the button does nothing."""
    is_grave: bool


def version_changes(
    view: ProjectView, newest: int | None, file_status: Status, *, may_decide: bool
) -> tuple[VersionChange, ...]:
    """What the caller may do with the versions of a project now."""
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
    """Whether a run can be requested: of the active version, or of the file, as a draft or for the first time."""
    if view.state in {"active", "modified"}:
        return True
    if view.digest is None:
        return False
    return file_status is Status.DRAFT or (view.state == "draft" and file_status is Status.ACTIVE)


def require_same_version(view: ProjectView, version: str) -> None:
    """Raise UserError ProjectChanged if another version runs than the one the page showed."""
    if view.state in {"active", "modified"} and str(view.version) != version:
        raise UserError(PROJECT_CHANGED.anywhere(project=view.project))


def _address(view: ProjectView, name: str) -> str:
    return f"{addresses.project(view.project)}/{name}"


def _meaning_of_activation(view: ProjectView, number: int) -> str:
    frozen = f"Clew checks the current file again and freezes it as version {number}."
    if view.state == "modified":
        return f"{frozen} New runs use it instead of version {view.version}."
    return f"{frozen} From then on runs use that version, even if the file changes."


def _meaning_of_deactivation(view: ProjectView, file_status: Status) -> str:
    under_way = "Runs that have already been requested continue."
    if file_status is Status.DRAFT:
        return f"Version {view.version} is deactivated; new runs use the file as a draft. {under_way}"
    return (
        f"Version {view.version} is deactivated, and no run of this project can be requested until a version is "
        f"activated again. {under_way}"
    )


FILE = "file"
"""The name of the current file among versions."""


@dataclass(frozen=True, slots=True)
class ColumnOrigin:
    """Where a column of the working dataset comes from."""

    name: str
    type: str
    derives_from: tuple[str, ...]
    influenced_by: tuple[str, ...]
    datasets: tuple[str, ...]
    """The datasets that it is derived from."""


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a comparison."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed from one definition to another."""

    old: str
    new: str
    lines: tuple[DiffLine, ...]
    is_same_plan: bool


@dataclass(frozen=True, slots=True)
class VersionLine:
    """A version in the list."""

    version: int
    status: str
    activated: str
    by: str
    digest: str
    compare_address: str | None
    """The changes since the previous version."""


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """A project."""

    project: str
    name: str
    state: str
    version: int | None
    description: str | None
    file: str
    picture: PlanPicture | None
    columns: tuple[ColumnOrigin, ...]
    versions: tuple[VersionLine, ...]
    comparison: Comparison | None
    changed_address: str | None
    """The changes of the file against the active version."""
    impact_address: str | None
    """What the file would have changed in the last run that completed, for those who may see rows."""
    problems: tuple[Diagnostic, ...]
    """Why the file does not compile."""
    runs_address: str
    periods: tuple[str, ...]
    """The periods that a run can be requested for; empty if the caller may not request runs."""
    breakpoints: tuple[tuple[str, int], ...]
    """Where rows can be captured: names, and the steps after which they lie."""
    capture_modes: tuple[tuple[str, str], ...]
    """What a capture may keep: as requests name it, and in words."""
    changes: tuple[VersionChange, ...]
    """What the caller may do with the versions."""
    operations: ToldOperations
    charts: tuple[Chart, ...]


@dataclass(frozen=True, slots=True)
class ComparableDefinition:
    """A definition that can be compared: a version, or the file."""

    name: str
    text: str
    digest: str | None


def project_page(
    view: ProjectView,
    *,
    description: str | None,
    file: str,
    plan: Plan | None,
    problems: Sequence[Diagnostic],
    versions: Sequence[ProjectVersion],
    compared: tuple[ComparableDefinition, ComparableDefinition] | None,
    periods: Sequence[str] = (),
    changes: Sequence[VersionChange] = (),
    operations: ToldOperations | None = None,
    charts: Sequence[Chart] = (),
    tried_on: str | None = None,
) -> ProjectPage:
    """The page of a project."""
    active = next((version.version for version in versions if version.status == "active"), None)
    return ProjectPage(
        project=view.project,
        name=view.name,
        state=view.state,
        version=view.version,
        description=description,
        file=file,
        picture=plan_picture(plan) if plan else None,
        columns=_columns(plan) if plan else (),
        versions=tuple(_versions(view.project, versions)),
        comparison=_comparison(*compared) if compared else None,
        changed_address=addresses.project(view.project, old=active, new=FILE)
        if view.state == "modified" and active is not None
        else None,
        impact_address=None if tried_on is None or view.state == "active" or not plan else addresses.impact(tried_on),
        problems=tuple(problems),
        runs_address=addresses.runs(project=view.project),
        periods=tuple(periods),
        breakpoints=tuple((each.name, each.seq) for each in plan.breakpoints) if plan else (),
        capture_modes=tuple((mode.value, words.capture_mode(mode)) for mode in CaptureMode),
        changes=tuple(changes),
        operations=operations or ToldOperations((), (), None, ()),
        charts=tuple(charts),
    )


def _columns(plan: Plan) -> tuple[ColumnOrigin, ...]:
    types = {column.name: str(column.type) for column in plan.columns}
    return tuple(
        ColumnOrigin(
            name=each.column,
            type=types.get(each.column, ""),
            derives_from=tuple(map(_named, each.derives_from)),
            influenced_by=tuple(map(_named, each.influenced_by)),
            datasets=tuple(dict.fromkeys(source.dataset for source in each.derives_from)),
        )
        for each in plan.lineage_at_end
    )


def _named(source: SourceColumn) -> str:
    return f"{source.dataset}.{source.column}"


def _versions(project: str, versions: Sequence[ProjectVersion]) -> Iterator[VersionLine]:
    numbers = [version.version for version in versions]
    for each in versions:
        earlier = max((number for number in numbers if number < each.version), default=None)
        yield VersionLine(
            version=each.version,
            status=each.status,
            activated=words.minute(each.activated_at),
            by=_by(each),
            digest=each.digest[:12],
            compare_address=addresses.project(project, old=earlier, new=each.version) if earlier is not None else None,
        )


def _by(version: ProjectVersion) -> str:
    """Who activated and deactivated a version."""
    ended = version.deactivated_by
    by_other = f", ended by {ended}" if ended not in {None, version.activated_by} else ""
    return version.activated_by + by_other


def _comparison(old: ComparableDefinition, new: ComparableDefinition) -> Comparison:
    lines = difflib.unified_diff(old.text.splitlines(), new.text.splitlines(), lineterm="", n=4)
    shown = tuple(DiffLine(line[0], line[1:]) for line in list(lines)[2:])
    return Comparison(old.name, new.name, shown, old.digest == new.digest)
