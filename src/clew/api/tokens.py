"""Creates, lists and revokes the tokens of an environment, and manages the browser sessions that use them."""

import logging
import secrets
from datetime import datetime, timedelta

from clew.api.opened_environment import EnvironmentAccess, Principal
from clew.api.reads import record_access
from clew.api.state import State
from clew.auth.access_log import Subject
from clew.auth.roles import AccessRole, Permission
from clew.auth.tokens import SHOWN_DIGITS, ApiToken, BrowserSession, MintedToken, digest, is_token, mint, verified
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import NO_SUCH_SESSION, NO_SUCH_TOKEN
from clew.diagnostics.codes.trace import FORGED_RECORD
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.signals import actor_name

_log = logging.getLogger(__name__)


def create_token(
    state: State, environment: RunEnvironment, *, name: str, role: AccessRole, tenant: str | None, days: int
) -> MintedToken:
    """Create a token for a tenant (by default that of the environment). Its text cannot be read again."""
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


def _require_forged(error: UserError) -> None:
    """Log that a token or session is not what the ledger vouches for: it opens nothing. Other errors are raised."""
    if error.diagnostic.code != FORGED_RECORD.name:
        raise error
    _log.error("%s; it opens no session, and `clew verify --all` tells more", error.diagnostic.message)


class Tokens:
    """The tokens and browser sessions of an environment."""

    def __init__(self, access: EnvironmentAccess) -> None:
        self._access = access

    def all(self) -> tuple[ApiToken, ...]:
        """All tokens, newest first, including expired and revoked ones."""
        with self._access.opened() as at:
            at.principal.require(Permission.MANAGE_TOKENS)
            return at.state.tokens.tokens()

    def can_sign_in(self, now: datetime) -> bool:
        """Whether there is a token that is valid, for whomever."""
        with self._access.opened() as at:
            return any(token.is_valid(now) for token in at.state.tokens.tokens())

    def find(self, token_id: str) -> ApiToken | None:
        """A token by its id."""
        with self._access.opened() as at:
            return at.state.tokens.token(token_id)

    def verified(self, text: str, now: datetime) -> ApiToken | None:
        """The token with this text, if it exists, is valid, and is what the ledger vouches for."""
        with self._access.opened() as at:
            try:
                return verified(text, at.state.tokens, now)
            except UserError as error:
                _require_forged(error)
                return None

    def is_token(self, text: str) -> bool:
        """Whether a text has the form of a token, valid or not."""
        return is_token(text)

    def create(self, name: str, *, role: AccessRole, tenant: str | None = None, days: int = 90) -> MintedToken:
        """Create a token for a tenant (by default that of the environment). Its text cannot be read again."""
        with self._access.opened() as at:
            at.principal.require(Permission.MANAGE_TOKENS)
            minted = create_token(at.state, at.environment, name=name, role=role, tenant=tenant, days=days)
        record_access(self._access, Subject.TOKEN, minted.token.token_id, f"created for {name}, {role.value}")
        return minted

    def revoke(self, token_id: str) -> ApiToken:
        """Revoke a token and end the sessions it started. Raises UserError NoSuchToken."""
        with self._access.opened() as at:
            at.principal.require(Permission.MANAGE_TOKENS)
            revoked = at.state.tokens.revoke(token_id, utc_now())
        if revoked is None:
            raise UserError(NO_SUCH_TOKEN.anywhere(token_id=token_id))
        record_access(self._access, Subject.TOKEN, token_id, f"revoked, of {revoked.name}")
        return revoked

    def begin_session(
        self,
        *,
        name: str,
        role: AccessRole,
        tenant: str,
        lifetime: timedelta,
        now: datetime,
        token: ApiToken | None,
        where: str = "",
    ) -> str:
        """Start a browser session, which ends with its token. Returns the secret that identifies it.

        `where` says for the record by whom the person is known, if not by us.
        """
        secret, expires = secrets.token_urlsafe(32), now + lifetime
        with self._access.opened() as at:
            at.state.browser_sessions.add(
                BrowserSession(
                    session_digest=digest(secret),
                    name=name,
                    role=role,
                    tenant_id=tenant,
                    environment_id=at.environment.name,
                    token_id=token.token_id if token else None,
                    created_at=now,
                    expires_at=min(expires, token.expires_at) if token else expires,
                )
            )
        who = Principal(name=name, role=role, tenant_id=tenant, token_id=token.token_id if token else None)
        session_id = digest(secret)[:SHOWN_DIGITS]
        record_access(self._access, Subject.SIGN_IN, session_id, f"signed in{where}", by=who)
        return secret

    def refused_session(self, why: str, address: str, name: str = "unknown") -> None:
        """Record that someone could not sign in."""
        record_access(self._access, Subject.SIGN_IN, address, why, by=Principal(name=name, role=AccessRole.VIEWER))

    def session(self, secret: str, now: datetime) -> BrowserSession | None:
        """The session with this secret; None if it has ended, its token is no longer valid, or either was edited."""
        with self._access.opened() as at:
            try:
                session = at.state.browser_sessions.session(digest(secret))
                if session is None or session.expires_at <= now:
                    return None
                token = None if session.token_id is None else at.state.tokens.token(session.token_id)
            except UserError as error:
                _require_forged(error)
                return None
            if session.token_id is not None and (token is None or not token.is_valid(now)):
                return None
            return session

    def end_session(self, secret: str) -> None:
        """End a session."""
        with self._access.opened() as at:
            session = at.state.browser_sessions.session(digest(secret))
            at.state.browser_sessions.end(digest(secret))
        if session is not None:
            who = Principal(
                name=session.name, role=session.role, tenant_id=session.tenant_id, token_id=session.token_id
            )
            record_access(self._access, Subject.SIGN_IN, session.session_id, "signed out", by=who)

    def sessions(self) -> tuple[BrowserSession, ...]:
        """The browser sessions that are open, newest first. For admins."""
        with self._access.opened() as at:
            at.principal.require(Permission.MANAGE_TOKENS)
            now = utc_now()
            valid = {token.token_id for token in at.state.tokens.tokens() if token.is_valid(now)}
            return tuple(
                session
                for session in at.state.browser_sessions.sessions()
                if session.expires_at > now
                and (session.token_id is None or session.token_id in valid)
                and at.principal.tenant_id in {None, session.tenant_id}
            )

    def end_sessions(self, name: str) -> tuple[BrowserSession, ...]:
        """End the session with this id, or all sessions of this person. Raises UserError NoSuchSession."""
        found = [session for session in self.sessions() if name in {session.session_id, session.name}]
        if not found:
            raise UserError(NO_SUCH_SESSION.anywhere(name=name))
        with self._access.opened() as at:
            for session in found:
                at.state.browser_sessions.end(session.session_digest)
        for session in found:
            record_access(self._access, Subject.SIGN_IN, session.session_id, f"ended the session of {session.name}")
        return tuple(found)
