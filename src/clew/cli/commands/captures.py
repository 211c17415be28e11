"""`clew captures`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.captures.queue import CaptureStatus


def captures(
    context: typer.Context,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Those of a run, by its id or the beginning of it.")
    ] = None,
    request_id: Annotated[
        str | None, typer.Option("--request-id", metavar="ID", help="Those of a request for a run.")
    ] = None,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATUS", help="queued, running, ready, failed, expired or dropped."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="At most so many.", min=1)] = 50,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """List the rows that runs kept at breakpoints, newest first."""
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
            say("no captures; `clew run PROJECT --period P --capture BREAKPOINT` makes one")


def _status(word: str) -> "CaptureStatus":
    from clew.captures.queue import CaptureStatus

    names = [each.value for each in CaptureStatus]
    if word.lower() not in names:
        hint = did_you_mean(word, names) or f"it is one of {', '.join(names)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no status "{word}"', hint=hint))
    return CaptureStatus(word.lower())
