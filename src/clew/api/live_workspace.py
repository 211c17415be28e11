"""A workspace for a process that stays: opened anew when its files have changed."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

from clew.api.workspace import Workspace
from clew.definitions.kinds import FILE_KINDS, WORKSPACE_FILE

_LOOK_EVERY_S = 1.0

Fingerprint = frozenset[tuple[str, int, int]]


class LiveWorkspace:
    """Gives the workspace as its files stand, at most a second ago. May be used by several threads."""

    def __init__(
        self, root: Path, environment: str | None = None, *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.root = root
        self._environment = environment
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._looked = -_LOOK_EVERY_S
        self._fingerprint: Fingerprint | None = None
        self._opened = Workspace(root, environment)

    def current(self) -> Workspace:
        """The workspace now. What was given out before stays as it was."""
        with self._lock:
            is_due = self._monotonic() - self._looked >= _LOOK_EVERY_S
        return self.look_now() if is_due else self._opened

    def look_now(self) -> Workspace:
        """The workspace as its files stand at this moment."""
        with self._lock:
            self._looked = self._monotonic()
            found = _fingerprint(self.root)
            if found != self._fingerprint:
                self._fingerprint = found
                self._opened = Workspace(self.root, self._environment)
            return self._opened


def _fingerprint(root: Path) -> Fingerprint:
    """What changes when a file is written: the names, times and sizes of all definitions."""
    folders = [root / kind.folder for kind in FILE_KINDS.values() if kind.folder]
    files = [root / WORKSPACE_FILE, *(path for folder in folders if folder.is_dir() for path in folder.iterdir())]
    found = set[tuple[str, int, int]]()
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue
        found.add((str(path), status.st_mtime_ns, status.st_size))
    return frozenset(found)
