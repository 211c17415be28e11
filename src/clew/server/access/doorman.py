"""Authentication: identifies the caller of a request by token, by session, by the link of an embedded server, or by an
OpenID Connect provider.

Failed sign-ins are counted by address, so that guessing is limited.
"""

import hashlib
import hmac
import math
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import field
from datetime import UTC, datetime

from clew.api.opened_environment import Principal
from clew.api.workspace import Workspace
from clew.auth.openid import OpenIdAttempt, SignedInPerson
from clew.auth.roles import AccessRole, Permission
from clew.auth.tokens import ApiToken, BrowserSession
from clew.deferred import dataclass
from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.server import (
    FORBIDDEN,
    NO_SUCH_ADDRESS,
    NOT_SIGNED_IN,
    TOO_MANY_ATTEMPTS,
    UNSAFE_SIGN_IN,
)
from clew.server.access.idle_sessions import IdleSessions
from clew.server.settings import ServerSettings

_MOST_ADDRESSES = 10_000
CALLBACK = "/login/oidc/callback"
"""Where a provider sends browsers back to; it has to be registered there."""


class LoginAttempts:
    """Keeps the failures of the last minutes in memory."""

    def __init__(
        self, *, most: int = 10, window_s: float = 300.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._window_s = window_s
        self._monotonic = monotonic
        self._failures: OrderedDict[str, deque[float]] = OrderedDict()
        self._lock = threading.Lock()

    def require_patience(self, address: str) -> None:
        """Raise TransientFailure TooManyAttempts while an address has failed too often."""
        with self._lock:
            failures = self._recent(address)
            if len(failures) < self._most:
                return
            wait_s = failures[0] + self._window_s - self._monotonic()
        raise TransientFailure(TOO_MANY_ATTEMPTS.anywhere(retry_after_s=max(1, math.ceil(wait_s))))

    def failed(self, address: str) -> None:
        """Count a failure."""
        with self._lock:
            self._recent(address).append(self._monotonic())
            self._failures.move_to_end(address)
            while len(self._failures) > _MOST_ADDRESSES:
                self._failures.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """Forget the failures of an address."""
        with self._lock:
            self._failures.pop(address, None)

    def _recent(self, address: str) -> deque[float]:
        failures = self._failures.setdefault(address, deque())
        while failures and failures[0] <= self._monotonic() - self._window_s:
            failures.popleft()
        return failures


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A caller identified by a token or a browser session."""

    name: str
    role: AccessRole
    tenant_id: str
    token_id: str | None = None
    csrf: str | None = None
    """What forms of this session must send back; None for tokens, which browsers never send on their own."""

    @property
    def key(self) -> str:
        """What tells callers apart where each has a share: the token, or the name where there is none."""
        return self.token_id or f"{self.tenant_id}/{self.name}"

    @property
    def principal(self) -> Principal:
        """The caller as a user of the workspace."""
        return Principal(name=self.name, role=self.role, tenant_id=self.tenant_id, token_id=self.token_id)

    def may(self, permission: Permission) -> bool:
        """Whether the role has a permission."""
        return permission in self.role.permissions

    def require(self, permission: Permission) -> None:
        """Raise UserError Forbidden if the role lacks a permission."""
        if not self.may(permission):
            raise UserError(FORBIDDEN.anywhere(problem=f"the role {self.role.value} may not {permission.value}"))

    def require_tenant(self, tenant_id: str) -> None:
        """Raise UserError Forbidden if something belongs to another tenant."""
        if self.tenant_id != tenant_id:
            raise UserError(FORBIDDEN.anywhere(problem="this workspace belongs to another tenant"))


def by_token(token: ApiToken) -> Caller:
    """The holder of a token."""
    return Caller(name=token.name, role=token.role, tenant_id=token.tenant_id, token_id=token.token_id)


def by_session(session: BrowserSession, csrf: str) -> Caller:
    """The user of a browser session."""
    return Caller(
        name=session.name, role=session.role, tenant_id=session.tenant_id, token_id=session.token_id, csrf=csrf
    )


class OneTimeLinks:
    """Keys that sign in the person who started the server. Each works once, and only for a while."""

    def __init__(self, lifetime_s: float = 900.0, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._lifetime_s = lifetime_s
        self._monotonic = monotonic
        self._ends_at: dict[str, float] = {}
        """When keys expire, by their digests."""
        self._lock = threading.Lock()

    def new_key(self) -> str:
        """A key for a link."""
        key = secrets.token_urlsafe(32)
        with self._lock:
            self._forget_expired()
            self._ends_at[_digest(key)] = self._monotonic() + self._lifetime_s
        return key

    def use(self, key: str) -> bool:
        """Whether a key is valid. It is used up by the call."""
        with self._lock:
            self._forget_expired()
            return self._ends_at.pop(_digest(key), None) is not None

    def _forget_expired(self) -> None:
        now = self._monotonic()
        self._ends_at = {digest: ends_at for digest, ends_at in self._ends_at.items() if now < ends_at}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAnswer:
    """What an OpenID Connect provider sends back with a browser."""

    state: str
    code: str
    error: str
    issuer: str | None
    """Who says so; not all providers do."""


@dataclass(frozen=True)
class Doorman:
    """Identifies callers from the credentials of their requests."""

    workspace: Workspace
    settings: ServerSettings
    links: OneTimeLinks = field(default_factory=OneTimeLinks)
    attempts: LoginAttempts = field(default_factory=LoginAttempts)
    recorded: LoginAttempts = field(default_factory=LoginAttempts)
    """The failures that are on record."""
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    idle: IdleSessions = field(default_factory=lambda: IdleSessions(None))

    def by_token(self, text: str) -> Caller:
        """The caller that a token identifies. Raises UserError NotSignedIn if it is not valid."""
        token = self.workspace.tokens.verified(text, self.clock())
        if token is None:
            raise UserError(NOT_SIGNED_IN.anywhere(problem="the token is unknown, expired or revoked"))
        return by_token(token)

    def by_cookie(self, cookie: str, *, by_person: bool = True) -> Caller | None:
        """The caller of a session; None if it has ended, or if the token that started it is no longer valid.

        What pages fetch by themselves is not `by_person`.
        """
        now = self.clock()
        session = self.workspace.tokens.session(cookie, now)
        if session is not None and self.idle.is_over(session.session_digest, now, by_person=by_person):
            self.workspace.tokens.end_session(cookie)
            return None
        return by_session(session, csrf_of(cookie)) if session is not None else None

    def sign_in(self, text: str, address: str) -> str:
        """A session for the holder of a token; the value of its cookie.

        Unknown tokens do not count as failures: nobody guesses 256 random bits, and whoever shares an address with
        others could lock them out.
        """
        self.attempts.require_patience(address)
        text = text.strip()
        token = self.workspace.tokens.verified(text, self.clock())
        if token is None:
            if not self.workspace.tokens.is_token(text):
                self.attempts.failed(address)
            self._refused("a token that is unknown, expired or revoked", address)
            raise UserError(NOT_SIGNED_IN.anywhere(problem="the token is unknown, expired or revoked"))
        self.attempts.succeeded(address)
        return self._begin(token.name, token.role, token.tenant_id, token)

    def sign_in_by_link(self, key: str, address: str) -> str:
        """A session for the person who started the server; the value of its cookie.

        Unknown keys do not count as failures: nobody guesses 256 random bits, and any page that a person visits could
        make their browser follow such links.
        """
        self.attempts.require_patience(address)
        if not self.links.use(key):
            problem = "this link has been used or has expired, or is from an earlier start of the server"
            hint = "`clew serve` prints another link when it receives the signal USR1, as it says when it starts"
            self._refused("a link that is not valid", address)
            raise UserError(NOT_SIGNED_IN.anywhere(problem=problem, hint=hint))
        principal = self.workspace.principal
        return self._begin(principal.name, principal.role, self.workspace.tenant, None)

    def begin_at_provider(self) -> tuple[OpenIdAttempt, str]:
        """An attempt to sign in at the provider of the environment, and the address to send the browser to."""
        if self.workspace.oidc is None:
            raise UserError(NO_SUCH_ADDRESS.anywhere(path="this address"))
        return self.workspace.single_sign_on.begin(self._return_address())

    def sign_in_at_provider(self, attempt: OpenIdAttempt | None, sent: ProviderAnswer, address: str) -> str:
        """A session for the person whom the provider has sent back; the value of its cookie.

        What the provider sends is looked at only if this browser has asked for it. Else another site could sign people
        in as someone else, and have them work in that person's name.
        """
        if attempt is None or not _are_equal(attempt.state, sent.state):
            self._refused("a sign-in that this browser has not begun, or that took too long", address)
            problem = "this sign-in was not begun in this browser, or took too long"
            raise UserError(NOT_SIGNED_IN.anywhere(problem=problem, hint="sign in again"))
        try:
            person = self._person(attempt, sent)
        except UserError as error:
            name = error.diagnostic.params.get("name", "unknown")
            self._refused(error.diagnostic.message, address, name=str(name))
            raise
        where = f" at {person.issuer} as {person.subject}"
        return self._begin(person.name, person.role, self.workspace.tenant, None, where)

    def end_at_provider(self, back: str) -> str | None:
        """The address at which people sign out of the provider of the environment; None if it has none.

        UserError NoSuchAddress where people sign in with tokens only.
        """
        return self.workspace.single_sign_on.end_address(f"{self.settings.address}{back}")

    def _person(self, attempt: OpenIdAttempt, sent: ProviderAnswer) -> SignedInPerson:
        oidc = self.workspace.oidc
        if sent.error or not sent.code or oidc is None:
            said = sent.error if sent.error.isprintable() else ""
            problem = f"the provider did not sign you in: {said[:100] or 'it gives no reason'}"
            raise UserError(NOT_SIGNED_IN.anywhere(problem=problem, hint="sign in again"))
        if sent.issuer is not None and sent.issuer != oidc.issuer:
            raise UserError(NOT_SIGNED_IN.anywhere(problem="another provider has answered", hint="sign in again"))
        return self.workspace.single_sign_on.finish(attempt, sent.code, self._return_address())

    def _return_address(self) -> str:
        if not self.settings.is_private:
            raise UserError(UNSAFE_SIGN_IN.anywhere(address=self.settings.address))
        return f"{self.settings.address}{CALLBACK}"

    def _refused(self, why: str, address: str, name: str = "unknown") -> None:
        """Record a failure to sign in. Only the first of an address within minutes, so that none fills the record."""
        try:
            self.recorded.require_patience(address)
        except TransientFailure:
            return
        self.recorded.failed(address)
        self.workspace.tokens.refused_session(f"could not sign in: {why}", address, name)

    def sign_out(self, cookie: str) -> None:
        """End a session."""
        self.workspace.tokens.end_session(cookie)

    def _begin(self, name: str, role: AccessRole, tenant_id: str, token: ApiToken | None, where: str = "") -> str:
        return self.workspace.tokens.begin_session(
            name=name,
            role=role,
            tenant=tenant_id,
            lifetime=self.settings.session_lifetime,
            now=self.clock(),
            token=token,
            where=where,
        )


def _are_equal(one: str, other: str) -> bool:
    """Whether two secrets are the same, without telling by the time it takes how far they are."""
    return hmac.compare_digest(one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass"))


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def csrf_of(cookie: str) -> str:
    """The CSRF token in the forms of a session. It is derived from the cookie, which other sites cannot read."""
    return hmac.new(cookie.encode("utf-8", "surrogatepass"), b"form", hashlib.sha256).hexdigest()
