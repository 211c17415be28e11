"""`clew runs`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.events.snapshot import RunStatus


def runs(
    context: typer.Context,
    project: Annotated[
        str | None, typer.Option("--project", metavar="PROJECT", help="Only runs of this project.")
    ] = None,
    period: Annotated[
        str | None, typer.Option("--period", "-p", metavar="PERIOD", help="Only for this period.")
    ] = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Only in this state, such as FAILED.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many.", min=1)] = 20,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """List runs, the newest first."""
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
                say(f"... and more; --limit {limit * 5} shows more of them")
        elif project or period or status:
            say("no such runs")
        else:
            say(f"no runs yet; `{session.command('run PROJECT --period PERIOD')}` makes the first")


def _status(name: str | None) -> "RunStatus | None":
    from clew.diagnostics import UserError, did_you_mean
    from clew.diagnostics.codes.commands import WRONG_USAGE
    from clew.events.snapshot import RunStatus

    if name is None:
        return None
    known = [status.value for status in RunStatus]
    if name.upper() not in known:
        hint = did_you_mean(name.upper(), known) or f"the states are {', '.join(known)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no state "{name}"', hint=hint))
    return RunStatus(name.upper())
