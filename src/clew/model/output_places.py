"""Where outputs may go: below the root of their datasource, and never over what the workspace itself is made of."""

import re
from collections.abc import Iterator
from os.path import normpath
from pathlib import Path

from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.model.datasource import FilesDatasource
from clew.model.kinds import FILE_KINDS, WORKSPACE_FILE
from clew.model.operations import Location, LocationDestination, PathDestination
from clew.model.workspace import Workspace

_HAS_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")
_LOCAL_STATE = ".clew"

NO_URL = "outputs go to folders of this machine, or to such as are mounted there"


def problems_of_output_place(
    workspace: Workspace, destination: PathDestination | LocationDestination
) -> Iterator[Diagnostic]:
    """What is wrong with the path of a destination, as far as it shows before placeholders are filled in."""
    written: PathDestination | Location
    match destination:
        case PathDestination():
            datasource = workspace.datasource(destination.datasource_id)
            if not isinstance(datasource, FilesDatasource):
                return
            written, below = destination, datasource.options.root
        case LocationDestination(location=location):
            written, below = location, ""
    place = written.place("path")
    url = next((path for path in (below, written.path) if is_url(path)), None)
    if url is not None:
        yield INVALID_VALUE.at(place, problem=f'an output cannot go to the URL "{url}"', hint=NO_URL)
        return
    root = workspace.root / below
    path = Path(normpath(root / written.path))
    if not path.is_relative_to(normpath(root)):
        hint = "name a path below the root of the datasource"
        yield INVALID_VALUE.at(place, problem=f'the output path "{written.path}" leads out of its root', hint=hint)
        return
    over = written_over(workspace, path)
    if over is not None:
        problem = f'an output to "{written.path}" would write over {over}, which the workspace needs'
        yield INVALID_VALUE.at(place, problem=problem, hint="choose a folder that nothing else is in")


def written_over(workspace: Workspace, path: Path) -> str | None:
    """What of the workspace lies at a path, below it or above it: definitions, state, managed data."""
    roots = [environment.storage_root for environment in workspace.settings.environments.values()]
    folders = [kind.folder for kind in FILE_KINDS.values() if kind.folder is not None]
    for name in (WORKSPACE_FILE, *folders, _LOCAL_STATE, *roots):
        own = Path(normpath(workspace.root / name))
        if path == own or path in own.parents or own in path.parents:
            return name
    return None


def is_url(path: str) -> bool:
    """Whether a path names another place than the file system of this machine."""
    return _HAS_SCHEME.match(path) is not None
