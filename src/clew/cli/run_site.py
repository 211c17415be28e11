"""What commands about runs work on: a workspace in one environment, its state store, and its runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from clew.api.run_view import RunReader
from clew.api.state import State, open_state
from clew.api.workspace import Workspace
from clew.cli.session import Session
from clew.runs.environment import RunEnvironment

SHORT_ID = 8
"""Characters of a run id that are shown, and that are enough to name a run."""


@dataclass(frozen=True, slots=True)
class RunSite:
    """An environment of a workspace, opened."""

    workspace: Workspace
    environment: RunEnvironment
    state: State
    folder: Path | None = None
    """The folder that was named on the command line, where one was."""

    @property
    def reader(self) -> RunReader:
        """Reads the runs of the environment."""
        return RunReader(self.state, self.environment)

    def command(self, text: str) -> str:
        """A command that somebody may type next, for the same workspace and environment."""
        usual = self.workspace.loaded.workspace.settings.usual_environment
        named = "" if self.environment.name == usual else f" --env {self.environment.name}"
        elsewhere = "" if self.folder is None else f" -w {quote(str(self.folder))}"
        return f"clew {text}{named}{elsewhere}"


@contextmanager
def open_site(session: Session, folder: Path | None, environment: str | None) -> Iterator[RunSite]:
    """Open the environment of a workspace, and close its state store at the end."""
    workspace = session.open(folder, environment)
    opened = workspace.run_environment
    with open_state(opened) as state:
        yield RunSite(workspace, opened, state, folder)


def short(run_id: str) -> str:
    """A run id as commands show it."""
    return run_id[:SHORT_ID]
