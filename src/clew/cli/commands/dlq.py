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
@argument("action", metavar="list|replay", default="list", required=False, help="Show them, or send them again.")
@option("--sink", metavar="BUS", help="Only those of this event bus.")
@option("--limit", metavar="N", type=WholeNumber(min=1), default=50, help="List at most so many.")
@environment_option
@workspace_option
def dlq(
    context: click.Context, action: str, sink: str | None, limit: int, environment: str | None, workspace: Path | None
) -> None:
    """Show or replay events that a bus did not take.

    These dead letters were sent several times, later and later, and then put aside. What is
    replayed is delivered by the next `clew run` or `clew worker`.
    """
    from clew.cli.views.page import show
    from clew.cli.views.tables import dead_letter_table

    session = context.ensure_object(Session)
    if action not in {"list", "replay"}:
        raise UserError(WRONG_USAGE.anywhere(problem=f'no action "{action}"', hint="list or replay"))
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
