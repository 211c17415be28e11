"""`clew gc`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clew.cli.failure import FAILED
from clew.cli.formatting import counted
from clew.cli.options import command, environment_option, option, workspace_option
from clew.cli.output import say, write_json
from clew.cli.session import Session
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
    help="Runs to keep: those of the last days (30d), or the newest of each project (20). Can be repeated.",
)
@option(
    "--keep-lineage",
    metavar="DAYS",
    help="Keep frames, links and windows that programs have sent in the last days (90d).",
)
@option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@option("--history", is_flag=True, help="What was removed before, newest first.")
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
    """Remove what nobody needs any more.

    Runs that no rule keeps, versions of datasets that only they made, captures that have expired, and files that dead
    workers have left. A run stays as long as rows of it are in a version of a dataset that is the newest one, that a
    project asks for, or that was read by a run which stays. Without --keep the rules of the environment hold; where
    it has none either, no run is removed. The same goes for --keep-lineage and what `clew collect` has written; that is
    shared by all environments of a state store.
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
        _tell(garbage, "would be removed" if dry_run else "removed")
    if garbage.problems:
        raise click.exceptions.Exit(FAILED)


@dataclass(frozen=True, slots=True)
class KeepRules:
    """The rules of `--keep`."""

    days: int | None
    runs: int | None


def keep_rules(rules: Sequence[str]) -> KeepRules:
    """The rules as they are typed: `30d` for days, `20` for runs of each project. Of two of a kind the wider counts."""
    days, runs = list[int](), list[int]()
    for rule in rules:
        read = _RULE.fullmatch(rule.strip())
        if read is None:
            problem = f'--keep takes days such as 30d, or a number of runs of each project such as 20, not "{rule}"'
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
    from clew.cli.formatting import short

    return short(name) if kind == "run" else name
