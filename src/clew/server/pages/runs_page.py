"""The list of runs."""

from collections.abc import Sequence

from clew.deferred import dataclass
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.runs.request import RunRecord
from clew.server.pages import addresses, words

_CHANGING = ("rows_updated", "rows_created", "rows_deleted")


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in the list."""

    run_id: str
    address: str
    status: RunStatus
    project: str
    version: str
    period: str
    requested_by: str
    asked: str
    duration: str
    rows_changed: int | None
    """None before the first step has committed."""
    problem: str | None


@dataclass(frozen=True, slots=True)
class RunListQuery:
    """The filter of the list; an empty text does not restrict it."""

    project: str = ""
    period: str = ""
    status: str = ""

    @property
    def is_everything(self) -> bool:
        """Whether the filter is empty."""
        return not (self.project or self.period or self.status)


@dataclass(frozen=True, slots=True)
class RunsPage:
    """A page of the list, newest first."""

    lines: tuple[RunLine, ...]
    wanted: RunListQuery
    projects: tuple[str, ...]
    statuses: tuple[str, ...]
    older: str | None
    """The address of the next page."""


def runs_page(
    found: Sequence[tuple[RunRecord, RunSnapshot]], wanted: RunListQuery, projects: Sequence[str], *, has_more: bool
) -> RunsPage:
    """The list of runs with their states."""
    older = None
    if has_more and found:
        older = addresses.runs(
            project=wanted.project, period=wanted.period, status=wanted.status, before=found[-1][0].run_id
        )
    return RunsPage(
        lines=tuple(_line(record, snapshot) for record, snapshot in found),
        wanted=wanted,
        projects=tuple(projects),
        statuses=tuple(status.value for status in RunStatus),
        older=older,
    )


def rows_changed(snapshot: RunSnapshot) -> int | None:
    """How many changes to rows the steps have committed."""
    counted = [step.counts for step in snapshot.steps if step.counts]
    return sum(counts.get(name, 0) for counts in counted for name in _CHANGING) if counted else None


def _line(record: RunRecord, snapshot: RunSnapshot) -> RunLine:
    request = record.request
    ended = record.completed_at
    return RunLine(
        run_id=record.run_id,
        address=addresses.run(record.run_id),
        status=record.status,
        project=request.project_id,
        version=request.definition,
        period=request.period,
        requested_by=request.requested_by or "",
        asked=words.minute(record.created_at),
        duration=words.duration(ended - record.started_at) if ended and record.started_at else "",
        rows_changed=rows_changed(snapshot),
        problem=snapshot.error.message if snapshot.error and record.status is RunStatus.FAILED else None,
    )
