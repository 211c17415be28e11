"""`clew check-data`."""

from pathlib import Path

import click

from clew.cli.commands.checks import write_junit
from clew.cli.failure import FAILED
from clew.cli.options import argument, command, environment_option, option, workspace_option
from clew.cli.output import write_json
from clew.cli.session import Session


@command
@argument("dataset", metavar="DATASET", help="The id or name of a dataset.")
@option("--period", "-p", metavar="PERIOD", required=True, help="A period of a calendar.")
@option("--junit", metavar="FILE", type=Path, help="Also write the results as JUnit XML.")
@environment_option
@workspace_option
def check_data(
    context: click.Context,
    dataset: str,
    period: str,
    junit: Path | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Decide the checks of a dataset without running a project.

    Reads the data as a run would, and keeps nothing. Exits with 1 if a check with `severity: fail` fails.
    """
    session = context.ensure_object(Session)
    found = session.open(workspace, environment).check_data(dataset, period)
    if junit is not None:
        write_junit(found.to_junit(), junit)
    if session.wants_json:
        write_json(found.to_json())
    else:
        from clew.cli.views.checks import data_check_page
        from clew.cli.views.page import show

        show(*data_check_page(found))
    if not found.passed:
        raise click.exceptions.Exit(FAILED)
