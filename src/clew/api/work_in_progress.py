"""What the runs do that have not ended: the step at work, or what a run waits for."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from clew.deferred import dataclass
from clew.events.snapshot import RunSnapshot, RunStatus, StepStatus
from clew.runs.limits import Load
from clew.runs.request import RunRecord
from clew.runs.stores import HeldLease


@dataclass(frozen=True, slots=True)
class Doing:
    """What a run does, or what it waits for."""

    step: str | None = None
    """The step at work: its number and name."""
    since: datetime | None = None
    """When the step was started."""
    waits_for: str = ""
    """Why the run does nothing, in words; empty while it works."""
    behind: str | None = None
    """The run that it waits for."""

    def to_json(self) -> dict[str, object]:
        """The JSON form."""
        return {
            "step": self.step,
            "step_since": self.since.isoformat() if self.since is not None else None,
            "waits_for": self.waits_for or None,
            "behind": self.behind,
        }


_HOLDING = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})


@dataclass(frozen=True, slots=True)
class Environs:
    """What the other runs of an environment mean for one of them."""

    runs: Sequence[RunRecord]
    leases: Sequence[HeldLease]
    load: Load
    most_running: int
    now: datetime


def waits_for(run: RunRecord, around: Environs) -> Doing:
    """Why a run that has not been started waits: what would keep every worker from taking it."""
    if run.approval_pending:
        return Doing(waits_for="waits for approval")
    not_before = run.request.not_before
    if not_before is not None and not_before > around.now:
        return Doing(waits_for=f"starts at {not_before:%Y-%m-%d %H:%M:%S} UTC at the earliest")
    same = (run.request.project_id, run.request.period)
    for other in around.runs:
        if other.status in _HOLDING and (other.request.project_id, other.request.period) == same:
            return Doing(waits_for="another run of its project and period is in progress", behind=other.run_id)
    if around.load.running >= around.most_running:
        return Doing(waits_for=f"all {around.most_running} places are taken")
    if any(lease.run_id == run.run_id and not lease.is_expired for lease in around.leases):
        return Doing(waits_for="a worker prepares it")
    return Doing(waits_for="no worker has taken it yet")


def does(run: RunRecord, snapshot: RunSnapshot, around: Environs) -> Doing:
    """What a run that was started does: the last of its steps that has begun, or why it stands still."""
    if run.status is RunStatus.PAUSED:
        return Doing(waits_for="paused, until someone resumes it")
    lease = next((lease for lease in around.leases if lease.run_id == run.run_id), None)
    if lease is None or lease.is_expired:
        return Doing(waits_for="its worker is gone; the next one that is free takes it over")
    begun = [step for step in snapshot.steps if step.status is StepStatus.RUNNING]
    if not begun:
        return Doing(step="between steps", since=None)
    step = begun[-1]
    return Doing(step=f"{step.seq or step.step_id} {step.name}".strip(), since=step.started_at)


def doings(runs: Iterable[RunRecord], snapshots: Mapping[str, RunSnapshot], around: Environs) -> dict[str, Doing]:
    """What each of the runs does, by its id."""
    return {
        run.run_id: does(run, snapshots[run.run_id], around) if run.run_id in snapshots else waits_for(run, around)
        for run in runs
    }
