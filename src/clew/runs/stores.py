"""What runs need from a database, as small protocols. `clew.store` implements them for SQLite and PostgreSQL.

Every method that uses the database raises `TransientFailure` if it is unavailable, busy for too long, or full.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Protocol

from clew.deferred import dataclass
from clew.events.envelope import NewEvent, RawEvent, StoredEvent
from clew.events.snapshot import RunSnapshot
from clew.runs.leases import Claim, Lease, LeaseNews, Wait
from clew.runs.limits import Admission, Load
from clew.runs.registry import DatasetRegistry, ProjectRegistry
from clew.runs.request import RunFilter, RunRecord, RunRequest
from clew.runs.secrets import SecretsResolver


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A run that a worker holds."""

    run_id: str
    owner: str
    token: int
    expires_at: datetime
    is_expired: bool
    """Whether its holder has been silent for so long that another worker may take the run."""


@dataclass(frozen=True, slots=True)
class OutboxLoad:
    """What waits for one event bus."""

    bus: str
    waiting: int
    retried: int
    """Those among them that were refused before."""
    dead: int
    oldest: datetime | None
    """When the one that waits longest is due."""
    last_error: str | None


class ActivityReader(Protocol):
    """Reads what is in progress. Changes nothing."""

    def leases(self, environment_id: str, *, tenant_id: str | None = None) -> tuple[HeldLease, ...]:
        """Leases of runs, by owner."""
        ...

    def outbox(self, environment_id: str, *, tenant_id: str | None = None) -> tuple[OutboxLoad, ...]:
        """What waits, by event bus."""
        ...


@dataclass(frozen=True, slots=True)
class RecentSignals:
    """How many signals a run got lately."""

    accepted: int
    """Of all senders."""
    of_sender: int
    """Accepted and refused ones of one sender."""


class History(Protocol):
    """Histories, for those who show them."""

    def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
        """Events of a run in order, from the one behind `after` on."""
        ...

    def now(self) -> datetime:
        """The present moment by the clock of the state store, which also dates the events."""
        ...


class EventReader(History, Protocol):
    """Histories, to be read."""

    def raw_events(self, run_id: str) -> Iterator[RawEvent]:
        """The whole history as it is stored, for verification."""
        ...

    def since_last_continuation(self, run_id: str) -> tuple[StoredEvent, ...]:
        """Events from the last RunContinued on, or all if there is none: enough to continue the run.

        That RunContinued has the references of all those before it.
        """
        ...

    def by_key(self, run_id: str, keys: Collection[str]) -> tuple[StoredEvent, ...]:
        """Events of a run that have one of these idempotency keys."""
        ...

    def recent_signals(self, run_id: str, sender: str, *, seconds: float) -> RecentSignals:
        """How many signals a run got in the last seconds, by the clock of the state store."""
        ...


class EventWriter(Protocol):
    """Histories, to be continued."""

    def append(
        self,
        run_id: str,
        events: Sequence[NewEvent],
        *,
        token: int | None = None,
        expected_seq: int | None = None,
    ) -> tuple[StoredEvent, ...]:
        """Store all of the events or none, each with the next `run_seq`, and return them as stored.

        An event whose idempotency key is there already is not stored again: the stored one is returned. `token` is the
        lease's, refused with `LateWrite` when it is not the newest. With `expected_seq` the run must still end there,
        else `OutOfDate`.
        """
        ...


class RunListing(Protocol):
    """The list of runs, for those who show it."""

    def run(self, run_id: str) -> RunRecord:
        """One run, or `UserError` RunNotFound."""
        ...

    def runs(self, which: RunFilter, *, limit: int = 50, before: RunRecord | None = None) -> tuple[RunRecord, ...]:
        """Runs, newest first; `before` is the last one of the page before."""
        ...


class RunCatalog(RunListing, Protocol):
    """The list of runs."""

    def load(self, environment_id: str) -> Load:
        """How busy an environment is."""
        ...

    def deleted(self) -> frozenset[str]:
        """The runs that were deleted, by id."""
        ...


@dataclass(frozen=True, slots=True)
class Intake:
    """The outcome of a request."""

    run: RunRecord
    admission: Admission | None
    """None if the request was accepted before; the run is the first one."""


class RunIntake(Protocol):
    """Adds and removes whole runs."""

    def create(
        self, request: RunRequest, *, run_id: str, approval_required: bool, decide: Callable[[Load], Admission]
    ) -> Intake:
        """Record a request and its admission in one transaction, at most once per request.

        `decide` sees the load while no other request of the environment can change it. A request that was rejected
        before is decided again and keeps its run id.
        """
        ...

    def delete(self, run_id: str, *, deleted_by: str, reason: str) -> None:
        """Remove a run that has ended, with everything that belongs to it, except the record that it existed."""
        ...


