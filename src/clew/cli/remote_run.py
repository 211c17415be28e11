"""`clew run --server`: submits a run to a server and follows it."""

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from clew.api.remote import RemoteServer
from clew.cli.failure import DONE, FAILED, INTERRUPTED
from clew.cli.formatting import short
from clew.cli.output import bad, good, say, write_json
from clew.cli.session import Session
from clew.cli.views.page import plain
from clew.cli.views.progress import LiveWatch, PlainWatch, RunProgress, watch_for_output
from clew.cli.views.tables import StepLines
from clew.definitions import CaptureWish
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE
from clew.runs.signals import SignalType

TOKEN_VARIABLE = "CLEW_TOKEN"  # noqa: S105 - an environment variable, not a secret


def server_of(url: str, token_file: Path | None) -> RemoteServer:
    """The server at a URL, with the token from a file or from the environment."""
    if not url.startswith(("http://", "https://")):
        raise UserError(
            WRONG_USAGE.anywhere(problem=f'"{url}" is not the URL of a server', hint="use http://HOST:PORT")
        )
    if token_file is None:
        token = os.environ.get(TOKEN_VARIABLE, "")
    else:
        try:
            token = token_file.read_text(encoding="utf-8")
        except OSError as error:
            problem = f"cannot read the token: {error.strerror or error}"
            raise UserError(WRONG_USAGE.anywhere(problem=problem)) from error
    if not token.strip():
        hint = f"use --token-file FILE or set {TOKEN_VARIABLE}; `clew token create` creates a token"
        raise UserError(WRONG_USAGE.anywhere(problem="--server needs a token", hint=hint))
    return RemoteServer(url, token.strip())


def run_remotely(
    server: RemoteServer,
    project: str,
    period: str,
    request_id: str | None,
    captures: Sequence[CaptureWish],
    session: Session,
    parameters: Mapping[str, object] | None = None,
    *,
    anew: bool = False,
    as_of: str | None = None,
) -> int:
    """Submit a run to a server and follow it to its end. Returns exit code 0 if it completed.

    `anew` activates the files of an active project first, if they have changed. `as_of` is a time that it goes back to.
    """
    run = server.submit(project, period, request_id, captures, parameters, with_current_definitions=anew, as_of=as_of)
    run_id = str(run["run_id"])
    if not session.wants_json:
        version = str(run["project_version"] or "")
        numbered = f"v{version}" if version.isdigit() else version
        say(f"{plain(run['project'])} {numbered}, period {plain(period)}, run {short(run_id)} (on {server.url})")
    was_interrupted = _follow(server, run_id, session)
    run = server.run(run_id)
    if session.wants_json:
        write_json(run)
    else:
        for line in _end_lines(run, server):
            say(line)
    if run["status"] == "COMPLETED":
        return DONE
    return INTERRUPTED if was_interrupted else FAILED


def _follow(server: RemoteServer, run_id: str, session: Session) -> bool:
    """Show the events of a run as they arrive. Ctrl-C cancels the run. Returns whether that happened."""
    watch = None if session.wants_json else _watch(server, run_id)
    seen, was_interrupted = 0, False
    with watch or nullcontext():
        while True:
            try:
                for event in server.events(run_id, seen):
                    seen = event.run_seq
                    if watch is not None:
                        watch.take(event)
            except KeyboardInterrupt:
                if was_interrupted:
                    raise
                was_interrupted = True
                if watch is not None:
                    watch.tell("cancelling; press Ctrl-C again to quit immediately")
                server.signal(run_id, SignalType.CANCEL, "interrupted by Ctrl-C")
            else:
                return was_interrupted


def _watch(server: RemoteServer, run_id: str) -> PlainWatch | LiveWatch:
    return watch_for_output(RunProgress(StepLines(server.plan(run_id)), lambda _artifacts: ""))


def _end_lines(run: dict[str, Any], server: RemoteServer) -> list[str]:
    where = f"{server.url.rstrip('/')}/runs/{run['run_id']}"
    if run["status"] == "COMPLETED":
        return [f"{good('completed')} in {(run['duration_ms'] or 0) / 1000:.1f} s", f"next: {where}"]
    error = run["error"]
    told = [f"error {error['code']}: {plain(error['message'])}"] if error else []
    return [*told, f"The run is {bad(str(run['status']))}.", f"next: {where}"]
