"""Which definitions concern a project: what a check of only that project covers."""

from collections.abc import Iterable
from dataclasses import field
from itertools import chain

from clew.deferred import dataclass
from clew.definitions import (
    LoadedWorkspace,
    Operation,
    Project,
    Resolver,
    Scenario,
    Use,
    WorkspaceDefinitions,
)
from clew.definitions.kinds import FILE_KINDS, WORKSPACE_FILE
from clew.definitions.shapes import Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Concern:
    """The definitions that a project consists of, reads through, or is tested by."""

    projects: tuple[Project, ...]
    """The project itself, and the projects whose registered output it reads."""
    resolvers: tuple[Resolver, ...]
    files: frozenset[str]
    """The files of everything it consists of and reads through, including clew.yaml."""
    scenarios: tuple[Scenario, ...]
    scenario_files: frozenset[str]
    """The files of the scenarios that test the project, including invalid ones that seem to."""


def concern_of(project: Project, loaded: LoadedWorkspace) -> Concern:
    """Everything that concerns a project."""
    return _Search(loaded).run(project)


def unread_files(loaded: LoadedWorkspace, kind: str) -> frozenset[str]:
    """The files of a kind that exist but are invalid."""
    folder = FILE_KINDS[kind].folder
    workspace = loaded.workspace
    definitions: Iterable[Definition] = chain(
        workspace.calendars,
        workspace.datasources,
        workspace.datasets,
        workspace.resolvers,
        workspace.projects,
        workspace.fragments,
        workspace.scenarios,
    )
    found = {diagnostic.span.file for diagnostic in loaded.diagnostics if diagnostic.span}
    read = {definition.file for definition in definitions}
    return frozenset(file for file in found - read if file.rpartition("/")[0] == folder)


@dataclass(slots=True)
class _Search:
    loaded: LoadedWorkspace
    projects: dict[str, Project] = field(default_factory=dict)
    resolvers: dict[str, Resolver] = field(default_factory=dict)
    fragments: set[str] = field(default_factory=set)
    files: set[str] = field(default_factory=set)

    @property
    def workspace(self) -> WorkspaceDefinitions:
        return self.loaded.workspace

    def run(self, project: Project) -> Concern:
        """Follow every reference from a project."""
        self.files.add(WORKSPACE_FILE)
        self.files.update(calendar.file for calendar in self.workspace.calendars)
        self.files |= unread_files(self.loaded, "calendar")
        self.follow_project(project)
        scenarios = tuple(each for each in self.workspace.scenarios if _tests(each, project))
        unread = {file for file in unread_files(self.loaded, "scenario") if self._seems_to_test(file, project)}
        return Concern(
            projects=tuple(self.projects.values()),
            resolvers=tuple(self.resolvers.values()),
            files=frozenset(self.files),
            scenarios=scenarios,
            scenario_files=frozenset({*unread, *(scenario.file for scenario in scenarios)}),
        )

    def _seems_to_test(self, file: str, project: Project) -> bool:
        """Whether an invalid scenario has a line that names the project."""
        lines = (self.loaded.source_of(file) or "").splitlines()
        named = {line.partition(":")[2].strip().strip("\"'") for line in lines if line.startswith("project:")}
        return not named.isdisjoint(_names(project))

    def follow_project(self, project: Project) -> None:
        """Add a project and everything it refers to."""
        if project.id in self.projects:
            return
        self.projects[project.id] = project
        self.files.add(project.file)
        for name in project.resolver_overrides.values():
            self.follow_resolver(name)
        self.follow_dataset(project.input_dataset.dataset_id)
        self.follow_operations(project.operations)

    def follow_operations(self, entries: Iterable[Operation | Use]) -> None:
        """Add everything that operations refer to."""
        for entry in entries:
            if isinstance(entry, Use):
                self.follow_fragment(entry.use.fragment)
                continue
            for dataset in entry.datasets:
                self.follow_dataset(dataset.dataset_id)
            if entry.datasource is not None:
                self.follow_datasource(entry.datasource)

    def follow_fragment(self, name: str) -> None:
        """Add a fragment; if none has this name, add the files that may define it."""
        fragment = self.workspace.fragment(name)
        adjustments = self.workspace.dataset(name) if fragment is None else None
        if adjustments is not None and adjustments.adjusts is not None:
            self.follow_dataset(adjustments.id)
            self.follow_dataset(adjustments.adjusts)
        elif fragment is None:
            self.files |= unread_files(self.loaded, "fragment")
        elif fragment.id not in self.fragments:
            self.fragments.add(fragment.id)
            self.files.add(fragment.file)
            self.follow_operations(fragment.operations)

    def follow_dataset(self, name: str) -> None:
        """Add a dataset with its resolver and datasource, or the project that registers it."""
        dataset = self.workspace.dataset(name)
        if dataset is not None:
            self.files.add(dataset.file)
            self.follow_resolver(dataset.resolver_id)
        registering = [project for project in self.workspace.projects if self._registers(project, name)]
        for project in registering:
            self.follow_project(project)
        if dataset is None and not registering:
            self.files |= unread_files(self.loaded, "dataset") | unread_files(self.loaded, "project")

    def _registers(self, project: Project, name: str) -> bool:
        return any(entry.registers == name for entry in self._own_and_used(project.operations, frozenset()))

    def _own_and_used(self, entries: Iterable[Operation | Use], within: frozenset[str]) -> Iterable[Operation]:
        for entry in entries:
            if not isinstance(entry, Use):
                yield entry
                continue
            fragment = self.workspace.fragment(entry.use.fragment)
            if fragment is not None and fragment.id not in within:
                yield from self._own_and_used(fragment.operations, within | {fragment.id})

    def follow_resolver(self, name: str | None) -> None:
        """Add a resolver (the default one if no name is given) with its datasources."""
        resolver = self.workspace.default_resolver if name is None else self.workspace.resolver(name)
        if resolver is None:
            self.files |= unread_files(self.loaded, "resolver")
        elif resolver.id not in self.resolvers:
            self.resolvers[resolver.id] = resolver
            self.files.add(resolver.file)
            for rule in resolver.rules:
                self.follow_datasource(rule.strategy.datasource_id)

    def follow_datasource(self, name: str) -> None:
        """Add a datasource; if none has this name, add the files that may define it."""
        datasource = self.workspace.datasource(name)
        self.files |= {datasource.file} if datasource is not None else unread_files(self.loaded, "datasource")


def _tests(scenario: Scenario, project: Project) -> bool:
    named = scenario.project
    if isinstance(named, Project):
        return named.file == project.file
    return named.removeprefix("./") in _names(project)


def _names(project: Project) -> set[str]:
    return {project.id, project.name, project.file}
