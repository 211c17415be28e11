"""`clew rm`."""

from pathlib import Path

import click

from clew.cli.options import command, environment_option, option, run_argument, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session


@command
@run_argument
@option("--force", is_flag=True, help="Even where a dataset has rows of the run, or captures wait for them.")
@option("--reason", metavar="TEXT", default="", help="Why, for the record.")
@environment_option
@workspace_option
def rm(
    context: click.Context, run: str, force: bool, reason: str, environment: str | None, workspace: Path | None
) -> None:
    """Delete a run that has ended.

    Its history, its trace and what it read are removed. Outputs, versions of datasets and captures stay, and so does
    the fact that the run existed. Captures that are still to be made need --force, and are dropped.
    """
    from clew.cli.formatting import short, size

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        removal = opened.find_run(run).remove(force=force, reason=reason)
        if session.wants_json:
            write_json({"run_id": removal.run_id, "deleted": True, "freed_bytes": removal.freed_bytes})
        else:
            say(f"run {short(removal.run_id)} deleted, {size(removal.freed_bytes)} freed")
