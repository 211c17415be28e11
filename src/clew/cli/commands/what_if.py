"""`clew what-if`."""

from pathlib import Path

import click

from clew.cli.options import WholeNumber, command, environment_option, option, run_argument, workspace_option
from clew.cli.output import write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE


@command
@run_argument
@option("--set", "sets", metavar="SETTING", multiple=True, help="DATASET where CONDITION: COLUMN = EXPRESSION")
@option("--drop", "drops", metavar="ROWS", multiple=True, help="DATASET where CONDITION, as if not there.")
@option("--expression", "expressions", metavar="EXPR", multiple=True, help="SEQ.COLUMN = EXPRESSION, of an update.")
@option("--output", metavar="SEQ", type=WholeNumber(), help="What would differ in this output. Default: the last one.")
@option("--at", metavar="SEQ", type=WholeNumber(), help="What would differ after this step instead.")
@option("--sort", metavar="COLUMN", help="Largest differences of this column first.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=20, help="Maximum number of rows.")
@option("--offset", metavar="N", type=WholeNumber(min=0), default=0, help="Leave out the first N rows.")
@environment_option
@workspace_option
def what_if(
    context: click.Context,
    run: str,
    sets: tuple[str, ...],
    drops: tuple[str, ...],
    expressions: tuple[str, ...],
    output: int | None,
    at: int | None,
    sort: str | None,
    limit: int,
    offset: int,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Show what a run would be with other data or rules.

    Only rows that this reaches are evaluated again: those that look up a changed row, groups that hold changed rows,
    and what later steps make of them. Nothing is stored. Options may be repeated.
    """
    session = context.ensure_object(Session)
    if output is not None and at is not None:
        raise UserError(WRONG_USAGE.anywhere(problem="--output and --at cannot be combined"))
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run).what_if(
            sets=sets,
            drops=drops,
            expressions=expressions,
            output=output,
            at=at,
            sort=sort,
            limit=limit,
            offset=offset,
        )
    if session.wants_json:
        write_json(found.to_json())
    else:
        from clew.cli.views.comparison import what_if_page
        from clew.cli.views.page import show

        show(what_if_page(found))
