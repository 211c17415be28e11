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
    from clew.cli.run_site import open_site
    from clew.cli.views import page
    from clew.cli.views.run import end_lines, run_page

    session = context.ensure_object(Session)
    with open_site(session, workspace, environment) as site:
        view = site.reader.view(run)
        if session.wants_json:
            write_json(view.to_json())
            return
        page.show(*run_page(view, site.environment.storage_root))
        for line in end_lines(view, site):
            say(line)
