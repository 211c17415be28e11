"""`clew rm`."""

from typing import Annotated

import typer

from clew.cli.output import EnvironmentOption, JsonOption, RunArgument, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session


def rm(
    context: typer.Context,
    run: RunArgument,
    force: Annotated[
        bool, typer.Option("--force", help="Even where a dataset has rows of the run, or captures wait for them.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the record.")] = "",
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
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
