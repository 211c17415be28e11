"""`clew capture`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, argument, command, environment_option, option, workspace_option
from clew.cli.output import say, write_file, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.commands import UNWRITABLE_OUTPUT, WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.capture import Capture

_ACTIONS = {"show": (1, 1), "view": (1, 1), "diff": (2, 2), "rm": (1, 100)}
"""How many ids each action takes."""


@command
@argument("action", metavar="show|view|diff|rm", help="The action.")
@argument("ids", metavar="ID", nargs=-1, required=True, help="Full capture ids.")
@option("--key", metavar="COLUMN", multiple=True, help="For diff: a column that identifies rows. Repeatable.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=20, help="Maximum number of rows.")
@option("--out", metavar="FILE", type=Path, help="For view: write all rows to a .parquet or .csv file.")
@option("--html", metavar="FILE", type=Path, help="For show: write an HTML page with plots to a file.")
@environment_option
@workspace_option
def capture(
    context: click.Context,
    action: str,
    ids: tuple[str, ...],
    key: tuple[str, ...],
    limit: int,
    out: Path | None,
    html: Path | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Look at captures, without starting Spark.

    `show` describes a capture and its columns, `view` shows its rows except deleted ones, `diff` compares two captures
    by row and by column, and `rm` deletes captures.
    """
    session = context.ensure_object(Session)
    _check(action, ids)
    with session.open(workspace, environment) as opened:
        found = [opened.capture(each) for each in ids]
        match action:
            case "show":
                _show(found[0], html, session)
            case "view":
                _view(found[0], out, limit, session)
            case "diff":
                _diff(found[0], found[1], key, limit, session)
            case _:
                _remove(found, session)


def _check(action: str, ids: Sequence[str]) -> None:
    if action not in _ACTIONS:
        hint = did_you_mean(action, _ACTIONS) or f"the actions are {', '.join(_ACTIONS)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no action "{action}"', hint=hint))
    least, most = _ACTIONS[action]
    if not least <= len(ids) <= most:
        wanted = {(1, 1): "one capture", (2, 2): "two captures"}.get((least, most), "captures")
        raise UserError(WRONG_USAGE.anywhere(problem=f"{action} takes {wanted}, not {len(ids)}"))


def _show(capture: "Capture", html: Path | None, session: Session) -> None:
    from clew.cli.views.captures import capture_page
    from clew.cli.views.page import show

    if not capture.record.status.is_over or capture.record.outcome.manifest is None:
        _print_status(capture, session)
        return
    manifest, statistics = capture.manifest, capture.statistics()
    if html is not None:
        write_file(html, capture.report())
    if session.wants_json:
        write_json(capture.described())
        return
    show(*capture_page(capture.record, manifest, statistics))
    if html is not None:
        say(f"written to {html}")


def _print_status(capture: "Capture", session: Session) -> None:
    from clew.cli.views.captures import what

    if session.wants_json:
        write_json(capture.to_json())
    else:
        say(f"capture {capture.id}  {what(capture.record)}")


def _view(capture: "Capture", out: Path | None, limit: int, session: Session) -> None:
    from clew.cli.views.captures import rows_table
    from clew.cli.views.page import show

    rows = capture.rows
    if out is not None:
        written = _write_rows(capture, out)
        if session.wants_json:
            write_json({"capture_id": capture.id, "rows": written, "path": str(out)})
        else:
            say(f"{written:,} rows written to {out}")
        return
    if session.wants_json:
        write_json(capture.first_rows(limit))
        return
    table = capture.first(limit)
    shown_rows, more = rows_table([name for name in table.column_names if name != "_row_id"], table.to_pylist())
    show(shown_rows)
    beside = f"; {more} more columns in --json and --out FILE" if more else ""
    say(f"{table.num_rows:,} of {rows.manifest.rows - rows.deleted():,} rows{beside}")


def _write_rows(capture: "Capture", out: Path) -> int:
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    table = capture.to_arrow()
    try:
        match out.suffix.lower():
            case ".parquet":
                pq.write_table(table, out, compression="zstd")
            case ".csv":
                pa_csv.write_csv(table, out)
            case other:
                problem = f'rows cannot be written as "{other}"'
                raise UserError(WRONG_USAGE.anywhere(problem=problem, hint="use a .parquet or .csv file"))
    except OSError as error:
        reason = f"{out}: {error.strerror or error}"
        raise UserError(UNWRITABLE_OUTPUT.anywhere(reason=reason, hint="choose another file")) from error
    return int(table.num_rows)


def _diff(before: "Capture", after: "Capture", key: Sequence[str], limit: int, session: Session) -> None:
    from clew.cli.views.captures import diff_page
    from clew.cli.views.page import show

    found = before.diff(after, key=key, examples=limit)
    if session.wants_json:
        write_json(found.to_json())
    else:
        show(*diff_page(found))


def _remove(captures: list["Capture"], session: Session) -> None:
    from clew.cli.formatting import size

    freed = sum(each.remove() for each in captures)
    if session.wants_json:
        write_json({"removed": [each.id for each in captures], "freed_bytes": freed})
    else:
        say(f"{len(captures)} deleted, {size(freed)} freed")
