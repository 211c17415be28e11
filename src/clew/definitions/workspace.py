"""The definitions of a whole workspace."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from clew.deferred import dataclass
from clew.definitions.calendar import Calendar, PeriodTree, periods_of
from clew.definitions.dataset import Dataset
from clew.definitions.datasource import Datasource
from clew.definitions.project import Fragment, Project
from clew.definitions.resolver import Resolver
from clew.definitions.salvage import Salvaged
from clew.definitions.scenario import Scenario
from clew.definitions.settings import Settings
from clew.diagnostics import Diagnostic

N = TypeVar("N", Calendar, Datasource, Dataset, Resolver, Project, Fragment)


@dataclass(frozen=True, slots=True)
class WorkspaceDefinitions:
    """Everything that the files of a workspace define, in the order of the file names."""

    root: Path
    settings: Settings
    calendars: tuple[Calendar, ...] = ()
    datasources: tuple[Datasource, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    resolvers: tuple[Resolver, ...] = ()
    projects: tuple[Project, ...] = ()
    fragments: tuple[Fragment, ...] = ()
    scenarios: tuple[Scenario, ...] = ()
    broken: frozenset[tuple[str, str]] = frozenset()
    """Kind and id or name of definitions that exist but could not be read, so that they are not reported as unknown."""
    salvaged: tuple[Salvaged, ...] = ()
    """What could be read of broken projects and fragments. Nothing runs them; they are checked with the others."""
    periods: PeriodTree = field(init=False, repr=False, compare=False)
    """The periods of all calendars."""
    _by_reference: Mapping[tuple[str, str], object] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        periods = tuple(period for calendar in self.calendars for period in periods_of(calendar))
        object.__setattr__(self, "periods", PeriodTree(periods))
        by_reference = {
            **_references("datasource", self.datasources),
            **_references("dataset", self.datasets),
            **_references("resolver", self.resolvers),
            **_references("project", self.projects),
            **_references("fragment", self.fragments),
        }
        object.__setattr__(self, "_by_reference", by_reference)

    def dataset(self, id_or_name: str) -> Dataset | None:
        """The dataset of this id or, where there is none, of this name."""
        found = self._by_reference.get(("dataset", id_or_name))
        return found if isinstance(found, Dataset) else None

    def datasource(self, id_or_name: str) -> Datasource | None:
        """The datasource of this id or, where there is none, of this name."""
        found = self._by_reference.get(("datasource", id_or_name))
        return found if isinstance(found, Datasource) else None

    def resolver(self, id_or_name: str) -> Resolver | None:
        """The resolver of this id or, where there is none, of this name."""
        found = self._by_reference.get(("resolver", id_or_name))
        return found if isinstance(found, Resolver) else None

    def project(self, id_or_name: str) -> Project | None:
        """The project of this id or, where there is none, of this name."""
        found = self._by_reference.get(("project", id_or_name))
        return found if isinstance(found, Project) else None

    def fragment(self, id_or_name: str) -> Fragment | None:
        """The fragment of this id or, where there is none, of this name."""
        found = self._by_reference.get(("fragment", id_or_name))
        return found if isinstance(found, Fragment) else None

    @property
    def default_resolver(self) -> Resolver | None:
        """The resolver for datasets that name none."""
        return next((resolver for resolver in self.resolvers if resolver.is_default), None)


@dataclass(frozen=True, slots=True)
class LoadedWorkspace:
    """A workspace, and everything that is wrong with its files."""

    workspace: WorkspaceDefinitions
    diagnostics: tuple[Diagnostic, ...]
    sources: Mapping[str, str] = field(repr=False)
    """The text of each file that could be read."""

    def source_of(self, file: str) -> str | None:
        """The text of a file, for excerpts in messages."""
        return self.sources.get(file)


def _references(kind: str, definitions: Iterable[N]) -> dict[tuple[str, str], N]:
    """Definitions by id and by name; where both fit, the id counts, and the first file before later ones."""
    definitions = tuple(definitions)
    by_name = {(kind, definition.name): definition for definition in reversed(definitions)}
    return by_name | {(kind, definition.id): definition for definition in reversed(definitions)}
