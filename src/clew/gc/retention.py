"""How long runs are kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from clew.definitions.settings import RetentionSettings
from clew.runs.request import RunRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """Which of the runs that have ended are kept: those that one of the rules keeps, and all where there is no rule."""

    days: int | None = None
    """Runs that ended no longer ago."""
    runs: int | None = None
    """So many runs of each project, the newest."""

    @property
    def keeps_all(self) -> bool:
        """Whether there is no rule."""
        return self.days is None and self.runs is None

    def expired(self, runs: Iterable[RunRecord], now: datetime) -> list[RunRecord]:
        """The runs that no rule keeps, of runs that come newest first. One that goes on is never among them."""
        found, seen = list[RunRecord](), dict[str, int]()
        for run in runs:
            if not run.status.is_terminal or self.keeps_all:
                continue
            project = run.request.project_id
            seen[project] = seen.get(project, 0) + 1
            is_recent = self.days is not None and now - _end(run) <= timedelta(days=self.days)
            if not is_recent and (self.runs is None or seen[project] > self.runs):
                found.append(run)
        return found

    def __str__(self) -> str:
        rules = list[str]()
        if self.days is not None:
            rules.append(f"those of the last {self.days} days")
        if self.runs is not None:
            rules.append(f"{self.runs} of each project")
        return " and ".join(rules) or "all"


def usual_retention(settings: RetentionSettings) -> Retention:
    """The rules of an environment."""
    return Retention(days=settings.keep_days, runs=settings.keep_runs)


def _end(run: RunRecord) -> datetime:
    return run.completed_at or run.started_at or run.created_at
