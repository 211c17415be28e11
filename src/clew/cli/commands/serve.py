"""`clew serve`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.server.serving import Listener, Started, Told


def serve(
    context: typer.Context,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; beyond this machine needs tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", metavar="N", help="0 takes any free one.", min=0, max=65535)] = 8765,
    no_worker: Annotated[
        bool, typer.Option("--no-worker", help="Start no Spark: leave runs to `clew worker`.")
    ] = False,
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="The address that people use, behind a proxy."),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Another name of this server. Can be repeated."),
    ] = None,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", metavar="FILE", help="Serve HTTPS with this certificate.")
    ] = None,
    certificate_key: Annotated[
        Path | None, typer.Option("--certificate-key", metavar="FILE", help="The key of the certificate.")
    ] = None,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Serve the web pages and the HTTP API, until told to stop.

    On this machine alone it prints a link that signs you in once. Any other address needs tokens, which
    `clew token create` makes. A worker with a warm Spark session runs what pages and programs ask for. With --json the
    address and the link are printed when it listens.
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
        certificate=str(certificate) if certificate is not None else None,
        certificate_key=str(certificate_key) if certificate_key is not None else None,
    )
    root = session.open(workspace, environment).root
    serve_workspace(root, environment, settings, _told(session))


def _told(session: Session) -> "Told":
    from clew.server.serving import Told

    if session.wants_json:
        return Told(lambda started: write_json(started.to_json()))
    return Told(_say_started, lambda link: say(f"another link: {link}"), _worker_lines)


def _worker_lines() -> "Listener":
    from clew.cli.views.progress import WorkerLines
    from clew.server.serving import Listener

    lines = WorkerLines(say=say)
    return Listener(lines.take, lines.done)


def _say_started(started: "Started") -> None:
    say(f"serving {started.workspace} ({started.environment}) on {started.url}; Ctrl-C stops it")
    if started.is_readable:
        say("note: tokens travel readably; --certificate, or a proxy with TLS and --url, keeps them to yourselves")
    if started.link is not None:
        say(f"open: {started.link}")


def _check(url: str | None, certificate: Path | None, certificate_key: Path | None) -> None:
    problems = list[str]()
    if url is not None and not url.startswith(("http://", "https://")):
        problems.append(f'--url "{url}" does not begin with http:// or https://')
    if certificate is None and certificate_key is not None:
        problems.append("--certificate-key needs --certificate")
    problems += [f"there is no file {file}" for file in (certificate, certificate_key) if file and not file.is_file()]
    if problems:
        raise UserError(*(WRONG_USAGE.anywhere(problem=problem) for problem in problems))
