"""The kinds of files in a workspace: where each kind is and what it contains. Finds and reads the files."""

import stat
from collections.abc import Mapping
from pathlib import Path

from clew.deferred import dataclass
from clew.definitions.calendar import Calendar
from clew.definitions.dataset import Dataset
from clew.definitions.datasource import DATASOURCE
from clew.definitions.nodes import SourceText
from clew.definitions.project import Fragment, Project
from clew.definitions.resolver import Resolver
from clew.definitions.scenario import Scenario
from clew.definitions.settings import Settings
from clew.definitions.shapes import Definition, Record, Shape
from clew.diagnostics import Span, UserError
from clew.diagnostics.codes.workspace import FILE_TOO_LARGE, UNREADABLE_FILE, WORKSPACE_NOT_FOUND

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


LARGEST_FILE = 16 * 1024 * 1024

_SUFFIXES = {".yaml", ".yml"}


def find_workspace(start: Path) -> Path:
    """The nearest folder with a clew.yaml, from a folder upwards. UserError if there is none."""
    here = start.absolute()
    for folder in (here, *here.parents):
        if (folder / WORKSPACE_FILE).is_file():
            return folder
    raise UserError(WORKSPACE_NOT_FOUND.anywhere(path=start))


def definition_files(folder: Path, root: Path) -> list[Path]:
    """The YAML files of a folder by name, without hidden ones. UserError if the folder cannot be read."""
    try:
        paths = sorted(folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise _unreadable(name_in_messages(folder, root), _reason(error)) from None
    return [path for path in paths if is_definition_file(path) and path.name[0] != "." and not path.is_dir()]


def is_definition_file(path: Path) -> bool:
    """Whether the name of a file says that it is YAML."""
    return path.suffix.lower() in _SUFFIXES


def read_source(path: Path, root: Path) -> SourceText:
    """A file with its text. UserError if it cannot be read."""
    file = name_in_messages(path, root)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise _unreadable(file, "it is not a regular file")
        if status.st_size > LARGEST_FILE:
            raise UserError(FILE_TOO_LARGE.at(Span(file, 1, 1), path=file, size=status.st_size, limit=LARGEST_FILE))
        return SourceText(file, path.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise _unreadable(file, f"byte {error.start + 1} is not UTF-8") from None
    except OSError as error:
        raise _unreadable(file, _reason(error)) from None


def name_in_messages(path: Path, root: Path) -> str:
    """A file as messages name it: relative to the workspace, with forward slashes."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def _unreadable(file: str, reason: str) -> UserError:
    return UserError(UNREADABLE_FILE.at(Span(file, 1, 1), path=file, reason=reason))


def _reason(error: OSError) -> str:
    return (error.strerror or type(error).__name__).lower()
