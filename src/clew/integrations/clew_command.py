"""The command `clew` as a program: for orchestrators whose environment does not hold Clew's libraries."""

import json
import signal
import subprocess
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from clew.deferred import dataclass
from clew.diagnostics import ClewError, Diagnostic, TransientFailure, UserError
from clew.diagnostics.codes.commands import COMMAND_LOST, WRONG_USAGE
from clew.events.bodies import RunQueued
from clew.events.codec import decode
from clew.plan import Plan, plan_from_json

_LAST_WORDS = 2000


@dataclass(slots=True)
class ClewCommand:
    """How Clew is called, and where."""

    words: Sequence[str] = ("clew",)
    """The program, and what stands before the command."""
    workspace: str | None = None
    environment: str | None = None
    _running: "subprocess.Popen[str] | None" = field(default=None, repr=False)

    def run(self, project: str, period: str, request_id: str, captures: Sequence[str] = ()) -> dict[str, Any]:
        """Run a project and wait for it. Returns the run, also if it failed; raises ClewError if there is none."""
        wishes = [word for capture in captures for word in ("--capture", capture)]
        return self._document("run", project, "--period", period, "--request-id", request_id, *wishes)

    def plan(self, project: str) -> Plan:
        """The plan of a project as its file is now."""
        document = self._document("plan", project)
        document.pop("diagnostics", None)
        return plan_from_json(document)

    def request_of(self, run_id: str) -> RunQueued:
        """The event with which a run began."""
        return decode(RunQueued, self._document("events", run_id)["events"][0]["event_data"])

    def cancel(self) -> None:
        """Cancel what runs, as Ctrl-C does: the run ends cleanly."""
        if self._running is not None and self._running.poll() is None:
            self._running.send_signal(signal.SIGINT)

    def _document(self, *words: str) -> dict[str, Any]:
        where = ["--workspace", self.workspace] if self.workspace is not None else []
        which = ["--env", self.environment] if self.environment is not None else []
        command = [*self.words, *words, *where, *which, "--json"]
        try:
            # A session of its own, so that a signal to the orchestrator's processes does not reach it a second time.
            self._running = subprocess.Popen(  # noqa: S603 - the words come from whoever wrote the pipeline
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
            )
        except OSError as error:
            problem = f"cannot start {self.words[0]}: {error.strerror or error}"
            raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="give the path of Clew's program")) from error
        with self._running as process:
            answer, complaint = process.communicate()
        return _read(answer, complaint, process.returncode)


def _read(answer: str, complaint: str, code: int) -> dict[str, Any]:
    try:
        document = json.loads(answer)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        said = complaint.strip()[-_LAST_WORDS:] or "it said nothing"
        raise TransientFailure(COMMAND_LOST.anywhere(code=code, complaint=said))
    if set(document) == {"error"}:
        raise _reported(document["error"])
    return document


def _reported(problem: dict[str, Any]) -> ClewError:
    """The error that the command reports, as if it had happened here."""
    return UserError(Diagnostic(str(problem["code"]), str(problem["message"]), {}, None, problem.get("hint")))
