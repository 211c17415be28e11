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

_DEFAULT_ADDRESS = "127.0.0.1:9904"


@command
@option("--bind", metavar="HOST:PORT", default=_DEFAULT_ADDRESS, help="Where to listen; port 0 picks a free port.")
@option("--allow-remote", is_flag=True, help="Accept messages from other machines. Senders are not authenticated.")
@option(
    "--batch-ms",
    metavar="MS",
    type=WholeNumber(min=10, max=100),
    default=50,
    help="Write messages that arrive within this time in one batch.",
)
@option(
    "--stage",
    metavar="STREAM=STAGE",
    multiple=True,
    help="The stage that publishes a stream. Default: the stage with the same number. Repeatable.",
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

    Receives FrameDescriptor and TraceLinkSet messages in UDP datagrams and writes them to the state store in batches.
    Delivery is best effort: while the store is unavailable, messages are buffered, then dropped. SIGTERM and Ctrl-C
    write the buffered messages and print the counts: received, bad, of unknown schemas, refused, dropped, written.
    Only senders with the key of the environment (tracelink.key_ref) can say something about rows of runs.
    """
    from clew.api.working import listening, stop_on_signals

    session = context.ensure_object(Session)
    where = listening(bind, allow_remote=allow_remote, batch_ms=batch_ms, stages=stage)
    with session.open(workspace, environment) as opened, stop_on_signals() as stop:
        counts = opened.collect(where, stop, lambda address: _announce(address, session))
    _print(counts, session)


def _announce(address: tuple[str, int], session: Session) -> None:
    """Print the address; with --json to standard error, because the result is one document."""
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
    say(f"written  {counts.written:,} records in {counts.transactions:,} transactions, {counts.known:,} already known")
    say(f"skipped  {counts.bad:,} bad, {counts.unknown_schema:,} of unknown schemas")
    if counts.refused or counts.forged:
        say(f"refused  {counts.refused:,} about rows of runs, {counts.forged:,} datagrams with a wrong key")
    say(f"dropped  {counts.dropped:,} messages, {counts.overrun:,} datagrams before they were received")
