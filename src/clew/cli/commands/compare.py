"""`clew compare`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, argument, command, environment_option, option, workspace_option
from clew.cli.output import say, write_bytes, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.change.comparison import RunComparison


_ROWS_OF_A_SHEET = 1_048_575
"""Below the line with the names of columns."""


@command
@argument("run_a", metavar="RUN_A", help="The id of a run, or its first characters.")
@argument("run_b", metavar="RUN_B", help="Another run of the same project.")
@option("--output", metavar="SEQ", type=WholeNumber(), help="Compare this output. Default: the last one.")
@option("--at", metavar="SEQ", type=WholeNumber(), help="Compare the working dataset after this step instead.")
@option("--where", metavar="EXPR", help="Only rows for which this is true, in each run by itself.")
@option("--key", metavar="COLUMN", multiple=True, help="Match rows by this column; may be repeated.")
@option("--sort", metavar="COLUMN", help="Largest differences of this column first.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=20, help="Maximum number of rows.")
@option("--offset", metavar="N", type=WholeNumber(min=0), default=0, help="Leave out the first N rows.")
@option("--to", metavar="FILE", type=Path, help="Write all rows that differ to a .csv, .xlsx or .parquet file.")
@environment_option
@workspace_option
def compare(
    context: click.Context,
    run_a: str,
    run_b: str,
    output: int | None,
    at: int | None,
    where: str | None,
    key: tuple[str, ...],
    sort: str | None,
    limit: int,
    offset: int,
    to: Path | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Show in what a run differs from another run of its project.

    Shows rows that only one of them has, rows that changed, with old and new values, and the totals of numbers side by
    side. Rows are matched by their natural key, summaries by the keys of their groups, and rows without a key by all
    their values.
    """
    session = context.ensure_object(Session)
    if output is not None and at is not None:
        raise UserError(WRONG_USAGE.anywhere(problem="--output and --at cannot be combined"))
    if to is not None and to.suffix not in {".csv", ".xlsx", ".parquet"}:
        raise UserError(WRONG_USAGE.anywhere(problem=f"{to} must end with .csv, .xlsx or .parquet"))
    if where is not None:
        session.typed("<where>", where)
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run_a).compare(
            opened.find_run(run_b),
            output=output,
            at=at,
            where=where,
            key=key,
            sort=sort,
            limit=limit if to is None else None,
            offset=offset,
        )
    if to is not None:
        write_bytes(to, _file(found, to.suffix))
    if session.wants_json:
        write_json(found.to_json())
    elif to is not None:
        say(f"{to}: {len(found.rows):,} rows")
    else:
        from clew.cli.views.comparison import comparison_page
        from clew.cli.views.page import show

        show(comparison_page(found))


def _file(found: "RunComparison", suffix: str) -> bytes:
    """The rows that differ as the content of a file."""
    if suffix == ".csv":
        return found.to_csv()
    if suffix == ".parquet":
        return found.to_parquet()
    from clew.api.table_downloads import FileFormat, table_file

    if len(found.rows) > _ROWS_OF_A_SHEET:
        problem = f"{len(found.rows):,} rows differ, and a sheet holds {_ROWS_OF_A_SHEET:,}"
        raise UserError(
            WRONG_USAGE.anywhere(problem=problem, hint="write a .csv or .parquet file, or ask with --where")
        )
    return table_file(found.to_arrow(), "differences", FileFormat.XLSX, is_cut=False).content
