"""One call of the command line: its output format and its workspace."""

import time
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.api.workspace import Workspace


class Session:
    """What the parts of one command share.

    `--json` and `--verbose` are read from the raw arguments: they decide how errors are shown, and the first error may
    come from parsing the arguments.
    """

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        self.wants_json = "--json" in arguments
        self.is_verbose = "--verbose" in arguments
        self._started = time.perf_counter()
        self._command = next((word for word in arguments if not word.startswith("-")), None)
        self._workspace: Workspace | None = None
        self._folder: Path | None = None
        self._typed = dict[str, str]()

    @property
    def help_command(self) -> str:
        """The help command for the command that was called."""
        return f"clew {self._command} --help" if self._command else "clew --help"

    @property
    def seconds(self) -> float:
        """Seconds since the command started."""
        return time.perf_counter() - self._started

    def open(self, folder: Path | None, environment: str | None = None) -> "Workspace":
        """Open the workspace of a folder (by default the current one) in one of its environments.

        Commands that need the state store use the result in a `with` statement.
        """
        from clew.api.workspace import open_workspace

        self._workspace, self._folder = open_workspace(folder or Path(), environment), folder
        return self._workspace

    def command(self, text: str) -> str:
        """A command for the user to type next, with options for the open workspace and environment."""
        named = elsewhere = ""
        if self._workspace is not None and not self._workspace.is_default_environment:
            named = f" --env {self._workspace.environment_name}"
        if self._folder is not None:
            elsewhere = f" -w {quote(str(self._folder))}"
        return f"clew {text}{named}{elsewhere}"

    def typed(self, name: str, text: str) -> None:
        """Keep a text from the command line, so that messages can quote it."""
        self._typed[name] = text

    def source_of(self, file: str) -> str | None:
        """The text of a workspace file (if a workspace is open), or a text from the command line."""
        if file in self._typed:
            return self._typed[file]
        return self._workspace.source_of(file) if self._workspace is not None else None
