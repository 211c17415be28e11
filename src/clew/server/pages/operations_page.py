"""For operators: the queue, running runs and their workers, and events that buses rejected."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from clew.api.operations import Activity
from clew.api.work_in_progress import Doing
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
    """What it does or waits for."""
    behind: tuple[str, str] | None
    """The run that it waits for: short id and address."""
    since: str


@dataclass(frozen=True, slots=True)
class HeldRun:
    """A run that a worker holds, and what it does."""

    name: str
    address: str
    doing: str


@dataclass(frozen=True, slots=True)
class WorkerLine:
    """A worker that executes runs."""

    host: str
    process: str
    runs: tuple[HeldRun, ...]
    health: str
    """When it was last heard from."""
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
        runs=tuple(_run(run, found.does(run.run_id), now) for run in found.open_runs),
        workers=_workers(found, now),
        buses=tuple(_bus(load, now) for load in found.outbox),
        letters=tuple(_letter(letter) for letter in found.dead),
        may_replay=may_replay and bool(found.dead),
    )


def _run(run: RunRecord, doing: Doing, now: datetime) -> WaitingRun:
    behind = doing.behind
    return WaitingRun(
        run_id=run.run_id,
        address=addresses.run(run.run_id),
        project=run.request.project_id,
        version=run.request.definition,
        period=run.request.period,
        status=run.status,
        note=doing.waits_for or _at_work(doing, now),
        behind=(words.short(behind), addresses.run(behind)) if behind is not None else None,
        since=words.duration(now - (run.started_at or run.created_at)),
    )


def _at_work(doing: Doing, now: datetime) -> str:
    if doing.step is None:
        return ""
    if doing.since is None:
        return doing.step
    return f"step {doing.step}, for {words.duration(max(now - doing.since, timedelta()))}"


def _workers(found: Activity, now: datetime) -> tuple[WorkerLine, ...]:
    owners = dict[str, list[HeldLease]]()
    for lease in found.leases:
        owners.setdefault(lease.owner, []).append(lease)
    return tuple(_worker(owner, held, found, now) for owner, held in owners.items())


def _worker(owner: str, held: Sequence[HeldLease], found: Activity, now: datetime) -> WorkerLine:
    host, colon, process = owner.rpartition(":")
    runs = {run.run_id: run for run in found.open_runs}
    last = max(lease.expires_at for lease in held) - timedelta(seconds=found.lease_seconds)
    silent = max(now - last, timedelta())
    is_expired = any(lease.is_expired for lease in held)
    heard = f"last heard from {words.duration(silent)} ago"
    return WorkerLine(
        host=host if colon else owner,
        process=process if colon else "",
        runs=tuple(_held(lease.run_id, runs.get(lease.run_id), found, now) for lease in held),
        health=f"silent: {heard}; another worker may take its runs" if is_expired else f"alive: {heard}",
        is_expired=is_expired,
    )


def _held(run_id: str, run: RunRecord | None, found: Activity, now: datetime) -> HeldRun:
    doing = found.does(run_id)
    name = f"{run.request.project_id}, {run.request.period}" if run is not None else words.short(run_id)
    return HeldRun(name, addresses.run(run_id), doing.waits_for or _at_work(doing, now))


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
