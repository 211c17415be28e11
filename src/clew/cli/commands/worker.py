"""`clew worker`."""

from pathlib import Path

import click

from clew.cli.options import command, environment_option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session


@command
@environment_option
@workspace_option
def worker(context: click.Context, environment: str | None, workspace: Path | None) -> None:
    """Take runs from the queue and drive them, until told to stop.

    Takes over runs whose worker is not heard of any more, does the captures and postlude jobs of runs that have ended,
    and delivers events to the buses. SIGTERM and Ctrl-C let the present step come to its end and give the run back.
    With --json the runs that were worked on are printed at the end.
    """
    from clew.api.working import WorkerListener, stop_on_signals, worker_name
    from clew.cli.views.progress import WorkerLines

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened, stop_on_signals() as stop:
        lines = WorkerLines(say=(lambda _line: None) if session.wants_json else say)
        lines.say(f"worker {worker_name()} takes runs of the environment {opened.environment_name}; Ctrl-C stops it")
        opened.work(stop, WorkerListener(lines.take, lines.done))
        if session.wants_json:
            write_json({"worker": worker_name(), "runs": lines.ended_as_json()})
        else:
            say("stopped")
