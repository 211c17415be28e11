"""What a check asks of the state store, where there is one: whether what runs have left still fits what users write."""

# ruff: noqa: PLC0415 - a check without a state store should not wait for what reads one

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from clew.definitions import Environment, Project, Status
from clew.diagnostics import ClewError, Diagnostic
from clew.plan import Plan
from clew.runs.version_conflicts import broken_by, outdated_versions, remedy

if TYPE_CHECKING:
    from clew.store.looking import Recorded


_EMBEDDED = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Conflicts:
    """What does not fit, and notes: what could not be looked at, and what fits once another project has run."""

    diagnostics: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatePlace:
    """Which state store a check looks into: that of an environment."""

    environment: str
    settings: Environment
    root: Path


def conflicts_of(
    projects: Iterable[tuple[Project, Plan]], everybody: Sequence[Project], place: Callable[[], StatePlace]
) -> Conflicts:
    """What these projects and the datasets and active projects on record have against each other.

    A state store that is not there has nothing against anybody, and none is made. One that does not answer is no fault
    of the project; a note says that it was not asked.
    """
    concerned = [(project, plan) for project, plan in projects if _has_to_do_with_versions(plan)]
    if not concerned:
        return Conflicts()
    try:
        recorded = _look(place())
    except ClewError as error:
        return Conflicts(notes=(f"versions of datasets were not compared: {error.diagnostic.message}",))
    if recorded is None:
        return Conflicts()

    found, notes = list[Diagnostic](), list[str]()
    for project, plan in concerned:
        for outdated in outdated_versions(plan, project, recorded):
            if outdated.comes_with_next_version:
                notes.append(remedy(outdated, project.id, everybody, recorded))
            else:
                found.append(outdated.diagnostic)
        if project.status is Status.ACTIVE or recorded.active_plan(project.id) is not None:
            found += broken_by(plan, everybody, recorded)
    return Conflicts(tuple(found), tuple(notes))


def _has_to_do_with_versions(plan: Plan) -> bool:
    registers = any(step.registers is not None for step in plan.outputs)
    return registers or any(use.resolver_id is None for use in plan.datasets_read)


def _look(place: StatePlace) -> "Recorded | None":
    url = place.settings.state_store
    if not url.startswith(_EMBEDDED):
        from clew.runs.environment import RunEnvironment
        from clew.store.looking import look_into_postgresql

        environment = RunEnvironment(place.environment, place.settings, place.root)
        return look_into_postgresql(environment.store_url(environment.secrets()), environment.name)
    path = place.root / url.removeprefix(_EMBEDDED)
    if not path.exists():
        return None
    from clew.store.looking import look_into_sqlite

    return look_into_sqlite(path, place.environment)
