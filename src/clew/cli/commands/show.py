"""`clew show`."""

from pathlib import Path

import click

from clew.cli.options import command, environment_option, run_argument, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session


@command
@run_argument
@environment_option
@workspace_option
def show(context: click.Context, run: str, environment: str | None, workspace: Path | None) -> None:
    """Show a run: its steps, its outputs, and why it failed."""
    from clew.cli.views import page
    from clew.cli.views.run import end_lines, run_page

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        found = opened.get_run(run).sealed()
        if session.wants_json:
            write_json(found.to_json())
            return
        page.show(*run_page(found))
        for line in end_lines(found, session):
            say(line)
