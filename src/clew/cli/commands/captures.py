"""`clew captures`."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.captures.queue import CaptureStatus


@command
@option("--run", metavar="RUN", help="Only captures of this run: its id, or its first characters.")
@option("--request-id", metavar="ID", help="Only captures of the run with this request id.")
@option("--status", metavar="STATUS", help="Only this status: queued, running, ready, failed, expired or dropped.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=50, help="Maximum number of captures.")
@environment_option
@workspace_option
def captures(
    context: click.Context,
    run: str | None,
    request_id: str | None,
    status: str | None,
    limit: int,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """List the captures that runs took, newest first."""
    from clew.cli.views.captures import capture_table
    from clew.cli.views.page import show

    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        wanted = None if status is None else _status(status)
        found = opened.captures(run=run, request_id=request_id, status=wanted, limit=limit)
        if session.wants_json:
            write_json({"captures": [each.to_json() for each in found]})
        elif found:
            show(capture_table(each.record for each in found))
        else:
            say("no captures; `clew run PROJECT --period P --capture BREAKPOINT` takes one")


def _status(word: str) -> "CaptureStatus":
    from clew.captures.queue import CaptureStatus

    names = [each.value for each in CaptureStatus]
    if word.lower() not in names:
        hint = did_you_mean(word, names) or f"the statuses are {', '.join(names)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no status "{word}"', hint=hint))
    return CaptureStatus(word.lower())
