"""Starts the server: the workspace, the application, uvicorn, and the hosted worker.

The certificate is checked before the server reports that it is ready.
"""

import asyncio
import signal
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from clew.api.working import stop_on_signals
from clew.api.workspace import Workspace, open_workspace
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.server import ADDRESS_TAKEN, CERTIFICATE_UNUSABLE, TOKENS_NEEDED, UNSAFE_SIGN_IN
from clew.server.access.doorman import Doorman
from clew.server.access.signing_in import LINK
from clew.server.application import create_app
from clew.server.hosted_worker import HostedWorker
from clew.server.protection.question_pool import QuestionPool
from clew.server.protection.slow_connections import Punctual
from clew.server.settings import ServerSettings
from clew.server.streams import EventStreams

__all__ = ["Started", "Told", "listening", "require_tokens", "serve", "web_server"]


def require_usable_certificate(settings: ServerSettings) -> None:
    """Raise UserError CertificateUnusable if the certificate or the key is invalid, or if they do not match."""
    if settings.certificate is None:
        return
    try:
        # A key with a passphrase is refused: a server that starts unattended cannot prompt for it.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(settings.certificate, settings.certificate_key, password=lambda: "")
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
        words = str(reason).lower().replace("_", " ")
        raise UserError(CERTIFICATE_UNUSABLE.anywhere(file=settings.certificate, reason=words)) from error


_BACKLOG = 512
_MOST_REQUESTS_AT_ONCE = 1000
_GRACE_S = 5
_TICK_S = 0.1
_WAIT_FOR_REQUESTS_S = 1.0
"""How long the worker waits for the first page request."""


@dataclass(frozen=True, slots=True)
class Told:
    """Receives reports of what the server does."""

    started: Callable[["Started"], None]
    link: Callable[[str], None] = lambda _link: None
    """Another link, since somebody asked for one."""
    worker: Sequence[str] = ()
    """The command that starts a worker, after the first page was served; it ends when its standard input does."""
    is_quiet: bool = False
    """Whether the lines that the worker prints are dropped."""


@dataclass(frozen=True, slots=True)
class Started:
    """A listening server."""

    workspace: str
    environment: str
    url: str
    link: str | None
    """Signs in the person who started the server, once; None if others can reach the server."""
    is_readable: bool
    """Whether tokens are sent over the network without encryption."""

    def to_json(self) -> dict[str, object]:
        """The JSON of `clew serve --json`."""
        return {"workspace": self.workspace, "environment": self.environment, "url": self.url, "link": self.link}


def serve(root: Path, environment: str | None, settings: ServerSettings, told: Told) -> None:
    """Serve an environment of a workspace until SIGTERM or Ctrl-C."""
    require_usable_certificate(settings)
    with (
        _open(root, environment, settings) as workspace,
        listening(settings) as listener,
        stop_on_signals() as stop,
        _worker(settings, told) as start_worker,
    ):
        settings = replace(settings, port=listener.getsockname()[1])
        app = create_app(workspace, settings)
        with _links_on_request(app, settings, told):
            told.started(
                Started(
                    workspace=workspace.name,
                    environment=workspace.environment_name,
                    url=settings.address,
                    link=_link(app) if settings.is_loopback else None,
                    is_readable=not settings.is_loopback and not settings.is_secure,
                )
            )
            web_server(app, settings, stop, beside=start_worker).run(sockets=[listener])


def require_tokens(workspace: Workspace, settings: ServerSettings) -> None:
    """Raise UserError TokensNeeded if others can reach the server, but there is nothing to sign in with.

    Raises UserError UnsafeSignIn if people sign in at a provider that would send them back over an open line.
    """
    if workspace.oidc is not None:
        if not settings.is_private:
            raise UserError(UNSAFE_SIGN_IN.anywhere(address=settings.address))
        return
    now = datetime.now(UTC)
    if not settings.is_loopback and not workspace.tokens.can_sign_in(now):
        raise UserError(TOKENS_NEEDED.anywhere(host=settings.host))


def _link(app: FastAPI) -> str:
    """A link that signs in the person who started the server, once."""
    doorman: Doorman = app.state.doorman
    return f"{doorman.settings.address}{LINK}?key={doorman.links.new_key()}"


@contextmanager
def _links_on_request(app: FastAPI, settings: ServerSettings, told: Told) -> Iterator[None]:
    """Print another link when the process receives SIGUSR1, if only this machine can reach the server."""
    if not settings.is_loopback:
        yield
        return
    before = signal.signal(signal.SIGUSR1, lambda _number, _frame: told.link(_link(app)))
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@contextmanager
def _open(root: Path, environment: str | None, settings: ServerSettings) -> Iterator[Workspace]:
    with open_workspace(root, environment).following_files() as workspace:
        require_tokens(workspace, settings)
        yield workspace


@contextmanager
def _worker(settings: ServerSettings, told: Told) -> Iterator[Callable[[], None]]:
    """A function that starts the worker, if the settings say so. The worker is stopped at the end."""
    if not settings.has_worker or not told.worker:
        yield lambda: None
        return
    worker = HostedWorker(told.worker, is_quiet=told.is_quiet)
    try:
        yield worker.start
    finally:
        worker.stop()


@contextmanager
def listening(settings: ServerSettings) -> Iterator[socket.socket]:
    """A listening socket; port 0 picks a free port."""
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
) -> "WebServer":
    """A server for an application; `run(sockets=...)` serves until it is stopped, even if that is at once.

    `beside` is called once, after the first request was answered or after a short wait without one: what it starts
    would slow the first page down.
    """
    return WebServer(app, settings, stop or threading.Event(), beside)


class WebServer:
    """Uvicorn, with a task that watches its start and its end.

    Event streams and questions end as soon as the server is asked to stop, so that it does not wait for them.
    """

    def __init__(
        self, app: FastAPI, settings: ServerSettings, stop: threading.Event, beside: Callable[[], None]
    ) -> None:
        self._punctual = Punctual(settings)
        self._uvicorn = uvicorn.Server(_configuration(app, settings, self._punctual))
        self._streams: EventStreams = app.state.streams
        self._questions: QuestionPool = app.state.questions
        self._stop = stop
        self._beside = beside

    def run(self, sockets: list[socket.socket]) -> None:
        """Serve on listening sockets."""
        asyncio.run(self._serve(sockets))

    def exit(self) -> None:
        """Ask the server to stop."""
        self._uvicorn.should_exit = True

    async def _serve(self, sockets: list[socket.socket]) -> None:
        async with asyncio.TaskGroup() as tasks:
            watching = [tasks.create_task(self._end_streams()), tasks.create_task(self._start_beside())]
            await self._uvicorn.serve(sockets=sockets)
            for task in watching:
                task.cancel()

    async def _end_streams(self) -> None:
        """Stop even if a signal arrived before uvicorn handled signals."""
        while not self._uvicorn.should_exit:
            if self._stop.is_set():
                self._uvicorn.should_exit = True
            else:
                await asyncio.sleep(_TICK_S)
        self._streams.close()
        self._questions.close()

    async def _start_beside(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + _WAIT_FOR_REQUESTS_S
        while not self._punctual.answered and loop.time() < until:
            await asyncio.sleep(_TICK_S)
        if not self._uvicorn.should_exit:
            self._beside()


def _configuration(app: FastAPI, settings: ServerSettings, punctual: Punctual) -> uvicorn.Config:
    return uvicorn.Config(
        punctual.around(app),
        http=punctual.protocol(),
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
