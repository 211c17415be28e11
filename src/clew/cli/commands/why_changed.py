"""`clew why-changed`."""

from pathlib import Path

import click

from clew.cli.options import WholeNumber, argument, command, environment_option, option, workspace_option
from clew.cli.output import write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE


@command
@argument("run_a", metavar="RUN_A", help="The id of a run, or its first characters.")
@argument("run_b", metavar="RUN_B", help="Another run of the same project.")
@argument("column", metavar="COLUMN", help="A column with numbers; its values are added up.")
@option("--where", metavar="EXPR", help="Only rows for which this is true, in each run by itself.")
@option("--output", metavar="SEQ", type=WholeNumber(), help="Ask about this output. Default: the last one.")
@option("--at", metavar="SEQ", type=WholeNumber(), help="Ask about the working dataset after this step instead.")
@option("--sequential", is_flag=True, help="Take causes one after the other, instead of their Shapley values.")
@environment_option
@workspace_option
def why_changed(
    context: click.Context,
    run_a: str,
    run_b: str,
    column: str,
    where: str | None,
    output: int | None,
    at: int | None,
    sequential: bool,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Show why a value of a run is not what it was in another.

    Splits the difference into causes that add up to it exactly: operations that changed, rows of the input, reference
    data, appended data, parameters, the period, and TODAY(). Every part is calculated from a mixture of both runs,
    without Spark.
    """
    session = context.ensure_object(Session)
    if output is not None and at is not None:
        raise UserError(WRONG_USAGE.anywhere(problem="--output and --at cannot be combined"))
    if where is not None:
        session.typed("<where>", where)
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run_a).why_changed(
            opened.find_run(run_b),
            column,
            where=where,
            output=output,
            at=at,
            mode="sequential" if sequential else "shapley",
        )
    if session.wants_json:
        write_json(found.to_json())
    else:
        from clew.cli.views.comparison import bridge_page
        from clew.cli.views.page import show

        show(bridge_page(found))
