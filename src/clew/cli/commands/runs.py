"""`clew runs`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.events.snapshot import RunStatus


@command
@option("--project", metavar="PROJECT", help="Only runs of this project.")
@option("--period", "-p", metavar="PERIOD", help="Only runs for this period.")
@option("--status", metavar="STATUS", help="Only runs with this status, such as FAILED.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=20, help="Maximum number of runs.")
@environment_option
@workspace_option
def runs(
    context: click.Context,
    project: str | None,
    period: str | None,
    status: str | None,
    limit: int,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """List runs, newest first."""
    from clew.cli.views.page import show
    from clew.cli.views.tables import runs_table

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        found = opened.find_runs(project=project, period=period, status=_status(status), limit=limit + 1)
        shown = [run.record for run in found[:limit]]
        if session.wants_json:
            write_json({"runs": [run.to_json() for run in shown], "has_more": len(found) > limit})
        elif shown:
            show(runs_table(shown))
            if len(found) > limit:
                say(f"... and more; use --limit {limit * 5} to see more")
        elif project or period or status:
            say("no matching runs")
        else:
            say(f"no runs yet; `{session.command('run PROJECT --period PERIOD')}` starts one")


def _status(name: str | None) -> "RunStatus | None":
    from clew.diagnostics import UserError, did_you_mean
    from clew.diagnostics.codes.commands import WRONG_USAGE
    from clew.events.snapshot import RunStatus

    if name is None:
        return None
    known = [status.value for status in RunStatus]
    if name.upper() not in known:
        hint = did_you_mean(name.upper(), known) or f"the statuses are {', '.join(known)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no status "{name}"', hint=hint))
    return RunStatus(name.upper())
