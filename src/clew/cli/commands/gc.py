"""`clew gc`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.formatting import counted
from clew.cli.options import command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import WRONG_USAGE

if TYPE_CHECKING:
    from clew.api.operations import Garbage, RemovalRecord

_MOST_SHOWN = 50
_RULE = re.compile(r"(?P<number>\d{1,6})(?P<unit>d?)")


@command
@option(
    "--keep",
    metavar="RULE",
    multiple=True,
    help="Runs to keep: those of the last days (30d), or the newest of each project (20). Repeatable.",
)
@option(
    "--keep-lineage",
    metavar="DAYS",
    help="Keep frames, links and windows that programs sent in the last days (90d).",
)
@option("--dry-run", is_flag=True, help="Show what would be deleted, and delete nothing.")
@option("--history", is_flag=True, help="Show past deletions, newest first.")
@environment_option
@workspace_option
def gc(
    context: click.Context,
    keep: tuple[str, ...],
    keep_lineage: str | None,
    dry_run: bool,
    history: bool,
    environment: str | None,
    workspace: Path | None,
) -> None:
    """Delete what is no longer needed.

    Deletes runs that no rule keeps, versions of datasets that only those runs registered, expired captures, and files
    left by dead workers. A run is kept while a dataset version contains its rows and is the newest version, is used by
    a project, or was read by a kept run. Without --keep, the rules of the environment apply; if it has none, no run is
    deleted. The same is true of --keep-lineage and what `clew collect` wrote, which all environments of a state store
    share.
    """
    session = context.ensure_object(Session)
    rules, lineage_days = keep_rules(keep), lineage_days_of(keep_lineage)
    with session.open(workspace, environment) as opened:
        if history:
            _tell_history(opened.removals(), session)
            return
        garbage = opened.gc(keep_days=rules.days, keep_runs=rules.runs, keep_lineage_days=lineage_days, dry_run=dry_run)
    if session.wants_json:
        write_json({"dry_run": dry_run, **garbage.to_json()})
    else:
        _tell(garbage, "would be deleted" if dry_run else "deleted")
    if garbage.problems:
        raise click.exceptions.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class KeepRules:
    """The rules of `--keep`."""

    days: int | None
    runs: int | None


def keep_rules(rules: Sequence[str]) -> KeepRules:
    """Parse rules: `30d` for days, `20` for runs of each project. Of two rules of a kind, the wider one applies."""
    days, runs = list[int](), list[int]()
    for rule in rules:
        read = _RULE.fullmatch(rule.strip())
        if read is None:
            problem = f'--keep takes days such as 30d, or a number of runs per project such as 20, not "{rule}"'
            raise UserError(WRONG_USAGE.anywhere(problem=problem))
        (days if read["unit"] else runs).append(int(read["number"]))
    return KeepRules(days=max(days, default=None), runs=max(runs, default=None))


def lineage_days_of(rule: str | None) -> int | None:
    """The days of `--keep-lineage 90d`."""
    if rule is None:
        return None
    read = _RULE.fullmatch(rule.strip())
    if read is None or not read["unit"]:
        problem = f'--keep-lineage takes days such as 90d, not "{rule}"'
        raise UserError(WRONG_USAGE.anywhere(problem=problem))
    return int(read["number"])


def _tell(garbage: "Garbage", done: str) -> None:
    from clew.cli.formatting import short, size
    from clew.cli.views.page import headed, plain, show

    if garbage.things:
        rows = [
            [plain(each.kind), plain(_named(each.kind, each.name)), plain(size(each.size)), plain(each.reason)]
            for each in garbage.things
        ]
        show(headed(["kind", "name", "size", "why"], rows))
    for run in garbage.kept:
        say(f"run {short(run.run_id)} is kept: {run.reason}")
    for problem in garbage.problems:
        say(f"not deleted: {problem.message}")
    say(f"{counted(len(garbage.things), 'item')} {done}, {size(garbage.size)}")


def _tell_history(records: "list[RemovalRecord]", session: Session) -> None:
    from clew.cli.formatting import local_time, size
    from clew.cli.views.page import headed, plain, show

    if session.wants_json:
        write_json({"removals": [record.to_json() for record in records]})
        return
    if not records:
        say("nothing has been deleted yet")
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
    from clew.cli.formatting import short

    return short(name) if kind == "run" else name
