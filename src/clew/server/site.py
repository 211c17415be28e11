"""What the server serves: one environment of a workspace, its state store, and traces and plans that stay open."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clew.api.live_workspace import LiveWorkspace
from clew.api.run_view import RunReader
from clew.api.state import State, open_state
from clew.api.workspace import Workspace
from clew.auth.access_log import GatheredLog
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunRecord
from clew.storage.plans import PlanShelf
from clew.trace.opening import open_trace
from clew.trace.reader import RunTrace

_MOST_TRACES = 16


@dataclass(eq=False)
class Traces:
    """The traces that were asked for last. A run that goes on after a failure has more events, and is opened anew."""

    _opened: OrderedDict[tuple[str, int], RunTrace] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, run: RunRecord, reader: RunReader, environment: RunEnvironment) -> RunTrace:
        """The trace of a run that the reader may see."""
        key = (run.run_id, run.last_seq)
        with self._lock:
            known = self._opened.get(key)
            if known is not None:
                self._opened.move_to_end(key)
                return known
        opened = open_trace(reader.view(run.run_id), environment)
        with self._lock:
            self._opened[key] = opened
            while len(self._opened) > _MOST_TRACES:
                self._opened.popitem(last=False)
        return opened


@dataclass(frozen=True, eq=False)
class Site:
    """An environment of a workspace, opened for as long as the server runs."""

    live: LiveWorkspace
    environment: RunEnvironment
    state: State
    traces: Traces = field(default_factory=Traces)
    plans: PlanShelf = field(default_factory=PlanShelf)
    access_log: GatheredLog = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "access_log", GatheredLog(self.state.access_log))

    @property
    def workspace(self) -> Workspace:
        """The workspace as its files stand now."""
        return self.live.current()

    @property
    def tenant(self) -> str:
        """Who the workspace belongs to."""
        return self.environment.settings.tenant


@contextmanager
def open_site(root: Path, environment: str | None = None) -> Iterator[Site]:
    """Open an environment of the workspace at a folder, and close its state store at the end."""
    live = LiveWorkspace(root, environment)
    opened = live.current().run_environment
    with open_state(opened) as state:
        yield Site(live, opened, state)
