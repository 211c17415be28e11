"""`clew collect`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.options import WholeNumber, command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.tracelink import CollectorCounts

_USUAL = "127.0.0.1:9904"


@command
@option("--bind", metavar="HOST:PORT", default=_USUAL, help="Where to listen; port 0 is any.")
@option("--allow-remote", is_flag=True, help="Listen where other machines reach it. Senders are not asked.")
@option(
    "--batch-ms",
    metavar="MS",
    type=WholeNumber(min=10, max=100),
    default=50,
    help="What comes within this time is one write.",
)
@option(
    "--stage",
    metavar="STREAM=STAGE",
    multiple=True,
    help="The stage that publishes a stream; else the one with its number. Can be repeated.",
)
@environment_option
@workspace_option
def collect(
    context: click.Context,
    bind: str,
    allow_remote: bool,
    batch_ms: int,
    stage: tuple[str, ...],
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Collect frames and links that other programs send.

    Takes FrameDescriptor and TraceLinkSet messages in UDP datagrams and writes them to the state store in batches.
    Best effort: while the store is away a good deal waits, then messages are dropped. SIGTERM and Ctrl-C write what has
    come and print the counts: received, bad, of unknown schemas, dropped, written.
    """
    from clew.api.working import listening, stop_on_signals

    session = context.ensure_object(Session)
    where = listening(bind, allow_remote=allow_remote, batch_ms=batch_ms, stages=stage)
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
