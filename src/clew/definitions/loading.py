"""From the files of a workspace to its definitions, with everything that is wrong with them."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

from clew.deferred import dataclass
from clew.definitions.calendar import Calendar
from clew.definitions.dataset import Dataset
from clew.definitions.datasource import Datasource
from clew.definitions.kinds import (
    FILE_KINDS,
    WORKSPACE_FILE,
    FileKind,
    definition_files,
    is_definition_file,
    name_in_messages,
    read_source,
)
from clew.definitions.nodes import MOST_PROBLEMS, MapNode, Node, ScalarNode, SourceText
from clew.definitions.project import Fragment, Project
from clew.definitions.references import problems_between_files, problems_of_scenarios
from clew.definitions.resolver import Resolver
from clew.definitions.salvage import Salvaged, salvage
from clew.definitions.scenario import Scenario
from clew.definitions.settings import Settings
from clew.definitions.shapes import Definition, problems_in
from clew.definitions.workspace import LoadedWorkspace, WorkspaceDefinitions
from clew.definitions.yaml_nodes import read_yaml
from clew.diagnostics import Diagnostic, Span, UserError, in_order
from clew.diagnostics.codes.workspace import INVALID_VALUE, UNKNOWN_PROJECT, UNREADABLE_FILE, WORKSPACE_NOT_FOUND

D = TypeVar("D", bound=Definition)


def load_workspace(root: Path) -> LoadedWorkspace:
    """Load every file of a workspace. What is wrong with one file does not keep the others from being loaded."""
    if not (root / WORKSPACE_FILE).is_file():
        raise UserError(WORKSPACE_NOT_FOUND.anywhere(path=root))
    loader = _Loader(root)
    for kind in FILE_KINDS.values():
        loader.load_kind(kind)
    workspace = loader.workspace()
    diagnostics = (*loader.diagnostics, *problems_between_files(workspace), *problems_of_scenarios(workspace))
    return LoadedWorkspace(workspace, in_order(diagnostics), loader.sources)


def load_settings(root: Path) -> tuple[Settings, tuple[Diagnostic, ...]]:
    """The settings in clew.yaml alone, as `load_workspace` gives them, and what is wrong with them.

    Where anything is wrong, they are the defaults, and not what anyone has written.
    """
    loader = _loaded_alone(root, "workspace")
    return loader.workspace().settings, tuple(in_order(loader.diagnostics))


def load_datasets(root: Path) -> tuple[Dataset, ...]:
    """The datasets alone, as far as their files can be read."""
    return _loaded_alone(root, "dataset").workspace().datasets


def _loaded_alone(root: Path, kind: str) -> "_Loader":
    if not (root / WORKSPACE_FILE).is_file():
        raise UserError(WORKSPACE_NOT_FOUND.anywhere(path=root))
    loader = _Loader(root)
    loader.load_kind(FILE_KINDS[kind])
    return loader


def load_scenarios(loaded: LoadedWorkspace, paths: Iterable[Path]) -> LoadedWorkspace:
    """The workspace with the scenarios of these files and folders instead of scenarios/, and their problems."""
    root = loaded.workspace.root
    loader = _Loader(root, sources=dict(loaded.sources))
    loader.definitions.extend(loaded.workspace.projects)
    for path in (file for each in paths for file in _scenario_files(each, root)):
        loader.load(path, FILE_KINDS["scenario"])
    workspace = replace(loaded.workspace, scenarios=loader.scenarios())
    diagnostics = (*loader.diagnostics, *problems_of_scenarios(workspace))
    return LoadedWorkspace(workspace, in_order(diagnostics), loader.sources)


def _scenario_files(path: Path, root: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from definition_files(path, root)
    elif path.exists():
        yield path
    else:
        file = name_in_messages(path, root)
        raise UserError(UNREADABLE_FILE.anywhere(path=file, reason="no such file or folder"))


@dataclass(slots=True)
class _Loader:
    root: Path
    definitions: list[Definition] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)
    broken: set[tuple[str, str]] = field(default_factory=set)
    salvaged: list[Salvaged | None] = field(default_factory=list)
    _apart: dict[str, Project | None] = field(default_factory=dict)
    """Projects that only scenarios name, by file."""

    def load_kind(self, kind: FileKind) -> None:
        """Take in all files of a kind."""
        try:
            own = [self.root / WORKSPACE_FILE]
            paths = own if kind.folder is None else definition_files(self.root / kind.folder, self.root)
        except UserError as error:
            self.diagnostics.extend(error.diagnostics)
            return
        for path in paths:
            self.load(path, kind)

    def load(self, path: Path, kind: FileKind) -> None:
        """Take in the definition of a file, or what is wrong with it."""
        definition = self._read(path, kind)
        if definition is not None:
            self.definitions.append(definition)

    def _read(self, path: Path, kind: FileKind) -> Definition | None:
        node: Node | None = None
        problems: list[Diagnostic] = []
        definition: Definition | None = None
        is_complete = False
        try:
            source = read_source(path, self.root)
            self.sources[source.file] = source.text
            tree = read_yaml(source)
            node = tree.root
            problems.extend(tree.diagnostics)
            is_complete = tree.is_complete
            if is_complete:
                definition = kind.shape.read(_content(source, node, kind))
                problems.extend(problems_in(definition))
        except UserError as error:
            problems.extend(error.diagnostics)
        if not problems:
            return definition
        self.diagnostics.extend(problems)
        self.broken.update((kind.name, name) for name in _names_of(node, path))
        if node is not None and is_complete and len(problems) < MOST_PROBLEMS:
            self.salvaged.append(salvage(node, kind.name))
        return None

    def workspace(self) -> WorkspaceDefinitions:
        """Everything that was loaded."""
        settings = self._all(Settings)
        scenarios = self.scenarios()
        return WorkspaceDefinitions(
            root=self.root,
            settings=settings[0] if settings else Settings(name=self.root.name or "workspace"),
            calendars=self._all(Calendar),
            datasources=tuple(d for d in self.definitions if isinstance(d, Datasource)),
            datasets=self._all(Dataset),
            resolvers=self._all(Resolver),
            projects=self._all(Project),
            fragments=self._all(Fragment),
            scenarios=scenarios,
            broken=frozenset(self.broken),
            salvaged=tuple(each for each in self.salvaged if each is not None),
        )

    def scenarios(self) -> tuple[Scenario, ...]:
        """The scenarios, with the projects that they name by path."""
        loaded = (self._with_project(scenario) for scenario in self._all(Scenario))
        return tuple(scenario for scenario in loaded if scenario is not None)

    def _all(self, kind: type[D]) -> tuple[D, ...]:
        return tuple(definition for definition in self.definitions if isinstance(definition, kind))

    def _with_project(self, scenario: Scenario) -> Scenario | None:
        """The scenario with its project in place of the path, or None if the project cannot be loaded."""
        if not isinstance(scenario.project, str) or not is_definition_file(Path(scenario.project)):
            return scenario
        places = (self.root / Path(scenario.file).parent, self.root)
        candidates = [Path(os.path.normpath(place / scenario.project)) for place in places]
        path = next((candidate for candidate in candidates if candidate.is_file()), None)
        if path is None:
            self.diagnostics.append(UNKNOWN_PROJECT.at(scenario.place("project"), name=scenario.project))
            return None
        project = self._project_of_file(path)
        return replace(scenario, project=project) if project is not None else None

    def _project_of_file(self, path: Path) -> Project | None:
        file = name_in_messages(path, self.root)
        own = next((project for project in self._all(Project) if project.file == file), None)
        if own is not None or file in self.sources:
            return own
        if file not in self._apart:
            read = self._read(path, FILE_KINDS["project"])
            self._apart[file] = read if isinstance(read, Project) else None
        return self._apart[file]


def _content(source: SourceText, node: Node | None, kind: FileKind) -> Node:
    """What a file holds, which must be something."""
    if node is None:
        problem = f"the file is empty; it should define a {kind.name}"
        hint = f"`clew schema {kind.name}` prints the keys"
        raise UserError(INVALID_VALUE.at(Span(source.file, 1, 1), problem=problem, hint=hint))
    return node


def _names_of(node: Node | None, path: Path) -> Iterator[str]:
    """What others may call a definition that could not be read: its id and name, or else the name of its file."""
    entries = node.entries if isinstance(node, MapNode) else {}
    names = [entries[key].value for key in ("id", "name") if key in entries]
    yield from (name.text for name in names if isinstance(name, ScalarNode))
    if "id" not in entries:
        yield path.stem
