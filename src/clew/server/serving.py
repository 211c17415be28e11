"""Starts the server: the site, the application, and uvicorn on an address."""

import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import uvicorn
from fastapi import FastAPI

from clew.diagnostics import UserError
from clew.diagnostics.codes.server import ADDRESS_TAKEN, TOKENS_NEEDED
from clew.runs.clock import utc_now
from clew.server.access.doorman import Doorman
from clew.server.application import create_app
from clew.server.settings import ServerSettings
from clew.server.signing_in import LINK
from clew.server.site import Site, open_site

_log = logging.getLogger(__name__)
_BACKLOG = 512
_MOST_REQUESTS_AT_ONCE = 1000


def serve(root: Path, environment: str | None, settings: ServerSettings, say: Callable[[str], None]) -> None:
    """Serve an environment of a workspace until SIGTERM or Ctrl-C. Tells `say` where it can be reached."""
    with open_site(root, environment) as site, _listening(settings) as listener:
        require_tokens(site, settings)
        settings = _with_port(settings, listener)
        app = create_app(site, settings, on_link_used=lambda: announce_link(app, say, "another link"))
        say(f"serving {site.workspace.name} ({site.environment.name}) on {settings.address}; Ctrl-C stops it")
        if settings.is_loopback:
            announce_link(app, say, "open")
        uvicorn.Server(_configuration(app, settings)).run(sockets=[listener])


def require_tokens(site: Site, settings: ServerSettings) -> None:
    """UserError TokensNeeded where others can reach the server and nobody could sign in."""
    now = utc_now()
    if not settings.is_loopback and not any(token.is_valid(now) for token in site.state.tokens.tokens()):
        raise UserError(TOKENS_NEEDED.anywhere(host=settings.host))


def announce_link(app: FastAPI, say: Callable[[str], None], word: str) -> None:
    """Tell the link that signs in whoever started the server, once."""
    doorman: Doorman = app.state.doorman
    say(f"{word}: {doorman.settings.address}{LINK}?key={doorman.links.new_key()}")


def _with_port(settings: ServerSettings, listener: socket.socket) -> ServerSettings:
    return replace(settings, port=listener.getsockname()[1])


@contextmanager
def _listening(settings: ServerSettings) -> Iterator[socket.socket]:
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


def _configuration(app: FastAPI, settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        proxy_headers=settings.url is not None,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=5,
        limit_concurrency=_MOST_REQUESTS_AT_ONCE,
        ssl_certfile=settings.certificate,
        ssl_keyfile=settings.certificate_key,
        ws="none",
    )
