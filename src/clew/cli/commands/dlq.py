"""`clew dlq`."""

from typing import Annotated

import typer

from clew.cli.formatting import counted
from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE


def dlq(
    context: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[list|replay]", help="Show them, or send them again.", show_default=False)
    ] = "list",
    sink: Annotated[str | None, typer.Option("--sink", metavar="BUS", help="Only those of this event bus.")] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", help="List at most so many.", min=1)] = 50,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
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
