"""Mistakes that the simulation must find: each takes away something that keeps runs safe."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

import clew.bus.dispatcher
import clew.gc.garbage
import clew.gc.survey
import clew.runs.projector
import clew.runs.signal_service
import clew.storage.drafts
import clew.store.captures
import clew.store.events
import clew.store.leases
import clew.store.outbox
import clew.store.reading
import tests.simulation.engine
from clew.events.bodies import RunRetried
from clew.runs.active_run import Heartbeat
from clew.storage.removals import GRACE
from clew.store.schema import outbox, snapshots
from tests.simulation.simulated_store import DatabaseFile
from tests.simulation.world import Outcome, simulate


@dataclass(frozen=True)
class Mutant:
    """A mistake, and how to make it."""

    name: str
    make: Callable[["Patches"], None]
    first: int = 1
    """Where the search begins."""
    weather: Mapping[str, float] = field(default_factory=dict)
    """How likely faults are that it needs, where that differs from `RATES`."""

    def simulated(self, seed: int, file: DatabaseFile) -> Outcome:
        """A seed in the weather in which the mistake shows soon. It must have been made."""
        return simulate(seed, file, rate=STORMY, weather=self.weather)

    @property
    def tried(self) -> range:
        """The seeds among which it must be found."""
        return range(self.first, self.first + MOST_SEEDS)


STORMY = 3.0
"""Mistakes show sooner where faults happen more often."""
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


def _captures_have_no_fence(patches: Patches) -> None:
    """Whoever has had a capture may end it."""

    def held(self: Any, connection: Any, lease: Any, values: dict[str, object]) -> bool:
        return bool(self._set(connection, lease.record.capture_id, values))

    patches.put(clew.store.captures.SqlCaptureStore, "_held", held)


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
    patches.put(clew.gc.garbage, "GRACE", GRACE * 0)


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


def _periods_are_shared(patches: Patches) -> None:
    """Taking a run does not occupy its period."""
    before: Any = None

    def take(connection: Any, run: Any, **rest: Any) -> Any:
        return before(connection, run, **{**rest, "slot_held": None})

    before = patches.put(clew.store.leases, "_take", take)


MUTANTS = (
    Mutant("the fence of events is left out", _no_fence_at_events, 1, {"freeze": 0.02}),
    Mutant("leases are not renewed", _lease_not_renewed, 101),
    Mutant("the token stays the same", _token_is_not_raised, 151),
    Mutant("signals take runs that are held", _held_runs_are_taken, 201),
    Mutant("attempts share a name", _attempts_share_a_name, 251, {"freeze": 0.02}),
    Mutant("the watermark is off by one", _watermark_off_by_one, 301),
    Mutant("the fold skips an event", _fold_skips_an_event, 351),
    Mutant("older snapshots are saved", _older_snapshots_are_saved, 401),
    Mutant("entries leave the outbox before delivery", _removed_before_delivery, 451),
    Mutant("dead letters are lost", _dead_letters_are_lost, 501),
    Mutant("gc forgets a part that is named", _gc_forgets_references, 551),
    Mutant("signals are applied twice", _signals_are_applied_again, 651),
    Mutant("captures have no fence", _captures_have_no_fence, 751, {"freeze": 0.02}),
    Mutant("periods are shared", _periods_are_shared, 851),
)
