"""The files of a path source: found below the root of their datasource, and nowhere else."""

import os
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from pyspark.sql import SparkSession

from clew.model import FilesDatasource
from clew.plan.resolution import Source
from clew.spark.failures import SPARK_ERRORS
from clew.spark.loading.problems import unavailable

_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")
_UNESCAPED = frozenset("/_-!.~'()*,;:$&+=@" + string.ascii_letters + string.digits)

_CODED = re.compile(r"^.*?\[[A-Z][A-Z0-9_.]+\] ")
_AROUND = re.compile(r"^: |\b(?:[a-z][a-z0-9_]*\.)+[A-Z]\w*(?:Exception|Error): | SQLSTATE: \w+.*$")

METADATA_PATH = "regexp_replace(_metadata.file_path, '^file:/+', '/')"
"""SQL for the path of the file that a row was read from."""


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
        return "".join(f"\\{char}" if char in "*?[]{}\\" else char for char in self.path)


def find_files(
    spark: SparkSession, datasource: FilesDatasource, workspace_root: Path, source: Source
) -> list[SourceFile]:
    """The files of a source, sorted by name; there is at least one."""
    folder = local_folder(datasource, workspace_root)
    if folder is None:
        found = _remote_files(spark, datasource.options.root.rstrip("/"), source)
    else:
        found = sorted(_local_files(folder, source), key=lambda file: file.shown)
    if not found:
        problem = f'no file matches {source.location} in "{source.datasource_id}" (rule "{source.rule}")'
        raise unavailable(problem, f'put the data of "{source.period}" there, or correct the path of the rule')
    return found


def local_folder(datasource: FilesDatasource, workspace_root: Path) -> Path | None:
    """The root of a datasource, where it is a folder of this machine."""
    root = datasource.options.root
    if _HAS_SCHEME.match(root) and not root.startswith("file:"):
        return None
    return workspace_root / Path(unquote(re.sub("^file:/+", "/", root)))


def _local_files(folder: Path, source: Source) -> Iterator[SourceFile]:
    resolved_root = folder.resolve()
    if not resolved_root.is_dir():
        raise unavailable(
            f'the root of the datasource "{source.datasource_id}" is not a folder: {folder} (rule "{source.rule}")',
            "correct `root` in the options of the datasource",
        )
    for path in _matches(folder, source.location):
        if not path.resolve().is_relative_to(resolved_root):
            problem = f'{source.location} leads out of the root of "{source.datasource_id}" (rule "{source.rule}")'
            raise unavailable(problem, "keep the files of a datasource below its root")
        shown = path.relative_to(folder).as_posix()
        try:
            yield SourceFile(str(path), shown, path.stat().st_size, is_local=True)
        except OSError as error:
            raise unavailable(f"cannot read {shown}: {error.strerror}") from None


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
    """The file itself, or the data files of a folder; names that begin with a dot or an underscore are not data."""
    if not path.is_dir():
        yield path
    else:
        for child in path.iterdir():
            if not child.name.startswith((".", "_")):
                yield from _data_files(child)


def _remote_files(spark: SparkSession, root: str, source: Source) -> list[SourceFile]:
    """Listed by Spark, which knows the file system and its credentials."""
    try:
        rows = spark.read.format("binaryFile").load(f"{root}/{source.location}").select("path", "length").collect()
    except SPARK_ERRORS as error:
        if "PATH_NOT_FOUND" in str(error):
            return []
        problem = f'cannot list {source.location} in "{source.datasource_id}": {reason_of(error)}'
        raise unavailable(problem) from None
    return sorted(
        (SourceFile(row["path"], row["path"].removeprefix(root + "/"), row["length"], is_local=False) for row in rows),
        key=lambda file: file.shown,
    )


def file_of_metadata(path: str) -> str:
    """The path of a file that Spark's metadata column names, as `SourceFile.path` has it."""
    return unquote(re.sub("^file:/+", "/", path))


def metadata_path(file: SourceFile) -> str:
    """The path of a file as `METADATA_PATH` gives it: escaped as the Java platform does, which leaves letters alone."""
    return "".join(
        char if char in _UNESCAPED or (ord(char) > 127 and char.isprintable()) else quote(char) for char in file.path
    )


def reason_of(error: Exception) -> str:
    """What an error of Spark says, in one line: without class names, codes and the stack of the Java side."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    coded = next((line for line in lines if _CODED.search(line)), lines[0] if lines else type(error).__name__)
    return _AROUND.sub("", _CODED.sub("", coded)).strip()[:300]
