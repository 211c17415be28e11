"""Mistakes that the simulation must find: each takes away something that keeps runs safe."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

import clew.bus.dispatcher
import clew.captures.removal
import clew.captures.worker
import clew.gc.garbage
import clew.gc.survey
import clew.runs.budget
import clew.runs.driver
import clew.runs.projector
import clew.runs.signal_service
import clew.runs.step_group
import clew.storage.drafts
import clew.store.appending
import clew.store.captures
import clew.store.catalog
import clew.store.events
import clew.store.leases
import clew.store.outbox
import clew.store.reading
import clew.store.registry
import tests.simulation.engine
from clew.diagnostics import TransientFailure
from clew.events.bodies import RunRetried
from clew.runs.active_run import Heartbeat
from clew.runs.leases import Lease
from clew.store.schema import outbox, snapshots


@dataclass(frozen=True)
class Mutant:
    """A mistake, and how to make it."""

    name: str
    make: Callable[["Patches"], None]
    found_as: str = ""
    """The invariant that tells."""
    first: int = 1
    """Where the search begins."""

    @property
    def tried(self) -> range:
        """The seeds among which it must be found."""
        return range(self.first, self.first + MOST_SEEDS)


MOST_SEEDS = 10
"""How many seeds a search may take."""


class Patches:
    """Exchanges attributes, and puts them back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def put(self, owner: Any, name: str, value: object) -> Any:
        """Returns what was there."""
        before = vars(owner)[name]
        setattr(owner, name, value)
        self._undo.append(lambda: setattr(owner, name, before))
        return before

    def undo(self) -> None:
        for each in reversed(self._undo):
            each()


@contextmanager
def mutated(mutant: Mutant) -> Iterator[None]:
    """Make the mistake for a while."""
    patches = Patches()
    try:
        mutant.make(patches)
        yield
    finally:
        patches.undo()


def _no_fence_at_events(patches: Patches) -> None:
    """Appending does not look at the token."""
    before: Any = None

    def checked(self: Any, connection: Any, run_id: str, token: int | None) -> Any:
        del token
        return before(self, connection, run_id, None)

    before = patches.put(clew.store.events.SqlEventWriter, "_checked_run", checked)


def _no_fence_at_registration(patches: Patches) -> None:
    """Registering a version does not look at the token."""
    before: Any = None

    def register(self: Any, registration: Any, lease: Lease | None = None) -> Any:
        del lease
        return before(self, registration, None)

    before = patches.put(clew.store.registry.SqlDatasetRegistry, "register", register)


def _lease_not_renewed(patches: Patches) -> None:
    """The heartbeat renews nothing, and a run is taken although it is held."""
    patches.put(Heartbeat, "beat", lambda _self: None)
    _no_fence_at_events(patches)


def _token_is_not_raised(patches: Patches) -> None:
    """Who takes a run gets the token of the one before."""
    before: Any = None

    def take(connection: Any, run: Any, **rest: Any) -> Any:
        claim = before(connection, run, **rest)
        connection.execute(
            sa.text("UPDATE runs SET token = :token WHERE run_id = :run"),
            {"token": max(1, run.token), "run": run.run_id},
        )
        return replace(claim, lease=replace(claim.lease, token=max(1, run.token)))

    before = patches.put(clew.store.leases, "_take", take)


def _held_runs_are_taken(patches: Patches) -> None:
    """Signals take a run from its worker, which is still allowed to write."""
    _no_fence_at_events(patches)
    before: Any = None

    def acquire(self: Any, run_id: str, *, owner: str, ttl_s: float) -> Any:
        with self._database.write() as connection:
            connection.execute(sa.text("UPDATE runs SET lease_expires_at = NULL WHERE run_id = :run"), {"run": run_id})
        return before(self, run_id, owner=owner, ttl_s=ttl_s)

    before = patches.put(clew.store.leases.SqlLeases, "acquire", acquire)


