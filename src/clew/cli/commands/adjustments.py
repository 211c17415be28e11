"""`clew adjustments`."""

from pathlib import Path

import click

from clew.cli.options import command, environment_option, run_argument, workspace_option
from clew.cli.output import write_json
from clew.cli.session import Session


@command
@run_argument
@environment_option
@workspace_option
def adjustments(context: click.Context, run: str, environment: str | None, workspace: Path | None) -> None:
    """Show the manual corrections in force in a run.

    Each has who made it, who approved it and why, the old and new values, and whether it was applied: one that is
    not approved is not, and neither is one whose row does not have its old values.
    """
    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run)
        rows = found.adjustments()
    if session.wants_json:
        told = [row.to_json() for row in rows]
        write_json({"run_id": found.id, "period": found.period, "adjustments": told})
    else:
        from clew.cli.views.adjustments import adjustments_page
        from clew.cli.views.page import show

        show(*adjustments_page(rows))
