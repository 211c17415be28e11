"""Checks a workspace or one of its projects, reports all errors at once, and plans projects.

If there is a state store, a check also compares the definitions with what earlier runs registered.
"""

# ruff: noqa: PLC0415 - a check without a state store should not load the code that reads one

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.api.concern import Concern, concern_of, unread_files
from clew.deferred import dataclass
from clew.definitions import Environment, LoadedWorkspace, Project, Status
from clew.diagnostics import ClewError, Diagnostic, EngineBug, UserError, did_you_mean, in_order, raise_if_any
from clew.diagnostics.codes.commands import INTERNAL_ERROR
from clew.diagnostics.codes.workspace import UNKNOWN_PROJECT
from clew.plan import Plan, WorkspaceCompiler, compile_workspace
from clew.runs.version_conflicts import broken_by, outdated_versions, remedy, unknown_versions

if TYPE_CHECKING:
    from clew.store.looking import Recorded

_COUNTED = ("projects", "datasets", "datasources", "resolvers", "calendars", "fragments", "scenarios")
"""The folders whose files a check counts, in the order in which it reports them."""

_EMBEDDED = "sqlite:///"


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Conflicts, and notes about what could not be compared or fits only after another project has run."""

    diagnostics: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StatePlace:
    """The state store that a check reads: that of an environment."""

    environment: str
    settings: Environment
    root: Path


Compare = Callable[[Sequence[tuple[Project, Plan]]], Conflicts]
"""Compares projects that have plans with what runs registered."""


def nothing_to_compare(_projects: Sequence[tuple[Project, Plan]]) -> Conflicts:
    """Compare nothing: for a check of the files alone."""
    return Conflicts()


@dataclass(frozen=True, slots=True)
class Check:
    """What a check found, and how many files it checked."""

    diagnostics: tuple[Diagnostic, ...]
    counts: Mapping[str, int]
    """The number of files by folder, without empty folders."""
    notes: tuple[str, ...] = ()
    """What could not be compared, and what fits only after another project has run."""

    @property
    def is_ok(self) -> bool:
        """Whether there are no errors."""
        return not self.diagnostics

    def to_json(self) -> dict[str, object]:
        """The form of `clew check --json`."""
        return {
            "ok": self.is_ok,
            "counts": {"errors": len(self.diagnostics), **self.counts},
            "diagnostics": [diagnostic.to_json() for diagnostic in self.diagnostics],
            "notes": list(self.notes),
        }

    def with_conflicts(self, conflicts: Conflicts) -> "Check":
        """The check with the conflicts that the state store shows."""
        diagnostics = in_order([*self.diagnostics, *conflicts.diagnostics])
        return Check(diagnostics, self.counts, (*self.notes, *conflicts.notes))


def check_workspace(loaded: LoadedWorkspace, compare: Compare = nothing_to_compare) -> Check:
    """Compile everything, and compare the projects that have a plan."""
    compiled = compile_workspace(loaded.workspace)
    diagnostics = in_order([*loaded.diagnostics, *compiled.diagnostics])
    files = {*loaded.sources, *(diagnostic.span.file for diagnostic in diagnostics if diagnostic.span)}
    planned = {each.id: each for each in loaded.workspace.projects if each.id in compiled.plans}
    conflicts = compare([(project, compiled.plans[name]) for name, project in planned.items()])
    return Check(diagnostics, _counts(files), compiled.notes).with_conflicts(conflicts)


def check_project(loaded: LoadedWorkspace, name: str, compare: Compare = nothing_to_compare) -> Check:
    """Compile one project, with only the definitions that concern it."""
    project = find_project(loaded, name)
    if project is None:
        return _check_unread(loaded)
    concern = concern_of(project, loaded)
    compiler = WorkspaceCompiler(loaded.workspace)
    found = [
        *obstacles(concern, loaded, compiler),
        *(each for each in loaded.diagnostics if each.span and each.span.file in concern.scenario_files),
        *(each for scenario in concern.scenarios for each in compiler.scenario(scenario)),
    ]
    plan = compiler.project(project).plan
    conflicts = compare([] if plan is None else [(project, plan)])
    notes = tuple(compiler.notes({each.id for each in concern.projects}))
    counts = _counts(concern.files | concern.scenario_files)
    return Check(in_order(found), counts, notes).with_conflicts(conflicts)


def obstacles(concern: Concern, loaded: LoadedWorkspace, compiler: WorkspaceCompiler) -> tuple[Diagnostic, ...]:
    """The errors that prevent a plan of a project. Errors in its scenarios do not."""
    placed = [*loaded.diagnostics, *compiler.registration_problems(), *compiler.problems_of_the_rest()]
    found = [
        *(each for each in placed if each.span is None or each.span.file in concern.files),
        *(each for project in concern.projects for each in compiler.project(project).diagnostics),
        *(each for resolver in concern.resolvers for each in compiler.resolver(resolver)),
    ]
    return in_order(found)


def find_project(loaded: LoadedWorkspace, name: str) -> Project | None:
    """A project by id or name; None if its file could not be read. Raises UserError if there is none."""
    project = loaded.workspace.project(name)
    if project is None and ("project", name) not in loaded.workspace.broken:
        known = [each.id for each in loaded.workspace.projects]
        listed = f"the projects are {', '.join(known)}" if known else "projects/ contains no readable project"
        raise UserError(UNKNOWN_PROJECT.anywhere(name=name, hint=did_you_mean(name, known) or listed))
    return project


def _check_unread(loaded: LoadedWorkspace) -> Check:
    """We cannot always tell which of the invalid files holds the project, so all of them count."""
    files = unread_files(loaded, "project")
    everything = check_workspace(loaded).diagnostics
    return Check(tuple(each for each in everything if each.span and each.span.file in files), _counts(files))


def _counts(files: Iterable[str]) -> dict[str, int]:
    folders = [file.rpartition("/")[0] for file in files]
    return {folder: folders.count(folder) for folder in _COUNTED if folder in folders}


def plan_project(loaded: LoadedWorkspace, name: str) -> Plan:
    """The plan of a project by id or name. Raises UserError with everything that prevents it."""
    project = find_project(loaded, name)
    if project is None:
        raise UserError(*check_project(loaded, name).diagnostics)
    compiler = WorkspaceCompiler(loaded.workspace)
    raise_if_any(obstacles(concern_of(project, loaded), loaded, compiler))
    plan = compiler.project(project).plan
    if plan is None:
        raise EngineBug(INTERNAL_ERROR.anywhere(problem=f"{project.id} has neither a plan nor a problem"))
    return plan


def plan_definition(loaded: LoadedWorkspace, project: Project) -> Plan:
    """The plan of a project without a file. Raises UserError with everything that prevents it."""
    compilation = WorkspaceCompiler(loaded.workspace).definition(project)
    if compilation.plan is None:
        raise UserError(*(compilation.diagnostics or loaded.diagnostics))
    return compilation.plan


def conflicts_of(
    projects: Iterable[tuple[Project, Plan]], all_projects: Sequence[Project], place: Callable[[], StatePlace]
) -> Conflicts:
    """How these projects conflict with the datasets and active projects on record.

    Without a state store there are no conflicts, and none is created. If it does not answer, the project is not at
    fault; a note says that it was not compared.
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
                notes.append(remedy(outdated, project.id, all_projects, recorded))
            else:
                found.append(outdated.diagnostic)
        found += unknown_versions(plan, project, recorded)
        if project.status is Status.ACTIVE or recorded.active_plan(project.id) is not None:
            found += broken_by(plan, all_projects, recorded)
    return Conflicts(tuple(found), tuple(notes))


def _has_to_do_with_versions(plan: Plan) -> bool:
    registers = any(step.registers is not None for step in plan.outputs)
    return registers or any(use.resolver_id is None or use.resolver_source == "default" for use in plan.datasets_read)


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