class LeaseStore(Protocol):
    """Who drives which run."""

    def claim(self, environment_id: str, *, owner: str, ttl_s: float, max_running: int) -> Claim | None:
        """Take the run that has waited longest and may continue now, or None. No two callers get the same run."""
        ...

    def claim_run(self, run_id: str, *, owner: str, ttl_s: float, max_running: int) -> Claim | Wait:
        """Take a specific run under the rules of the queue: a run that has not started needs a free place, its
        start time and a free period. It need not be the one that has waited longest."""
        ...

    def acquire(self, run_id: str, *, owner: str, ttl_s: float) -> Claim | None:
        """Take a specific run, whatever its state, without starting it; None while another worker holds it."""
        ...

    def keep(self, lease: Lease, *, ttl_s: float) -> LeaseNews:
        """Renew a lease; `LateWrite` if another worker has taken the run."""
        ...

    def check(self, lease: Lease) -> None:
        """Raise `LateWrite` where another worker has taken the run."""
        ...

    def release(self, lease: Lease, *, seen_seq: int) -> None:
        """Return a run to the queue. Signals after `seen_seq` make it need a worker again."""
        ...


class SavedSnapshots(Protocol):
    """Saved snapshots, for those who show them; the watermark of each is its `last_event_seq`."""

    def load(self, run_id: str) -> RunSnapshot | None:
        """The saved snapshot."""
        ...


class SnapshotStore(SavedSnapshots, Protocol):
    """Saved snapshots, to be kept up with the events."""

    def save(self, snapshot: RunSnapshot) -> None:
        """Save a snapshot, unless there is a newer one."""
        ...

    def behind(self, limit: int, *, after: str = "") -> tuple[str, ...]:
        """Runs of the environment with events that their saved snapshot does not know, by id, from `after` on."""
        ...


class AttemptStore(Protocol):
    """Counts the platform's attempts, which no event can, since repeated attempts share their idempotency key."""

    def next_engine_attempt(self, lease: Lease, step_id: str, logical_attempt_id: int) -> int:
        """The number of another platform attempt: 2 the first time, since the first one is not counted here."""
        ...


@dataclass(frozen=True, slots=True)
class OutboxEntry:
    """An event on its way to an event bus."""

    entry_id: int
    bus: str
    attempts: int
    """Failed deliveries so far."""
    run: RunRecord
    event: StoredEvent


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event that a bus rejected every time."""

    entry_id: int
    bus: str
    run_id: str
    run_seq: int
    event_type: str
    attempts: int
    error: str
    dead_since: datetime

    def to_json(self) -> dict[str, object]:
        """The form of `clew dlq --json`."""
        return {
            "id": self.entry_id,
            "sink": self.bus,
            "run_id": self.run_id,
            "run_seq": self.run_seq,
            "event_type": self.event_type,
            "attempts": self.attempts,
            "error": self.error,
            "dead_since": self.dead_since.isoformat(),
        }


class OutboxStore(Protocol):
    """Events of one environment that its event buses have not confirmed.

    Written with the events themselves, in one transaction.
    """

    def take(self, bus: str, *, limit: int, hold_s: float) -> tuple[OutboxEntry, ...]:
        """Entries that are due, oldest first, held for this caller for a while."""
        ...

    def delivered(self, entry_ids: Collection[int]) -> None:
        """The bus has confirmed these."""
        ...

    def postpone(self, entry_id: int, *, error: str, delay_s: float) -> None:
        """The bus rejected this one; retry after a while."""
        ...

    def bury(self, entry_id: int, *, error: str) -> None:
        """Stop retrying this one until it is replayed."""
        ...

    def dead_letters(
        self, *, bus: str | None = None, tenant_id: str | None = None, limit: int = 100
    ) -> tuple[DeadLetter, ...]:
        """Dead letters, oldest first; none for a tenant other than the environment's."""
        ...

    def replay(
        self, *, entry_ids: Collection[int] | None = None, bus: str | None = None, tenant_id: str | None = None
    ) -> int:
        """Send all matching dead letters again. Returns how many there were."""
        ...


@dataclass(frozen=True, slots=True)
class RunStores:
    """Everything in a state store, for the wiring. A part takes only what it needs."""

    reader: EventReader
    writer: EventWriter
    catalog: RunCatalog
    intake: RunIntake
    leases: LeaseStore
    snapshots: SnapshotStore
    attempts: AttemptStore
    outbox: OutboxStore
    activity: ActivityReader


@dataclass(frozen=True, slots=True)
class RunReading:
    """What it takes to show runs. A state store can give this without being opened for writing."""

    history: History
    listing: RunListing
    snapshots: SavedSnapshots


class RunState(Protocol):
    """Everything about runs that a state store keeps. Packages above add what they keep beside it."""

    @property
    def reading(self) -> RunReading:
        """What it takes to show runs."""
        ...

    @property
    def stores(self) -> RunStores:
        """Histories, leases, the queue and the outbox."""
        ...

    @property
    def datasets(self) -> DatasetRegistry:
        """Versions of registered datasets."""
        ...

    @property
    def projects(self) -> ProjectRegistry:
        """Versions of activated projects."""
        ...

    @property
    def secrets(self) -> SecretsResolver:
        """Looks secrets up by reference."""
        ...
