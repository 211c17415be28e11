"""`clew quarantine`."""

from pathlib import Path

import click

from clew.cli.options import command, environment_option, option, run_argument, workspace_option
from clew.cli.output import say, write_bytes, write_json
from clew.cli.session import Session


@command
@run_argument
@option("--dataset", metavar="NAME", help="Only the rows of this dataset.")
@option("--export", metavar="FILE", type=Path, help="Write them to a CSV file that can be corrected.")
@environment_option
@workspace_option
def quarantine(
    context: click.Context,
    run: str,
    dataset: str | None,
    export: Path | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Show the rows that a run kept apart.

    These are rows that are not as their dataset says, in files whose rule has `bad_rows: quarantine`. To load them,
    export them, correct the file, and name it under `corrections` of the rule.
    """
    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run)
        if export is not None:
            write_bytes(export, found.quarantine_csv(dataset).encode())
        rows = found.quarantine(dataset)
    if session.wants_json:
        write_json({"run_id": found.id, "rows": [row.to_json() for row in rows]})
    elif export is not None:
        say(f"written to {export}")
    else:
        from clew.cli.views.page import show
        from clew.cli.views.quarantine import quarantine_page

        show(*quarantine_page(rows))