def _attempts_share_a_name(patches: Patches) -> None:
    """All attempts at a part write to the same folder."""
    for module in (clew.storage.drafts, tests.simulation.engine):
        patches.put(module, "attempt_name", lambda: "attempt")


def _watermark_off_by_one(patches: Patches) -> None:
    """A saved snapshot seems to know one event less than it does, which is then applied again."""
    before: Any = None

    def load(self: Any, run_id: str) -> Any:
        found = before(self, run_id)
        return found and replace(found, last_event_seq=found.last_event_seq - 1)

    before = patches.put(clew.store.reading.SqlSavedSnapshots, "load", load)


def _fold_skips_an_event(patches: Patches) -> None:
    """What is saved says that it knows an event which it has not applied."""
    before: Any = None

    def advance(snapshot: Any, events: Any) -> Any:
        kept = list(events)
        progress = before(snapshot, kept)
        if len(kept) > 2:
            short = before(snapshot, kept[:-1])
            skipped = replace(short.snapshot, last_event_seq=progress.snapshot.last_event_seq)
            return replace(progress, snapshot=skipped)
        return progress

    before = patches.put(clew.runs.projector, "advance", advance)


def _older_snapshots_are_saved(patches: Patches) -> None:
    """Saving a snapshot does not look whether there is a newer one."""

    def save(self: Any, snapshot: Any) -> None:
        with self._database.write() as connection:
            connection.execute(sa.delete(snapshots).where(snapshots.c.run_id == snapshot.run_id))
            values = {"last_event_seq": snapshot.last_event_seq, "document": snapshot.to_json()}
            connection.execute(sa.insert(snapshots).values(run_id=snapshot.run_id, **values))

    patches.put(clew.store.events.SqlSnapshots, "save", save)


def _removed_before_delivery(patches: Patches) -> None:
    """Entries leave the outbox when they are taken."""
    before: Any = None

    def take(self: Any, bus: str, *, limit: int, hold_s: float) -> Any:
        entries = before(self, bus, limit=limit, hold_s=hold_s)
        self.delivered([entry.entry_id for entry in entries])
        return entries

    before = patches.put(clew.store.outbox.SqlOutbox, "take", take)


def _dead_letters_are_lost(patches: Patches) -> None:
    """An event that is given up leaves the outbox."""

    def bury(self: Any, entry_id: int, *, error: str) -> None:
        del error
        with self._database.write() as connection:
            connection.execute(sa.delete(outbox).where(outbox.c.entry_id == entry_id))

    patches.put(clew.store.outbox.SqlOutbox, "bury", bury)
    before: Any = None

    def attempt(self: Any, bus: Any, entry: Any) -> Any:
        return before(self, bus, replace(entry, attempts=entry.attempts)) if entry.attempts == 0 else "no answer"

    before = patches.put(clew.bus.dispatcher.OutboxDispatcher, "_attempt", attempt)


def _gc_forgets_references(patches: Patches) -> None:
    """Garbage collection does not see the first part that a run names."""
    before: Any = None

    def folders(snapshot: Any) -> Any:
        return frozenset(sorted(before(snapshot))[1:])

    before = patches.put(clew.gc.survey, "_folders", folders)
    patches.put(clew.gc.garbage, "GRACE", timedelta(0))


def _gc_forgets_readers(patches: Patches) -> None:
    """Garbage collection does not ask which versions runs have read, nor which is the newest."""
    before: Any = None

    def needs(versions: Any, pinned: Any, reads: Mapping[str, Any], kept: Any) -> Any:
        found = before(versions, pinned, dict.fromkeys(reads, ()), kept)
        return replace(found, runs={})

    before = patches.put(clew.gc.garbage, "needs_of", needs)


def _gc_forgets_who_is_loading(patches: Patches) -> None:
    """Garbage collection asks events alone what runs read, also those that have not pinned it yet."""
    patches.put(clew.gc.survey, "_is_loaded", lambda _snapshot: True)


