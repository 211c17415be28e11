"""Lets people in: by token, by session, by the link that an embedded server prints."""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from clew.app.running.actor import actor_name
from clew.app.running.state import State
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import NOT_SIGNED_IN
from clew.runs.access.browser_sessions import BrowserSession
from clew.runs.access.roles import AccessRole
from clew.runs.access.tokens import ApiToken, digest, verified
from clew.runs.clock import Clock, utc_now
from clew.server.access.attempts import LoginAttempts
from clew.server.access.caller import Caller, by_session, by_token
from clew.server.settings import ServerSettings


@dataclass
class OneTimeLinks:
    """Keys that sign in whoever started the server, each of them once."""

    _digests: set[str] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def new_key(self) -> str:
        """A key for a link."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._digests.add(digest(key))
        return key

    def use(self, key: str) -> bool:
        """Whether a key was good. From now on it is not."""
        with self._lock:
            known = digest(key) in self._digests
            self._digests.discard(digest(key))
        return known


@dataclass(frozen=True)
class Doorman:
    """Turns what a request carries into a caller."""

    state: State
    environment_id: str
    tenant_id: str
    settings: ServerSettings
    links: OneTimeLinks = field(default_factory=OneTimeLinks)
    attempts: LoginAttempts = field(default_factory=LoginAttempts)
    on_link_used: Callable[[], None] = lambda: None
    clock: Clock = utc_now

    def by_token(self, text: str) -> Caller:
        """The caller that a token names. UserError NotSignedIn where it is of no use."""
        token = verified(text, self.state.tokens, self.clock())
        if token is None:
            raise UserError(NOT_SIGNED_IN.anywhere(problem="the token is unknown, expired or revoked"))
        return by_token(token)

    def by_cookie(self, cookie: str) -> Caller | None:
        """The caller that a session names; None where it is over, or the token that began it is not valid any more."""
        session = self.state.browser_sessions.session(digest(cookie))
        if session is None or session.expires_at <= self.clock():
            return None
        if session.token_id is not None:
            token = self.state.tokens.token(session.token_id)
            if token is None or not token.is_valid(self.clock()):
                return None
        return by_session(session, csrf_of(cookie))

    def sign_in(self, text: str, address: str) -> str:
        """A session for the holder of a token; the value of its cookie."""
        self.attempts.require_patience(address)
        token = verified(text.strip(), self.state.tokens, self.clock())
        if token is None:
            self.attempts.failed(address)
            raise UserError(NOT_SIGNED_IN.anywhere(problem="the token is unknown, expired or revoked"))
        self.attempts.succeeded(address)
        return self._begin(token.name, token.role, token.tenant_id, token)

    def sign_in_by_link(self, key: str, address: str) -> str:
        """A session for whoever started the server; the value of its cookie."""
        self.attempts.require_patience(address)
        if not self.links.use(key):
            self.attempts.failed(address)
            problem = "this link was used before, or belongs to another start of the server"
            hint = "use the newest link that `clew serve` printed"
            raise UserError(NOT_SIGNED_IN.anywhere(problem=problem, hint=hint))
        cookie = self._begin(actor_name(), AccessRole.ADMIN, self.tenant_id, None)
        self.on_link_used()
        return cookie

    def sign_out(self, cookie: str) -> None:
        """End a session."""
        self.state.browser_sessions.end(digest(cookie))

    def _begin(self, name: str, role: AccessRole, tenant_id: str, token: ApiToken | None) -> str:
        cookie, now = secrets.token_urlsafe(32), self.clock()
        expires = now + self.settings.session_lifetime
        self.state.browser_sessions.add(
            BrowserSession(
                session_digest=digest(cookie),
                name=name,
                role=role,
                tenant_id=tenant_id,
                environment_id=self.environment_id,
                token_id=token.token_id if token else None,
                created_at=now,
                expires_at=min(expires, token.expires_at) if token else expires,
            )
        )
        return cookie


def csrf_of(cookie: str) -> str:
    """What the forms of a session carry: known to its pages, and to nobody who cannot read the cookie."""
    return hmac.new(cookie.encode("utf-8", "surrogatepass"), b"form", hashlib.sha256).hexdigest()
