"""API tokens and browser sessions.

A token is shown once, when it is created; the store keeps its digest. It expires and can be revoked. A session is what
a browser's cookie identifies.
"""

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import Protocol

from clew.auth.roles import AccessRole
from clew.deferred import dataclass

PREFIX = "clew"
_SECRET_BYTES = 32
_ID_BYTES = 6
SHOWN_DIGITS = 12
"""Of the digest of a session, for people to name it by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiToken:
    """A token as the store knows it: everything but its secret."""

    token_id: str
    name: str
    """Whose token it is, or which program's."""
    role: AccessRole
    tenant_id: str
    environment_id: str
    secret_digest: str
    created_at: datetime
    created_by: str
    expires_at: datetime
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it is valid now."""
        return self.revoked_at is None and now < self.expires_at

    def to_json(self) -> dict[str, object]:
        """The form of `clew token --json`; the digest stays where it is."""
        return {
            "token_id": self.token_id,
            "name": self.name,
            "role": self.role.value,
            "tenant": self.tenant_id,
            "environment": self.environment_id,
            "created_at": self.created_at.isoformat(),
            "created_by": self.created_by,
            "expires_at": self.expires_at.isoformat(),
            "revoked_at": self.revoked_at.isoformat() if self.revoked_at else None,
        }


@dataclass(frozen=True, slots=True)
class MintedToken:
    """A new token together with its text, which cannot be read again later."""

    token: ApiToken
    text: str


class TokenStore(Protocol):
    """Tokens of one environment."""

    def add(self, token: ApiToken) -> None:
        """Store a token."""
        ...

    def token(self, token_id: str) -> ApiToken | None:
        """A token by its id."""
        ...

    def tokens(self) -> tuple[ApiToken, ...]:
        """All tokens, the newest first, also those that are expired or revoked."""
        ...

    def revoke(self, token_id: str, now: datetime) -> ApiToken | None:
        """Revoke a token; None if there is none. Repeating it changes nothing."""
        ...


def mint(
    *,
    name: str,
    role: AccessRole,
    tenant_id: str,
    environment_id: str,
    created_by: str,
    lifetime: timedelta,
    now: datetime,
) -> MintedToken:
    """Create a token. Its secret has 256 random bits, so that a plain digest cannot be reversed by guessing."""
    token_id, secret = secrets.token_hex(_ID_BYTES), secrets.token_urlsafe(_SECRET_BYTES)
    token = ApiToken(
        token_id=token_id,
        name=name,
        role=role,
        tenant_id=tenant_id,
        environment_id=environment_id,
        secret_digest=digest(secret),
        created_at=now,
        created_by=created_by,
        expires_at=now + lifetime,
    )
    return MintedToken(token, f"{PREFIX}_{token_id}_{secret}")


def is_token(text: str) -> bool:
    """Whether a text has the form of a token, with as many random bits as ours have."""
    parts = _parts(text)
    return parts is not None and len(parts[1]) >= _SECRET_BYTES


def _parts(text: str) -> tuple[str, str] | None:
    prefix, _, rest = text.partition("_")
    token_id, _, secret = rest.partition("_")
    if prefix != PREFIX or not secret or len(token_id) != 2 * _ID_BYTES or not token_id.isalnum():
        return None
    return token_id, secret


def verified(text: str, store: TokenStore, now: datetime) -> ApiToken | None:
    """The token that a text is, if it is one and still valid."""
    parts = _parts(text)
    if parts is None:
        return None
    token_id, secret = parts
    token = store.token(token_id)
    if token is None or not hmac.compare_digest(token.secret_digest, digest(secret)):
        return None
    return token if token.is_valid(now) else None


def digest(secret: str) -> str:
    """The digest that is stored instead of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """A signed-in user. Only a digest of the cookie's value is kept."""

    session_digest: str
    name: str
    role: AccessRole
    tenant_id: str
    environment_id: str
    token_id: str | None
    """The token that was used to sign in; without it the session ends. None for the link of an embedded server."""
    created_at: datetime
    expires_at: datetime

    @property
    def session_id(self) -> str:
        """What people name it by. It identifies the session and does not open it."""
        return self.session_digest[:SHOWN_DIGITS]

    def to_json(self) -> dict[str, object]:
        """The form of `clew sessions --json`."""
        return {
            "session_id": self.session_id,
            "name": self.name,
            "role": self.role.value,
            "tenant": self.tenant_id,
            "token_id": self.token_id,
            "created_at": self.created_at.isoformat(),
            "expires_at": self.expires_at.isoformat(),
        }


class BrowserSessionStore(Protocol):
    """Sessions of one environment."""

    def add(self, session: BrowserSession) -> None:
        """Store a session, and delete expired ones."""
        ...

    def session(self, session_digest: str) -> BrowserSession | None:
        """A session by the digest of its cookie."""
        ...

    def sessions(self) -> tuple[BrowserSession, ...]:
        """All sessions that have not been ended, the newest first."""
        ...

    def end(self, session_digest: str) -> None:
        """Delete a session."""
        ...
