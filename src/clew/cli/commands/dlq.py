"""`clew dlq`."""

from pathlib import Path

import click

from clew.cli.formatting import counted
from clew.cli.options import WholeNumber, argument, command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE


@command
@argument(
    "action", metavar="list|replay", default="list", required=False, help="List dead letters, or send them again."
)
@option("--sink", metavar="BUS", help="Only dead letters of this event bus.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=50, help="Maximum number to list.")
@environment_option
@workspace_option
def dlq(
    context: click.Context, action: str, sink: str | None, limit: int, environment: str | None, workspace: Path | None
) -> None:
    """List or replay events that a bus rejected.

    Clew retries a rejected event several times with growing delays, then keeps it as a dead letter. The next `clew run`
    or `clew worker` delivers the replayed events.
    """
    from clew.cli.views.page import show
    from clew.cli.views.tables import dead_letter_table

    session = context.ensure_object(Session)
    if action not in {"list", "replay"}:
        raise UserError(WRONG_USAGE.anywhere(problem=f'no action "{action}"', hint="use list or replay"))
    with session.open(workspace, environment) as opened:
        if action == "replay":
            number = opened.operations.replay(bus=sink)
            if session.wants_json:
                write_json({"replayed": number})
            else:
                say(f"{counted(number, 'event')} will be sent again")
            return
        letters = opened.operations.dead_letters(bus=sink, limit=limit)
        if session.wants_json:
            write_json({"dead_letters": [letter.to_json() for letter in letters]})
        elif letters:
            show(dead_letter_table(letters))
            say(f"next: {session.command('dlq replay')}")
        else:
            say("no dead letters")
