"""Sessions of browsers: what a cookie stands for."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from clew.runs.access.roles import AccessRole


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserSession:
    """Somebody who has signed in. The cookie's value is kept as a digest only."""

    session_digest: str
    name: str
    role: AccessRole
    tenant_id: str
    environment_id: str
    token_id: str | None
    """The token that was used to sign in; without it the session ends. None for the link of an embedded server."""
    created_at: datetime
    expires_at: datetime


class BrowserSessionStore(Protocol):
    """Sessions of one environment."""

    def add(self, session: BrowserSession) -> None:
        """Keep a session, and forget those that have expired."""
        ...

    def session(self, session_digest: str) -> BrowserSession | None:
        """A session by the digest of its cookie."""
        ...

    def end(self, session_digest: str) -> None:
        """Forget a session."""
        ...
