"""`clew events`."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.options import command, environment_option, option, run_argument, workspace_option
from clew.cli.output import bad, good, say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.api.run import Run
    from clew.events.reducer import Gap


@command
@run_argument
@option("--follow", is_flag=True, help="Wait for new events until the run has ended.")
@option("--verify", is_flag=True, help="Verify the hash chain instead.")
@environment_option
@workspace_option
def events(
    context: click.Context, run: str, follow: bool, verify: bool, environment: str | None, workspace: Path | None
) -> None:
    """Show the events of a run.

    With --verify, check that no stored event has been changed. `clew verify` checks files and records too.
    """
    session = context.ensure_object(Session)
    with session.open(workspace, environment) as opened:
        found = opened.find_run(run)
        if verify:
            raise click.exceptions.Exit(_verify(found, session))
        _list(found, session, follow=follow)


def _list(run: "Run", session: Session, *, follow: bool) -> None:
    from clew.cli.views.tables import event_line

    def tell(gap: "Gap") -> None:
        sys.stderr.write(f"event {gap.expected_seq} is missing; later events are held back\n")
        sys.stderr.flush()

    stream = run.follow_events(on_gap=tell) if follow else run.events_so_far(on_gap=tell)
    if session.wants_json:
        write_json({"run_id": run.id, "events": [event.to_json() for event in stream]})
        return
    for event in stream:
        say(event_line(event))


def _verify(run: "Run", session: Session) -> int:
    from clew.cli.formatting import counted

    report = run.verify()
    if session.wants_json:
        write_json({"run_id": run.id, **report.to_json()})
    else:
        for each in report.breaks:
            say(f"event {each.run_seq}: {each.problem}")
        if not report.is_intact:
            say(f"{bad('not intact')}: {counted(len(report.breaks), 'break')}")
        elif not report.verified:
            say(f"nothing is missing, but {counted(report.unchained, 'event')} from before events were sealed;")
            say("`clew verify` compares them with their digest in the ledger")
        else:
            say(f"{good('intact')}: {counted(report.verified, 'event')} verified")
    return 0 if report.is_intact else FAILED
