"""`clew sessions`."""

from pathlib import Path

import click

from clew.cli.options import argument, command, environment_option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE


@command
@argument("action", metavar="list|end", default="list", required=False, help="The action.")
@argument("name", metavar="SESSION", required=False, help="The id of a session, or a person, to end.")
@environment_option
@workspace_option
def sessions(
    context: click.Context, action: str, name: str | None, environment: str | None, workspace: Path | None
) -> None:
    """List or end browser sessions of the server.

    `end` takes the id of a session, or a name to end all sessions of a person. Who is signed in by a token can sign in
    again: `clew token revoke` prevents that.
    """
    from clew.cli.views.page import show
    from clew.cli.views.tables import session_table

    session = context.ensure_object(Session)
    if action not in {"list", "end"} or (action == "end") != (name is not None):
        hint = "use `clew sessions`, or `clew sessions end SESSION`"
        raise UserError(WRONG_USAGE.anywhere(problem="this is not an action on sessions", hint=hint))
    with session.open(workspace, environment) as opened:
        found = opened.tokens.sessions() if name is None else opened.tokens.end_sessions(name)
    if session.wants_json:
        write_json({"sessions" if name is None else "ended": [each.to_json() for each in found]})
    elif name is not None:
        for each in found:
            say(f"session {each.session_id} of {each.name} has ended")
    elif found:
        show(session_table(found))
    else:
        say("nobody is signed in")
