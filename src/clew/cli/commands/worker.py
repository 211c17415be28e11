"""`clew worker`."""

import typer

from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session


def worker(
    context: typer.Context,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Take runs from the queue and drive them, until told to stop.

    Takes over runs whose worker is not heard of any more, does the captures and postlude jobs of runs that have ended,
    and delivers events to the buses. SIGTERM and Ctrl-C let the present step come to its end and give the run back.
    With --json the runs that were worked on are printed at the end.
    """
    from clew.api.starting import RunStarter
    from clew.captures.worker import after_runs
    from clew.cli.run_site import open_site
    from clew.cli.views.progress import WorkerLines
    from clew.runs.worker import stop_on_signals, worker_name

    session = context.ensure_object(Session)
    with open_site(session, workspace, environment) as site, stop_on_signals() as stop:
        lines = WorkerLines(say=(lambda _line: None) if session.wants_json else say)
        starter = RunStarter(site.workspace, site.environment, site.state)
        lines.say(f"worker {worker_name()} takes runs of the environment {site.environment.name}; Ctrl-C stops it")
        starter.prepare()
        with after_runs(site.environment, site.state, starter.session, on_done=lines.done, stop=stop):
            starter.worker(on_event=lines.take).run(stop)
        if session.wants_json:
            write_json({"worker": worker_name(), "runs": lines.ended_as_json()})
        else:
            say("stopped")
