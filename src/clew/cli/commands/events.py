"""`clew events`."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.failure import FAILED
from clew.cli.output import EnvironmentOption, JsonOption, RunArgument, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.cli.run_site import RunSite
    from clew.events.reducer import Gap


def events(
    context: typer.Context,
    run: RunArgument,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until the run has ended.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Check the chain of hashes instead.")] = False,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Show the history of a run, event by event.

    With --verify: whether every event is still what was stored, which needs `tamper_evidence` in the environment.
    """
    from clew.cli.run_site import open_site

    session = context.ensure_object(Session)
    with open_site(session, workspace, environment) as site:
        run_id = site.reader.find(run).run_id
        if verify:
            raise typer.Exit(_verify(site, run_id, session))
        _list(site, run_id, session, follow=follow)


def _list(site: "RunSite", run_id: str, session: Session, *, follow: bool) -> None:
    from clew.api.event_pages import events_so_far, follow_events
    from clew.cli.views.tables import event_line

    def tell(gap: "Gap") -> None:
        sys.stderr.write(f"event {gap.expected_seq} is missing; what came after it waits\n")
        sys.stderr.flush()

    stream = (follow_events if follow else events_so_far)(site.state, run_id, on_gap=tell)
    if session.wants_json:
        write_json({"run_id": run_id, "events": [event.to_json() for event in stream]})
        return
    for event in stream:
        say(event_line(event))


def _verify(site: "RunSite", run_id: str, session: Session) -> int:
    from clew.cli.colour import bad, good
    from clew.cli.formatting import counted

    report = site.reader.verify(run_id)
    if session.wants_json:
        write_json({"run_id": run_id, **report.to_json()})
    else:
        for each in report.breaks:
            say(f"event {each.run_seq}: {each.problem}")
        if not report.is_intact:
            say(f"{bad('not intact')}: {counted(len(report.breaks), 'break')}")
        elif not report.verified:
            say(f"nothing is missing, but {counted(report.unchained, 'event')} without hashes cannot be verified;")
            say("`store_limits: {tamper_evidence: true}` in the environment chains the events of later runs")
        else:
            say(f"{good('intact')}: {counted(report.verified, 'event')} verified")
    return 0 if report.is_intact else FAILED
