"""`clew what-if`."""

from pathlib import Path

import click

from clew.cli.options import (
    WholeNumber,
    command,
    environment_option,
    given_parameters,
    option,
    run_argument,
    workspace_option,
)
from clew.cli.output import write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE


@command
@run_argument
@option("--set", "sets", metavar="SETTING", multiple=True, help="DATASET where CONDITION: COLUMN = EXPRESSION")
@option("--drop", "drops", metavar="ROWS", multiple=True, help="DATASET where CONDITION, as if not there.")
@option("--expression", "expressions", metavar="EXPR", multiple=True, help="SEQ.COLUMN = EXPRESSION, of an update.")
@option("--parameter", "parameters", metavar="NAME=VALUE", multiple=True, help="Another value for a parameter.")
@option("--sensitivity", metavar="COLUMN", help="Which reference data the total of this column hangs on most.")
@option("--where", metavar="EXPR", help="Only rows for which this is true, now or then.")
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
    parameters: tuple[str, ...],
    sensitivity: str | None,
    where: str | None,
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
    and what later steps make of them. Nothing is stored. Options may be repeated. With --sensitivity, each number
    that rows of the total have looked up is made one percent larger, one at a time.
    """
    session = context.ensure_object(Session)
    if output is not None and at is not None:
        raise UserError(WRONG_USAGE.anywhere(problem="--output and --at cannot be combined"))
    if where is not None:
        session.typed("<where>", where)
    if sensitivity is not None:
        if sets or drops or expressions or parameters or sort:
            problem = "--sensitivity supposes something of each reference row, and nothing else can be supposed with it"
            raise UserError(WRONG_USAGE.anywhere(problem=problem))
        with session.open(workspace, environment) as opened:
            effects = opened.find_run(run).sensitivity(sensitivity, where=where, output=output, at=at)
        if session.wants_json:
            write_json(effects.to_json())
        else:
            from clew.cli.views.comparison import sensitivity_page
            from clew.cli.views.page import show

            show(sensitivity_page(effects, limit))
        return
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run).what_if(
            sets=sets,
            drops=drops,
            expressions=expressions,
            parameters=given_parameters(parameters, "--parameter"),
            where=where,
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
