"""What the server serves: one environment of a workspace, its state store, and traces and plans that stay open."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from clew.api.opened_environment import OpenedEnvironment, OpenStore, Principal, Traces
from clew.api.state import State, open_state
from clew.api.workspace_files import LiveFiles, WorkspaceFiles
from clew.auth.access_log import GatheredLog
from clew.runs.environment import RunEnvironment
from clew.storage.plans import PlanShelf


@dataclass(frozen=True, eq=False)
class Site:
    """An environment of a workspace, opened for as long as the server runs."""

    live: LiveFiles
    environment: RunEnvironment
    state: State
    traces: Traces = field(default_factory=Traces)
    plans: PlanShelf = field(default_factory=PlanShelf)
    access_log: GatheredLog = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "access_log", GatheredLog(self.state.access_log))

    @property
    def workspace(self) -> WorkspaceFiles:
        """The workspace as its files stand now."""
        return self.live.current()

    def opened(self, principal: Principal) -> OpenedEnvironment:
        """The environment in the eyes of a caller."""
        store = OpenStore(self.environment, self.state, self.traces, self.plans.plan, self.access_log)
        return OpenedEnvironment(self.live, store, principal)

    @property
    def tenant(self) -> str:
        """Who the workspace belongs to."""
        return self.environment.settings.tenant


@contextmanager
def open_site(root: Path, environment: str | None = None) -> Iterator[Site]:
    """Open an environment of the workspace at a folder, and close its state store at the end."""
    live = LiveFiles(root, environment)
    opened = live.current().run_environment
    with open_state(opened) as state:
        yield Site(live, opened, state)
