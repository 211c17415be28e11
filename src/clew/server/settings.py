"""Settings of the server: its address and its limits."""

import ipaddress
from datetime import timedelta
from urllib.parse import urlsplit

from clew.deferred import dataclass

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORT = 8765


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings that are given when the server starts."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    has_worker: bool = True
    """Whether the server executes runs itself."""
    url: str | None = None
    """The public address, if it differs from host and port, such as behind a proxy."""
    certificate: str | None = None
    """The file with the TLS certificate; without it the server uses plain HTTP."""
    certificate_key: str | None = None
    allowed_hosts: frozenset[str] = frozenset()
    """Names that the Host header may contain, besides those of the address."""
    largest_body: int = 1_000_000
    slowest_headers_s: float = 15.0
    """How long the headers of a request may take to arrive."""
    slowest_body_s: float = 15.0
    """How long the body of a request may take to arrive."""
    slowest_reader_s: float = 60.0
    """How long a client may leave a response unread."""
    session_lifetime: timedelta = timedelta(hours=12)
    longest_idle: timedelta | None = None
    """How long a person may do nothing before their session ends; None for as long as it lasts."""
    most_idle_per_address: int = 100
    """Connections without a request that one address may hold; beyond, the oldest of them is closed."""
    link_lifetime: timedelta = timedelta(minutes=15)
    """How long the link works that signs in the person who started the server."""
    most_failed_logins: int = 10
    login_window_s: float = 300.0
    most_streams_per_caller: int = 20
    """Event streams that one caller may hold open."""
    event_poll_s: float = 0.3
    keep_alive_s: float = 15.0
    """How often an idle event stream sends a keep-alive."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def is_secure(self) -> bool:
        """Whether browsers reach the server over TLS, so that its cookie can require it."""
        return self.certificate is not None or (self.url or "").startswith("https://")

    @property
    def is_always_secure(self) -> bool:
        """Whether to require TLS from browsers (HSTS). Not for localhost, where other programs serve, too."""
        return self.is_secure and (self.url is not None or not self.is_loopback)

    @property
    def address(self) -> str:
        """The base address of all links."""
        if self.url is not None:
            return self.url.rstrip("/")
        scheme = "https" if self.certificate is not None else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}"

    @property
    def known_hosts(self) -> frozenset[str]:
        """The names under which the server answers."""
        names = {self.host, *self.allowed_hosts}
        if self.url is not None:
            names.add(urlsplit(self.url).hostname or "")
        if self.is_loopback:
            names |= LOOPBACK_NAMES
        return frozenset(name.lower() for name in names if name)

    @property
    def is_private(self) -> bool:
        """Whether nobody can listen in between browsers and the server: by TLS, or since they are on one machine."""
        if self.url is not None and not self.is_secure:
            return urlsplit(self.url).hostname in LOOPBACK_NAMES
        return self.is_secure or self.is_loopback

    @property
    def attempt_cookie(self) -> str:
        """The name of the cookie of a sign-in that is under way at a provider."""
        return "__Host-clew-sign-in" if self.is_secure else f"clew-sign-in-{self.port}"

    @property
    def cookie(self) -> str:
        """The name of the session's cookie. Browsers share cookies between ports, so the port is in it."""
        return "__Host-clew-session" if self.is_secure else f"clew-session-{self.port}"