def _gc_trusts_its_journal(patches: Patches) -> None:
    """Garbage collection does not ask the state store which runs were deleted."""
    patches.put(clew.store.catalog.SqlRunCatalog, "deleted", lambda _self: frozenset())


def _signals_are_applied_again(patches: Patches) -> None:
    """Every look at a run finds its accepted signals waiting once more."""
    before: Any = None

    def settle(self: Any, live: Any) -> None:
        waiting = live.snapshot.pending_signals
        before(self, live)
        for signal in waiting:
            if signal.signal == "RETRY_RUN":
                event = self._about(signal, RunRetried("again"))
                live.record(replace(event, logical_attempt_id=2))

    before = patches.put(clew.runs.signal_service.SignalEffects, "settle", settle)


def _retried_without_looking(patches: Patches) -> None:
    """An append that may have gone through is repeated under new keys."""
    before: Any = None

    def append(self: Any, events: Sequence[Any], *, expected_seq: int | None = None) -> Any:
        try:
            return self._writer.append(
                self._lease.run_id, (*self._waiting, *events), token=self._lease.token, expected_seq=expected_seq
            )
        except TransientFailure:
            again = [replace(event, logical_attempt_id=event.logical_attempt_id + 50) for event in events]
            return before(self, again, expected_seq=expected_seq)

    before = patches.put(clew.runs.budget.BudgetedWriter, "append", append)


def _releases_keep_their_token(patches: Patches) -> None:
    """Giving a run back leaves its lease behind for good."""

    def release(self: Any, lease: Lease, *, seen_seq: int) -> None:
        del seen_seq
        with self._database.write() as connection:
            connection.execute(
                sa.text("UPDATE runs SET lease_expires_at = '9999-12-31T00:00:00.000000Z' WHERE run_id = :run"),
                {"run": lease.run_id},
            )

    patches.put(clew.store.leases.SqlLeases, "release", release)


def _captures_have_no_fence(patches: Patches) -> None:
    """Whoever has had a capture may end it."""

    def held(self: Any, connection: Any, lease: Any, values: dict[str, object]) -> bool:
        return bool(self._set(connection, lease.record.capture_id, values))

    patches.put(clew.store.captures.SqlCaptureStore, "_held", held)


def _periods_are_shared(patches: Patches) -> None:
    """Taking a run does not occupy its period."""
    before: Any = None

    def take(connection: Any, run: Any, **rest: Any) -> Any:
        return before(connection, run, **{**rest, "slot_held": None})

    before = patches.put(clew.store.leases, "_take", take)


MUTANTS = (
    Mutant("the fence of events is left out", _no_fence_at_events),
    Mutant("the fence of registrations is left out", _no_fence_at_registration),
    Mutant("leases are not renewed", _lease_not_renewed),
    Mutant("the token stays the same", _token_is_not_raised),
    Mutant("signals take runs that are held", _held_runs_are_taken),
    Mutant("attempts share a name", _attempts_share_a_name),
    Mutant("the watermark is off by one", _watermark_off_by_one),
    Mutant("the fold skips an event", _fold_skips_an_event),
    Mutant("older snapshots are saved", _older_snapshots_are_saved),
    Mutant("entries leave the outbox before delivery", _removed_before_delivery),
    Mutant("dead letters are lost", _dead_letters_are_lost),
    Mutant("gc forgets a part that is named", _gc_forgets_references),
    Mutant("gc forgets readers of versions", _gc_forgets_readers),
    Mutant("signals are applied twice", _signals_are_applied_again),
    Mutant("a commit is repeated without a look", _retried_without_looking),
    Mutant("a run that is given back stays held", _releases_keep_their_token),
    Mutant("captures have no fence", _captures_have_no_fence),
    Mutant("periods are shared", _periods_are_shared),
)
