"""`clew show`."""

import typer

from clew.cli.output import EnvironmentOption, JsonOption, RunArgument, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session


def show(
    context: typer.Context,
    run: RunArgument,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Show a run: its steps, its outputs, why it failed."""
    from clew.cli.views import page
    from clew.cli.views.run import end_lines, run_page

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        found = opened.get_run(run)
        if session.wants_json:
            write_json(found.to_json())
            return
        page.show(*run_page(found))
        for line in end_lines(found, session):
            say(line)
