"""Keeping an environment small: runs and versions of datasets that are not needed go, and a journal says so."""

from clew.api.opened_environment import OpenedEnvironment
from clew.gc.garbage import Garbage, Retention, usual_retention
from clew.gc.run_removal import Removal, garbage_collector, remove_run
from clew.runs.environment import RunEnvironment
from clew.storage.removals import Journal, RemovalRecord

__all__ = ["Garbage", "Removal", "RemovalRecord", "collect_garbage", "past_removals", "remove_one_run"]


def collect_garbage(
    at: OpenedEnvironment,
    *,
    keep_days: int | None = None,
    keep_runs: int | None = None,
    keep_lineage_days: int | None = None,
    dry_run: bool = False,
) -> Garbage:
    """Remove what no rule keeps, or find it only. Without rules for runs those of the environment hold."""
    given = Retention(days=keep_days, runs=keep_runs)
    retention = usual_retention(at.environment.settings.retention) if given.keeps_all else given
    collector = garbage_collector(at.files, at.environment, at.state, keep_lineage_days)
    return collector.find(retention) if dry_run else collector.collect(retention)


def past_removals(environment: RunEnvironment) -> list[RemovalRecord]:
    """What was removed before, newest first."""
    return Journal(environment.storage_root).records(environment.name)


def remove_one_run(at: OpenedEnvironment, run_id: str, *, force: bool, reason: str) -> Removal:
    """Delete a run that has ended, unless a dataset has rows of it or captures wait for them."""
    return remove_run(at.files, at.environment, at.state, run_id, force=force, reason=reason)
