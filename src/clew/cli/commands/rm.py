"""`clew rm`."""

from pathlib import Path

import click

from clew.cli.options import command, environment_option, option, run_argument, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session


@command
@run_argument
@option("--force", is_flag=True, help="Delete even if a dataset has rows of the run, or captures wait for them.")
@option("--reason", metavar="TEXT", default="", help="The reason, for the record.")
@environment_option
@workspace_option
def rm(
    context: click.Context, run: str, force: bool, reason: str, environment: str | None, workspace: Path | None
) -> None:
    """Delete a run that has ended.

    Deletes its events, its trace and its stored inputs. Outputs, versions of datasets and captures are kept, and so is
    a record that the run existed. If captures are still waiting, --force is needed, and drops them.
    """
    from clew.cli.formatting import short, size

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        removal = opened.find_run(run).remove(force=force, reason=reason)
        if session.wants_json:
            problems = [problem.to_json() for problem in removal.problems]
            deleted = {"run_id": removal.run_id, "deleted": True, "freed_bytes": removal.freed_bytes}
            write_json({**deleted, "problems": problems})
        else:
            say(f"run {short(removal.run_id)} deleted, {size(removal.freed_bytes)} freed")
            for problem in removal.problems:
                say(problem.message)
