"""`clew token`."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, argument, command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.tokens import Tokens
    from clew.auth.roles import AccessRole

_ACTIONS = ("create", "list", "revoke")


@command
@argument("action", metavar="create|list|revoke", default="list", required=False, help="The action.")
@argument("name", metavar="NAME", required=False, help="The name of the owner, or the id of the token to revoke.")
@option("--role", metavar="ROLE", default="viewer", help="viewer, auditor, operator, engineer or admin.")
@option("--days", metavar="N", type=WholeNumber(min=1, max=3650), default=90, help="How many days it is valid.")
@option("--tenant", metavar="NAME", help="The tenant. Default: the environment's tenant.")
@environment_option
@workspace_option
def token(
    context: click.Context,
    action: str,
    name: str | None,
    role: str,
    days: int,
    tenant: str | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Create, list and revoke tokens for the server.

    Tokens give access to the HTTP API and the web pages. A token is shown once, when it is created; Clew keeps only its
    digest.
    """
    session = context.ensure_object(Session)
    if action not in _ACTIONS:
        raise UserError(WRONG_USAGE.anywhere(problem=f'no action "{action}"', hint="use create, list or revoke"))
    with session.open(workspace, environment) as opened:
        if action == "list":
            _list(opened.tokens, session)
        elif name is None or not name.strip():
            what = "a name" if action == "create" else "the id of a token"
            raise UserError(WRONG_USAGE.anywhere(problem=f"{action} needs {what}: clew token {action} NAME"))
        elif action == "create":
            _create(opened.tokens, session, name.strip(), _role(role), tenant, days)
        else:
            _revoke(opened.tokens, session, name.strip())


def _create(tokens: "Tokens", session: Session, name: str, role: "AccessRole", tenant: str | None, days: int) -> None:
    minted = tokens.create(name, role=role, tenant=tenant, days=days)
    if session.wants_json:
        write_json({**minted.token.to_json(), "token": minted.text})
        return
    say(f"token {minted.token.token_id} for {name}, {role.value} of tenant {minted.token.tenant_id}, {days} days:")
    say(minted.text)
    say("copy it now: it is not shown again")


def _list(tokens: "Tokens", session: Session) -> None:
    from clew.cli.views.page import show
    from clew.cli.views.tables import token_table

    found = tokens.all()
    if session.wants_json:
        write_json({"tokens": [each.to_json() for each in found]})
    elif found:
        show(token_table(found, datetime.now(UTC)))
    else:
        say(f"no tokens; `{session.command('token create NAME --role ROLE')}` creates one")


def _revoke(tokens: "Tokens", session: Session, token_id: str) -> None:
    revoked = tokens.revoke(token_id)
    if session.wants_json:
        write_json(revoked.to_json())
    else:
        say(f"token {revoked.token_id} of {revoked.name} is revoked")


def _role(name: str) -> "AccessRole":
    from clew.auth.roles import AccessRole

    known = [each.value for each in AccessRole]
    if name.lower() not in known:
        hint = did_you_mean(name.lower(), known) or f"the roles are {', '.join(known)}"
        raise UserError(WRONG_USAGE.anywhere(problem=f'no role "{name}"', hint=hint))
    return AccessRole(name.lower())
