"""`clew worker`."""

import os
import sys
import threading
from pathlib import Path

import click

from clew.cli.options import command, environment_option, option, workspace_option
from clew.cli.output import going_on_unread, say, write_json
from clew.cli.session import Session


@command
@option("--until-eof", is_flag=True, help="Also stop when standard input ends, for the process that started it.")
@environment_option
@workspace_option
def worker(context: click.Context, until_eof: bool, environment: str | None, workspace: Path | None) -> None:
    """Execute runs from the queue until stopped.

    Also takes over runs whose worker has died, does the captures and postlude jobs of ended runs, and delivers events
    to the buses. On SIGTERM or Ctrl-C, the worker finishes the current step and returns the run to the queue. With
    --json, it prints the runs it worked on at the end.
    """
    from clew.api.working import WorkerListener, stop_on_signals, worker_name
    from clew.cli.views.progress import WorkerLines

    session = context.ensure_object(Session)
    with (
        going_on_unread(),
        session.open(workspace, environment).following_files() as opened,
        stop_on_signals() as stop,
    ):
        if until_eof:
            threading.Thread(target=_stop_at_the_end, args=(stop,), daemon=True).start()
        lines = WorkerLines(
            say=(lambda _line: None) if session.wants_json else say,
            steps_of=lambda run_id: opened.find_run(run_id).view.snapshot.steps,
        )
        lines.say(f"worker {worker_name()} executes runs of environment {opened.environment_name}; Ctrl-C stops it")
        opened.work(stop, WorkerListener(lines.take, lines.done))
        if session.wants_json:
            write_json({"worker": worker_name(), "runs": lines.ended_as_json()})
        else:
            say("stopped")


def _stop_at_the_end(stop: threading.Event) -> None:
    """Whoever started the worker holds the other end of its standard input, which ends with them, even if killed."""
    while os.read(sys.stdin.fileno(), 1024):
        pass
    stop.set()
