"""For operators: the queue, running runs and their workers, and events that buses rejected."""

from collections.abc import Sequence
from datetime import datetime

from clew.api.operations import Activity
from clew.deferred import dataclass
from clew.events.snapshot import RunStatus
from clew.runs.request import RunRecord
from clew.runs.stores import DeadLetter, HeldLease, OutboxLoad
from clew.server.pages import addresses, words


@dataclass(frozen=True, slots=True)
class WaitingRun:
    """A run that has not ended."""

    run_id: str
    address: str
    project: str
    version: str
    period: str
    status: RunStatus
    note: str
    since: str


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A worker that executes runs."""

    owner: str
    runs: tuple[tuple[str, str], ...]
    """Short ids and addresses."""
    expires: str
    is_expired: bool


@dataclass(frozen=True, slots=True)
class BusLine:
    """An event bus and what waits for it."""

    sink: str
    waiting: int
    retried: int
    dead: int
    oldest: str
    last_error: str


@dataclass(frozen=True, slots=True)
class LetterLine:
    """An event that a bus rejected."""

    sink: str
    event: str
    run: str
    address: str
    run_seq: int
    attempts: int
    error: str
    since: str


@dataclass(frozen=True, slots=True)
class OperationsPage:
    """The whole page."""

    running: int
    queued: int
    most_running: int
    policy: str
    runs: tuple[WaitingRun, ...]
    workers: tuple[WorkerLine, ...]
    buses: tuple[BusLine, ...]
    letters: tuple[LetterLine, ...]
    may_replay: bool

    @property
    def dead(self) -> int:
        """The number of dead letters."""
        return sum(bus.dead for bus in self.buses)

    @property
    def waiting_events(self) -> int:
        """The number of events in the outbox."""
        return sum(bus.waiting for bus in self.buses)


_POLICIES = {
    "QUEUE": "further runs wait in the queue",
    "DELAY": "further runs start later",
    "REJECT": "further runs are rejected",
}


def operations_page(found: Activity, now: datetime, *, may_replay: bool) -> OperationsPage:
    """The page for operators."""
    return OperationsPage(
        running=found.load.running,
        queued=found.load.queued,
        most_running=found.policy.max_running,
        policy=_POLICIES[found.policy.overload.value],
        runs=tuple(_run(run, now) for run in found.open_runs),
        workers=_workers(found.leases, now),
        buses=tuple(_bus(load, now) for load in found.outbox),
        letters=tuple(_letter(letter) for letter in found.dead),
        may_replay=may_replay and bool(found.dead),
    )


def _run(run: RunRecord, now: datetime) -> WaitingRun:
    note = "waits for approval" if run.approval_pending else ""
    if not note and run.request.not_before is not None and run.request.not_before > now:
        note = f"not before {words.second(run.request.not_before)}"
    return WaitingRun(
        run_id=run.run_id,
        address=addresses.run(run.run_id),
        project=run.request.project_id,
        version=run.request.definition,
        period=run.request.period,
        status=run.status,
        note=note,
        since=words.duration(now - (run.started_at or run.created_at)),
    )


def _workers(leases: Sequence[HeldLease], now: datetime) -> tuple[WorkerLine, ...]:
    owners = dict[str, list[HeldLease]]()
    for lease in leases:
        owners.setdefault(lease.owner, []).append(lease)
    return tuple(_worker(owner, held, now) for owner, held in owners.items())


def _worker(owner: str, held: Sequence[HeldLease], now: datetime) -> WorkerLine:
    first = min(lease.expires_at for lease in held)
    is_expired = any(lease.is_expired for lease in held)
    expires = f"expired {words.duration(now - first)} ago" if is_expired else f"for {words.duration(first - now)} more"
    runs = tuple((words.short(lease.run_id), addresses.run(lease.run_id)) for lease in held)
    return WorkerLine(owner, runs, expires, is_expired)


def _bus(load: OutboxLoad, now: datetime) -> BusLine:
    oldest = words.duration(now - load.oldest) if load.oldest is not None and load.oldest < now else ""
    return BusLine(load.bus, load.waiting, load.retried, load.dead, oldest, load.last_error or "")


def _letter(letter: DeadLetter) -> LetterLine:
    return LetterLine(
        sink=letter.bus,
        event=letter.event_type,
        run=words.short(letter.run_id),
        address=addresses.run(letter.run_id),
        run_seq=letter.run_seq,
        attempts=letter.attempts,
        error=letter.error,
        since=words.minute(letter.dead_since),
    )
