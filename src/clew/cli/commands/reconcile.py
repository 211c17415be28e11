"""`clew reconcile`."""

from pathlib import Path

import click

from clew.cli.failure import FAILED
from clew.cli.options import command, environment_option, run_argument, workspace_option
from clew.cli.output import write_json
from clew.cli.session import Session


@command
@run_argument
@environment_option
@workspace_option
def reconcile(context: click.Context, run: str, environment: str | None, workspace: Path | None) -> None:
    """Show that no row or amount of a run was lost.

    For each output: the rows that were loaded, appended and created, and what became of them. The same for each amount
    under `controls` in the project. Exits with 1 if anything does not tie.
    """
    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run).reconcile()
    if session.wants_json:
        write_json(found.to_json())
    else:
        from clew.cli.views.page import show
        from clew.cli.views.reconciliation import reconciliation_page

        show(*reconciliation_page(found, session.command))
    if not found.ties:
        raise click.exceptions.Exit(FAILED)
