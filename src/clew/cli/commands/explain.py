"""`clew explain`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, argument, command, environment_option, option, run_argument, workspace_option
from clew.cli.output import say, terminal_width, write, write_file, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.questions import AbsentRows, ExplainedValue
    from clew.api.run import Run
    from clew.change.restating import Restatements

_TOP = 5
_CHECKS = ("sample", "all")


@command
@run_argument
@argument("row", metavar="ROW", required=False, help="A row id; omit it with --where.")
@argument("column", metavar="COLUMN", required=False, help="The column to explain.")
@option("--at", metavar="SEQ", type=WholeNumber(), help="Explain the value after this step.")
@option("--where", metavar="EXPR", help="A condition that matches exactly one row.")
@option("--why-not", metavar="EXPR", help="Explain why these rows are missing from an output.")
@option("--output", metavar="SEQ", type=WholeNumber(), help="The output for --why-not. Default: the last one.")
@option("everything", "--all", is_flag=True, help="Show every row of a summary, not only the largest.")
@option("--check", metavar="HOW", help="`all` evaluates every row of a large summary in Python; `sample` some of them.")
@option("--restated", is_flag=True, help="Also what earlier runs for the same period had in its place.")
@option("--html", metavar="FILE", type=Path, help="Write the explanation as a self-contained HTML page.")
@environment_option
@workspace_option
def explain(
    context: click.Context,
    run: str,
    row: str | None,
    column: str | None,
    at: int | None,
    where: str | None,
    why_not: str | None,
    output: int | None,
    everything: bool,
    check: str | None,
    restated: bool,
    html: Path | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Explain why a value is what it is.

    Shows the step that last set the value, the expression with its input values, the matching row of a joined dataset
    and the rows of a summary, through every project the data passed, down to the line or row of the source. Every
    expression is recomputed, and the explanation says whether the result equals the stored value. A total of many
    rows is recomputed with DuckDB, and a sample of its rows in Python, too; --check all evaluates all of them.
    --restated tells the value before each restatement, and when and by which run it was changed.
    """
    session = context.ensure_object(Session)
    if check not in {None, *_CHECKS}:
        raise UserError(WRONG_USAGE.anywhere(problem=f'no --check "{check}"', hint="it is `sample` or `all`"))
    if restated and (why_not is not None or html is not None):
        problem = f"--restated and {'--why-not' if why_not is not None else '--html'} cannot be combined"
        raise UserError(WRONG_USAGE.anywhere(problem=problem))
    for condition in (where, why_not):
        if condition is not None:
            session.typed("<where>", condition)
    with session.open(workspace, environment) as opened:
        if why_not is not None:
            answer: AbsentRows | ExplainedValue = opened.find_run(run).why_not(why_not, output=output)
        else:
            named = _named(row, column, where)
            top = None if everything else _TOP
            found = opened.find_run(run)
            answer = _explained(found, named, at, top=top, every_row=check == "all")
            if restated:
                _print_restated(answer, found.restatements(answer.row_id, answer.column, at=at), session)
                return
    _print(answer, session, html)


def _print_restated(answer: "ExplainedValue", found: "Restatements", session: Session) -> None:
    if session.wants_json:
        write_json({**answer.to_json(), "restated": found.to_json()})
        return
    write(answer.to_text(terminal_width()))
    for line in found.to_lines():
        say(line)


def _named(row: str | None, column: str | None, where: str | None) -> tuple[str | None, str | None, str]:
    """Row id, condition and column. With --where, the only argument after the run is the column."""
    if where is not None and row is not None and column is None:
        return None, where, row
    if where is None and row is not None and column is not None:
        return row, None, column
    problem = "give a row id and a column, or --where and a column, or --why-not"
    raise UserError(WRONG_USAGE.anywhere(problem=problem))


def _explained(
    run: "Run", named: tuple[str | None, str | None, str], at: int | None, *, top: int | None, every_row: bool
) -> "ExplainedValue":
    row, where, column = named
    row_id = row if row is not None else run.row_where(where or "", at=at)
    return run.explain(row_id, column, at=at, top=top, every_row=every_row)


def _print(answer: "ExplainedValue | AbsentRows", session: Session, html: Path | None) -> None:
    if html is not None:
        write_file(html, answer.to_html())
    if session.wants_json:
        write_json(answer.to_json())
    elif html is not None:
        say(f"written to {html}")
    else:
        write(answer.to_text(terminal_width()))
