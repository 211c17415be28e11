"""`clew serve`."""

import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.workspace import Workspace
    from clew.server.serving import Started, Told


@command
@option("--host", metavar="ADDRESS", default="127.0.0.1", help="Where to listen; remote access needs tokens.")
@option("--port", metavar="N", type=WholeNumber(min=0, max=65535), default=8765, help="The port; 0 picks a free one.")
@option("--no-worker", is_flag=True, help="Do not start Spark; leave runs to `clew worker`.")
@option("--url", metavar="URL", help="The public address, if behind a proxy.")
@option("--allow-host", metavar="NAME", multiple=True, help="Another host name of this server. Repeatable.")
@option("--idle", metavar="MINUTES", type=WholeNumber(min=1), help="End sessions that nobody uses for so long.")
@option("--certificate", metavar="FILE", type=Path, help="Serve HTTPS with this certificate.")
@option("--certificate-key", metavar="FILE", type=Path, help="The private key of the certificate.")
@environment_option
@workspace_option
def serve(
    context: click.Context,
    host: str,
    port: int,
    no_worker: bool,
    url: str | None,
    allow_host: tuple[str, ...],
    idle: int | None,
    certificate: Path | None,
    certificate_key: Path | None,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Serve the web pages and the HTTP API until stopped.

    On the local machine, it prints a link that signs you in once, within 15 minutes; the signal USR1 makes it print
    another. Any other address needs tokens, which `clew token create` creates. A worker with a warm Spark session
    executes the runs that people and programs request; it is a process that starts after the first page, ends with the
    server, and is started again if it dies.
    With --json, the address and the link are printed when the server starts to listen.
    """
    from clew.server.serving import serve as serve_workspace
    from clew.server.settings import ServerSettings

    session = context.ensure_object(Session)
    _check(url, certificate, certificate_key)
    settings = ServerSettings(
        host=host,
        port=port,
        has_worker=not no_worker,
        url=url,
        allowed_hosts=frozenset(allow_host or ()),
        longest_idle=timedelta(minutes=idle) if idle is not None else None,
        certificate=str(certificate) if certificate is not None else None,
        certificate_key=str(certificate_key) if certificate_key is not None else None,
    )
    opened = session.open(workspace, environment)
    serve_workspace(opened.root, environment, settings, _told(session, opened))


def _told(session: Session, workspace: "Workspace") -> "Told":
    from clew.server.serving import Told

    worker = [sys.executable, "-m", "clew.cli", "worker", "--until-eof", "--env", workspace.environment_name]
    worker += ["--workspace", str(workspace.root)]
    if session.wants_json:
        return Told(
            started=lambda started: write_json(started.to_json()),
            link=lambda link: write_json({"link": link}),
            worker=worker,
            is_quiet=True,
        )
    return Told(started=_say_started, link=lambda link: say(f"open: {link}"), worker=worker)


def _say_started(started: "Started") -> None:
    say(f"serving {started.workspace} ({started.environment}) on {started.url}; Ctrl-C stops it")
    if started.is_readable:
        say("note: tokens are sent unencrypted; use --certificate, or a TLS proxy and --url")
    if started.link is not None:
        say(f"open: {started.link}")
        say(f"the link works once, within 15 minutes; `kill -USR1 {os.getpid()}` prints another one")


def _check(url: str | None, certificate: Path | None, certificate_key: Path | None) -> None:
    problems = list[str]()
    if url is not None and not url.startswith(("http://", "https://")):
        problems.append(f'--url "{url}" does not start with http:// or https://')
    if certificate is None and certificate_key is not None:
        problems.append("--certificate-key needs --certificate")
    problems += [f"no file {file}" for file in (certificate, certificate_key) if file and not file.is_file()]
    if problems:
        raise UserError(*(WRONG_USAGE.anywhere(problem=problem) for problem in problems))
