"""The files of a path source: found below the root of their datasource, and nowhere else."""

import re
from pathlib import Path
from urllib.parse import unquote

from clew.definitions import FilesDatasource
from clew.engine.loading.sources import unavailable
from clew.plan.local_files import SourceFile, escaped_path, local_folder
from clew.plan.resolution import ResolvedSource
from clew.storage.source_files import RootOf, source_files

__all__ = [
    "METADATA_PATH",
    "SourceFile",
    "file_of_metadata",
    "find_files",
    "local_folder",
    "metadata_path",
]


METADATA_PATH = "regexp_replace(_metadata.file_path, '^file:/+', '/')"
"""SQL for the path of the file that a row was read from."""


def find_files(
    datasource: FilesDatasource, workspace_root: Path, root_of: RootOf, source: ResolvedSource
) -> list[SourceFile]:
    """The files of a source, sorted by name; there is at least one."""
    found = source_files(datasource, workspace_root, root_of, source)
    if not found:
        problem = f'no file matches {source.location} in "{source.datasource_id}" (rule "{source.rule}")'
        raise unavailable(problem, f'put the data of "{source.period}" there, or correct the path of the rule')
    return found


def file_of_metadata(path: str) -> str:
    """The path of a file that Spark's metadata column names, as `SourceFile.path` has it."""
    return unquote(re.sub("^file:/+", "/", path))


def metadata_path(file: SourceFile) -> str:
    """The path of a file as `METADATA_PATH` gives it: escaped as the Java platform does, which leaves letters alone."""
    return escaped_path(file.path)
