"""Starts the server: the site, the application, uvicorn on an address, and the worker beside it.

The certificate that the server shows, looked at before anybody is told that it serves.
"""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

import uvicorn
from fastapi import FastAPI

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import ADDRESS_TAKEN, CERTIFICATE_UNUSABLE, TOKENS_NEEDED
from clew.runs.clock import utc_now
from clew.runs.worker import stop_on_signals
from clew.server.access.doorman import Doorman
from clew.server.access.signing_in import LINK
from clew.server.application import create_app
from clew.server.hosted_worker import HostedWorker, Listener
from clew.server.protection.slow_connections import punctual_protocol
from clew.server.settings import ServerSettings
from clew.server.site import Site, open_site
from clew.server.streams import EventStreams

__all__ = ["Listener", "Started", "Told", "listening", "require_tokens", "serve", "web_server"]


def require_usable_certificate(settings: ServerSettings) -> None:
    """UserError CertificateUnusable where certificate and key are none, or do not belong together."""
    if settings.certificate is None:
        return
    try:
        # A key with a passphrase is refused: a server that starts by itself has nobody to ask for it.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.certificate, settings.certificate_key, password=lambda: "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        words = str(reason).lower().replace("_", " ")
        raise UserError(CERTIFICATE_UNUSABLE.anywhere(file=settings.certificate, reason=words)) from error


_BACKLOG = 512
_MOST_REQUESTS_AT_ONCE = 1000
_GRACE_S = 5
_TICKS_WITHOUT_REQUESTS = 10
"""How long the worker waits for somebody to come and see a page: a second."""


@dataclass(frozen=True, slots=True)
class Told:
    """Whom the server tells what it does."""

    started: Callable[["Started"], None]
    link: Callable[[str], None] = lambda _link: None
    """Another link, since the one before was used."""
    worker: Callable[[], Listener] = Listener
    """Made when the hosted worker starts, which is when somebody has seen a page."""


@dataclass(frozen=True, slots=True)
class Started:
    """A server that listens."""

    workspace: str
    environment: str
    url: str
    link: str | None
    """Signs in whoever started it, once; None where others can reach the server."""
    is_readable: bool
    """Whether tokens travel readably to somebody on the way."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew serve --json`."""
        return {"workspace": self.workspace, "environment": self.environment, "url": self.url, "link": self.link}


def serve(root: Path, environment: str | None, settings: ServerSettings, told: Told) -> None:
    """Serve an environment of a workspace until SIGTERM or Ctrl-C."""
    require_usable_certificate(settings)
    with (
        _open(root, environment, settings) as site,
        listening(settings) as listener,
        stop_on_signals() as stop,
        _worker(site, settings, told) as start_worker,
    ):
        settings = replace(settings, port=listener.getsockname()[1])
        app = create_app(site, settings, on_link_used=lambda: told.link(_link(app)))
        told.started(
            Started(
                workspace=site.workspace.name,
                environment=site.environment.name,
                url=settings.address,
                link=_link(app) if settings.is_loopback else None,
                is_readable=not settings.is_loopback and not settings.is_secure,
            )
        )
        web_server(app, settings, stop, beside=start_worker).run(sockets=[listener])


def require_tokens(site: Site, settings: ServerSettings) -> None:
    """UserError TokensNeeded where others can reach the server and nobody could sign in."""
    now = utc_now()
    if not settings.is_loopback and not any(token.is_valid(now) for token in site.state.tokens.tokens()):
        raise UserError(TOKENS_NEEDED.anywhere(host=settings.host))


def _link(app: FastAPI) -> str:
    """A link that signs in whoever started the server, once."""
    doorman: Doorman = app.state.doorman
    return f"{doorman.settings.address}{LINK}?key={doorman.links.new_key()}"


@contextmanager
def _open(root: Path, environment: str | None, settings: ServerSettings) -> Iterator[Site]:
    with open_site(root, environment) as site:
        require_tokens(site, settings)
        yield site


@contextmanager
def _worker(site: Site, settings: ServerSettings, told: Told) -> Iterator[Callable[[], None]]:
    """What starts the worker, if there is to be one; it is stopped at the end."""
    if not settings.has_worker:
        yield lambda: None
        return
    worker = HostedWorker(site, told.worker)
    try:
        yield worker.start
    finally:
        worker.stop()


@contextmanager
def listening(settings: ServerSettings) -> Iterator[socket.socket]:
    """A socket that listens; port 0 takes any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _taken(settings, error) from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise _taken(settings, error) from error
        yield listener


def _taken(settings: ServerSettings, error: OSError) -> UserError:
    reason = error.strerror or str(error)
    return UserError(ADDRESS_TAKEN.anywhere(host=settings.host, port=settings.port, reason=reason))


def web_server(
    app: FastAPI,
    settings: ServerSettings,
    stop: threading.Event | None = None,
    *,
    beside: Callable[[], None] = lambda: None,
) -> uvicorn.Server:
    """Uvicorn for an application; `run(sockets=...)` serves until it is told to exit, if need be at once.

    `beside` is called once, when the first request has been answered or nobody has come for a moment: what it starts
    takes processor time that the first page would wait for.
    """
    return _Server(_configuration(app, settings), app.state.streams, stop or threading.Event(), beside)


class _Server(uvicorn.Server):
    """Ends streams of events as soon as it is told to stop, instead of waiting for clients to leave."""

    def __init__(
        self, config: uvicorn.Config, streams: EventStreams, stop: threading.Event, beside: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._streams = streams
        self._stop = stop
        self._beside: Callable[[], None] | None = beside

    async def on_tick(self, counter: int) -> bool:
        """A signal that came before uvicorn listened to signals ends it too."""
        if self._stop.is_set():
            self._streams.close()
            self.should_exit = True
        elif self._beside is not None and (self.server_state.total_requests or counter >= _TICKS_WITHOUT_REQUESTS):
            self._beside()
            self._beside = None
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal has come."""
        self._streams.close()
        super().handle_exit(sig, frame)


def _configuration(app: FastAPI, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=punctual_protocol(settings),
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=settings.url is not None,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=_GRACE_S,
        limit_concurrency=_MOST_REQUESTS_AT_ONCE,
        backlog=_BACKLOG,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.certificate_key,
    )
