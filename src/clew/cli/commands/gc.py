"""`clew gc`."""

from typing import TYPE_CHECKING, Annotated

import typer

from clew.cli.failure import FAILED
from clew.cli.formatting import counted
from clew.cli.output import EnvironmentOption, JsonOption, VerboseOption, WorkspaceOption, say, write_json
from clew.cli.session import Session

if TYPE_CHECKING:
    from clew.gc.collector import Garbage
    from clew.storage.removals import RemovalRecord

_MOST_SHOWN = 50


def gc(
    context: typer.Context,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="RULE",
            help="Runs to keep: those of the last days (30d), or the newest of each project (20). Can be repeated.",
        ),
    ] = None,
    keep_lineage: Annotated[
        str | None,
        typer.Option(
            "--keep-lineage",
            metavar="DAYS",
            help="Keep frames, links and windows that programs have sent in the last days (90d).",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be removed, and remove nothing.")] = False,
    history: Annotated[bool, typer.Option("--history", help="What was removed before, newest first.")] = False,
    environment: EnvironmentOption = None,
    workspace: WorkspaceOption = None,
    _json: JsonOption = False,
    _verbose: VerboseOption = False,
) -> None:
    """Remove what nobody needs any more.

    Runs that no rule keeps, versions of datasets that only they made, captures that have expired, and files that dead
    workers have left. A run stays as long as rows of it are in a version of a dataset that is the newest one, that a
    project asks for, or that was read by a run which stays. Without --keep the rules of the environment hold; where
    it has none either, no run is removed. The same goes for --keep-lineage and what `clew collect` has written; that is
    shared by all environments of a state store.
    """
    from clew.cli.run_site import open_site
    from clew.gc.removal import collector_of
    from clew.gc.retention import lineage_days_of, retention_of, usual_retention
    from clew.storage.removals import Journal

    session = context.ensure_object(Session)
    given, lineage_days = retention_of(keep or []), lineage_days_of(keep_lineage)
    with open_site(session, workspace, environment) as site:
        retention = given if keep else usual_retention(site.environment.settings.retention)
        if history:
            _tell_history(Journal(site.environment.storage_root).records(site.environment.name), session)
            return
        collector = collector_of(site.workspace, site.environment, site.state, lineage_days)
        garbage = collector.find(retention) if dry_run else collector.collect(retention)
    if session.wants_json:
        write_json({"dry_run": dry_run, **garbage.to_json()})
    else:
        _tell(garbage, "would be removed" if dry_run else "removed")
    if garbage.problems:
        raise typer.Exit(FAILED)


def _tell(garbage: "Garbage", done: str) -> None:
    from clew.cli.formatting import size
    from clew.cli.run_site import short
    from clew.cli.views.page import headed, plain, show

    if garbage.things:
        rows = [
            [plain(each.kind), plain(_named(each.kind, each.name)), plain(size(each.size)), plain(each.reason)]
            for each in garbage.things
        ]
        show(headed(["kind", "name", "size", "why"], rows))
    for run in garbage.kept:
        say(f"run {short(run.run_id)} stays: {run.reason}")
    for problem in garbage.problems:
        say(f"not removed: {problem.message}")
    say(f"{counted(len(garbage.things), 'thing')} {done}, {size(garbage.size)}")


def _tell_history(records: "list[RemovalRecord]", session: Session) -> None:
    from clew.cli.formatting import local_time, size
    from clew.cli.views.page import headed, plain, show

    if session.wants_json:
        write_json({"removals": [record.to_json() for record in records]})
        return
    if not records:
        say("nothing has been removed yet")
        return
    rows = [
        [
            plain(local_time(record.at)),
            plain(record.by),
            plain(record.thing.kind),
            plain(_named(record.thing.kind, record.thing.name)),
            plain(size(record.thing.size)),
            plain(record.thing.reason),
        ]
        for record in records[:_MOST_SHOWN]
    ]
    show(headed(["when", "by", "kind", "name", "size", "why"], rows))
    if len(records) > _MOST_SHOWN:
        say(f"... {len(records) - _MOST_SHOWN:,} more (--json)")


def _named(kind: str, name: str) -> str:
    from clew.cli.run_site import short

    return short(name) if kind == "run" else name
