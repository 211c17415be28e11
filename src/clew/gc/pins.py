"""Which versions of datasets projects ask for by number, and which ones runs have read."""

import json
from collections.abc import Iterable
from typing import Protocol

from clew.captures.queue import CaptureState
from clew.definitions import LoadedWorkspace
from clew.diagnostics import UserError
from clew.explain.run_lineage import TracedState
from clew.plan import Plan, plan_from_json
from clew.runs.registry import DatasetVersion
from clew.runs.stores import RunState
from clew.storage.parts import Part


class PlannedProjects(Protocol):
    """The projects of a workspace, and their plans."""

    @property
    def loaded(self) -> LoadedWorkspace:
        """The definitions of all files, with what is wrong with them."""
        ...

    def plan(self, project: str, /) -> Plan:
        """The plan of a project. UserError where it has none."""
        ...


class CollectedState(CaptureState, TracedState, Protocol):
    """What garbage collection needs of a state store."""


VersionKey = tuple[str, int]
"""A dataset and the number of a version."""


def pinned_versions(workspace: PlannedProjects, state: RunState, versions: Iterable[DatasetVersion]) -> set[VersionKey]:
    """The versions that a project asks for by number: as its file stands, and as it was activated.

    Where a file cannot be read or a project has no plan, nobody knows what it asks for, and all versions count.
    """
    pins = set[VersionKey]()
    is_certain = not workspace.loaded.diagnostics
    for project in workspace.loaded.workspace.projects:
        active = state.projects.active(project.id)
        if active is not None:
            pins |= pins_of(plan_from_json(json.loads(active.plan)))
        try:
            pins |= pins_of(workspace.plan(project.id))
        except UserError:
            is_certain = False
    return pins if is_certain else {(version.dataset, version.version) for version in versions}


def pins_of(plan: Plan) -> set[VersionKey]:
    """The versions that a plan asks for by number."""
    return {(use.dataset_id, use.pinned_version) for use in plan.datasets_read if use.pinned_version is not None}


def versions_read(parts: Iterable[Part]) -> set[VersionKey]:
    """The versions that a run has read, from what it has pinned."""
    found = set[VersionKey]()
    for part in parts:
        details = part.details or {}
        dataset, version = details.get("dataset"), details.get("version")
        if part.kind == "input" and isinstance(dataset, str) and isinstance(version, int):
            found.add((dataset, version))
    return found
