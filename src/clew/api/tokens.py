"""Tokens of an environment: made, listed, revoked."""

from datetime import timedelta

from clew.api.state import State
from clew.auth.roles import AccessRole
from clew.auth.tokens import ApiToken, MintedToken, mint
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import NO_SUCH_TOKEN
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.signals import actor_name


def create_token(
    state: State, environment: RunEnvironment, *, name: str, role: AccessRole, tenant: str | None, days: int
) -> MintedToken:
    """Make a token for a tenant, that of the environment where none is given. Its text cannot be read again."""
    minted = mint(
        name=name,
        role=role,
        tenant_id=tenant or environment.settings.tenant,
        environment_id=environment.name,
        created_by=actor_name(),
        lifetime=timedelta(days=days),
        now=utc_now(),
    )
    state.tokens.add(minted.token)
    return minted


def revoke_token(state: State, token_id: str) -> ApiToken:
    """Let a token be of no use from now on, and end the sessions that it began. UserError NoSuchToken."""
    revoked = state.tokens.revoke(token_id, utc_now())
    if revoked is None:
        raise UserError(NO_SUCH_TOKEN.anywhere(token_id=token_id))
    return revoked
