"""Files of this machine that a path source means. Spark is not needed to find them."""

import os
import re
import string
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from clew.deferred import dataclass
from clew.definitions import FilesDatasource
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE
from clew.plan.resolution import ResolvedSource

_UNESCAPED = frozenset("/_-!.~'()*,;:$&+=@" + string.ascii_letters + string.digits)
_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read."""

    path: str
    """As Spark opens it."""
    shown: str
    """Relative to the root of its datasource."""
    size: int
    is_local: bool

    @property
    def literal_path(self) -> str:
        """The path with characters escaped that Spark would take for wildcards."""
        return literal_path(self.path)


def literal_path(path: str) -> str:
    """A path with characters escaped that Spark would take for wildcards."""
    return "".join(f"\\{char}" if char in "*?[]{}\\" else char for char in path)


def escaped_path(path: str) -> str:
    """A path as the Java platform escapes it in a URI, which leaves letters alone."""
    return "".join(
        char if char in _UNESCAPED or (ord(char) > 127 and char.isprintable()) else quote(char) for char in path
    )


def local_folder(datasource: FilesDatasource, workspace_root: Path) -> Path | None:
    """The root of a datasource, where it is a folder of this machine."""
    root = datasource.options.root
    if _HAS_SCHEME.match(root) and not root.startswith("file:"):
        return None
    return workspace_root / Path(unquote(re.sub("^file:/+", "/", root)))


def local_files(folder: Path, source: ResolvedSource) -> Iterator[SourceFile]:
    """The files of a source below the folder of its datasource, in no particular order."""
    resolved_root = folder.resolve()
    if not resolved_root.is_dir():
        raise _unavailable(
            f'the root of the datasource "{source.datasource_id}" is not a folder: {folder} (rule "{source.rule}")',
            "correct `root` in the options of the datasource",
        )
    for path in _matches(folder, source.location):
        if not path.resolve().is_relative_to(resolved_root):
            problem = f'{source.location} leads out of the root of "{source.datasource_id}" (rule "{source.rule}")'
            raise _unavailable(problem, "keep the files of a datasource below its root")
        shown = path.relative_to(folder).as_posix()
        try:
            yield SourceFile(str(path), shown, path.stat().st_size, is_local=True)
        except OSError as error:
            raise _unavailable(f"cannot read {shown}: {error.strerror}") from None


def _matches(folder: Path, location: str) -> Iterator[Path]:
    """The files that a path means. One that exists as it is written is not taken for a pattern."""
    if Path(location).is_absolute() or not location:
        return
    elif os.path.lexists(folder / location):
        yield from _data_files(folder / location)
    else:
        for match in folder.glob(location):
            if not match.name.startswith((".", "_")):
                yield from _data_files(match)


def _data_files(path: Path) -> Iterator[Path]:
    """The file itself, or the data files of a folder; names that start with a dot or an underscore are not data."""
    if not path.is_dir():
        yield path
    else:
        for child in path.iterdir():
            if not child.name.startswith((".", "_")):
                yield from _data_files(child)


def _unavailable(problem: str, hint: str | None = None) -> UserError:
    return UserError(SOURCE_UNAVAILABLE.anywhere(problem=problem, hint=hint))
