"""Who makes a request."""

from dataclasses import dataclass

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import FORBIDDEN
from clew.runs.access.browser_sessions import BrowserSession
from clew.runs.access.roles import AccessRole, Permission
from clew.runs.access.tokens import ApiToken
from clew.runs.signals import Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Somebody whom a token or a browser session has identified."""

    name: str
    role: AccessRole
    tenant_id: str
    token_id: str | None = None
    csrf: str | None = None
    """What forms of this session have to send back; None for tokens, which no browser sends by itself."""

    @property
    def actor(self) -> Actor:
        """The caller as the sender of signals."""
        return Actor(self.name, self.role.signal_role, self.tenant_id)

    def may(self, permission: Permission) -> bool:
        """Whether the role allows something."""
        return permission in self.role.permissions

    def require(self, permission: Permission) -> None:
        """UserError Forbidden where the role does not allow something."""
        if not self.may(permission):
            raise UserError(FORBIDDEN.anywhere(problem=f"the role {self.role.value} may not {permission.value}"))

    def require_tenant(self, tenant_id: str) -> None:
        """UserError Forbidden where something belongs to another tenant."""
        if self.tenant_id != tenant_id:
            raise UserError(FORBIDDEN.anywhere(problem="this workspace belongs to another tenant"))


def by_token(token: ApiToken) -> Caller:
    """The holder of a token."""
    return Caller(name=token.name, role=token.role, tenant_id=token.tenant_id, token_id=token.token_id)


def by_session(session: BrowserSession, csrf: str) -> Caller:
    """Somebody in a browser."""
    return Caller(
        name=session.name, role=session.role, tenant_id=session.tenant_id, token_id=session.token_id, csrf=csrf
    )
