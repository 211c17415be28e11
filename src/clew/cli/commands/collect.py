"""`clew collect`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.tracelink import CollectorCounts

_USUAL = "127.0.0.1:9904"


def collect(
    context: typer.Context,
    bind: Annotated[str, typer.Option("--bind", metavar="HOST:PORT", help="Where to listen; port 0 is any.")] = _USUAL,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Listen where other machines reach it. Senders are not asked.")
    ] = False,
    batch_ms: Annotated[
        int, typer.Option("--batch-ms", metavar="MS", help="What comes within this time is one write.", min=10, max=100)
    ] = 50,
    stage: Annotated[
        list[str] | None,
        typer.Option(
            "--stage",
            metavar="STREAM=STAGE",
            help="The stage that publishes a stream; else the one with its number. Can be repeated.",
        ),
    ] = None,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Collect frames and links that other programs send.

    Takes FrameDescriptor and TraceLinkSet messages in UDP datagrams and writes them to the state store in batches.
    Best effort: while the store is away a good deal waits, then messages are dropped. SIGTERM and Ctrl-C write what has
    come and print the counts: received, bad, of unknown schemas, dropped, written.
    """
    from clew.api.working import listening, stop_on_signals

    session = context.ensure_object(Session)
    where = listening(bind, allow_remote=allow_remote, batch_ms=batch_ms, stages=stage or [])
    with session.open(workspace, environment) as opened, stop_on_signals() as stop:
        counts = opened.collect(where, stop, lambda address: _announce(address, session))
    _print(counts, session)


def _announce(address: tuple[str, int], session: Session) -> None:
    """Say where it listens; beside the answer where that is to be one document."""
    host, port = address
    line = f"collecting at {host}:{port}; Ctrl-C stops it"
    if session.wants_json:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()
    else:
        say(line)


def _print(counts: "CollectorCounts", session: Session) -> None:
    if session.wants_json:
        write_json(counts.to_json())
        return
    say(f"received {counts.received:,} messages in {counts.datagrams:,} datagrams, {counts.untraced:,} not traced")
    say(f"written  {counts.written:,} records in {counts.transactions:,} transactions, {counts.known:,} known before")
    say(f"left out {counts.bad:,} bad, {counts.unknown_schema:,} of unknown schemas")
    say(f"dropped  {counts.dropped:,} messages, {counts.overrun:,} datagrams before they were received")
