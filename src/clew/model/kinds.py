"""The kinds of files of a workspace: where each stands and what it holds."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.model.calendar import Calendar
from clew.model.dataset import Dataset
from clew.model.datasource import DATASOURCE
from clew.model.fragment import Fragment
from clew.model.project import Project
from clew.model.resolver import Resolver
from clew.model.scenario import Scenario
from clew.model.settings import Settings
from clew.model.shapes import Definition, Record, Shape

WORKSPACE_FILE = "clew.yaml"


@dataclass(frozen=True, slots=True)
class FileKind:
    """A kind of file."""

    name: str
    folder: str | None
    """Where its files are; None for clew.yaml itself."""
    shape: Shape[Definition]


FILE_KINDS: Mapping[str, FileKind] = {
    kind.name: kind
    for kind in (
        FileKind("workspace", None, Record(Settings)),
        FileKind("calendar", "calendars", Record(Calendar)),
        FileKind("datasource", "datasources", DATASOURCE),
        FileKind("dataset", "datasets", Record(Dataset)),
        FileKind("resolver", "resolvers", Record(Resolver)),
        FileKind("project", "projects", Record(Project)),
        FileKind("fragment", "fragments", Record(Fragment)),
        FileKind("scenario", "scenarios", Record(Scenario)),
    )
}

KINDS = tuple(FILE_KINDS)
"""The names of all kinds."""
