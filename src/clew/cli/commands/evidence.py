"""`clew evidence`."""

from pathlib import Path

import click

from clew.cli.options import WholeNumber, argument, command, environment_option, option, run_argument, workspace_option
from clew.cli.output import say, write_bytes, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE


@command
@run_argument
@argument("row", metavar="ROW", required=False, help="A row id; omit it with --where.")
@argument("column", metavar="COLUMN", required=False, help="The column to explain.")
@option("--at", metavar="SEQ", type=WholeNumber(), help="Explain the value after this step.")
@option("--where", metavar="EXPR", help="A condition that matches exactly one row.")
@option("--output", metavar="SEQ", type=WholeNumber(), help="Explain every value of this output.")
@option("pack", "-o", metavar="FILE", type=Path, required=True, help="The pack to write, a ZIP file.")
@environment_option
@workspace_option
def evidence(
    context: click.Context,
    run: str,
    row: str | None,
    column: str | None,
    at: int | None,
    where: str | None,
    output: int | None,
    pack: Path,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Write a signed pack of what a run did.

    It contains plan and project, events and their seals, versions, explanations with all rows behind them, and the
    input rows with file, line and digest: as a page to read and print, and as JSON. `verify.py` in the pack verifies it
    with Python alone; `clew verify PACK` does the same. Values that your role may not see are not in it.
    """
    from clew.cli.formatting import counted

    session = context.ensure_object(Session)
    if where is not None:
        session.typed("<where>", where)
    row_id, name = _named(row, column, where, output)
    with session.open(workspace, environment) as opened:
        made = opened.find_run(run).evidence(row_id, name, where=where, at=at, output=output)
    write_bytes(pack, made.to_bytes())
    if session.wants_json:
        write_json({"pack": str(pack), **made.to_json()})
        return
    told = [counted(made.summary[kind], kind.removesuffix("s")) for kind in ("explanations", "rows", "events")]
    say(f"written to {pack}: {', '.join(told)}")
    say(f"signed with the key {made.fingerprint}")


def _named(row: str | None, column: str | None, where: str | None, output: int | None) -> tuple[str | None, str | None]:
    """Row id and column. With --where, the only argument after the run is the column."""
    if output is None and where is not None and row is not None and column is None:
        return None, row
    if where is None and (row is None) == (column is None) and (output is None or row is None):
        return row, column
    problem = "give a row id and a column, or --where and a column, or --output, or nothing but the run"
    raise UserError(WRONG_USAGE.anywhere(problem=problem))
