from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa

from clew.diagnostics import UserError
from clew.events import AlertRaised, StoredEvent
from clew.events.reducer import project_run
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.runs.projector import Projector, RunFollower
from clew.runs.signals import Actor, Role, Signal, SignalType
from clew.runs.stores import OutboxEntry, RunStores
from clew.store.schema import run_events
from tests.runs.runs_workers import FakeExecutors, SetClock, Site
from tests.store.store_fixtures import OpenStores


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def site(url: str, open_stores: OpenStores, clock: SetClock) -> Site:
    made = Site(open_stores(url, clock=clock), FakeExecutors(), clock=clock)
    made.submit()
    return made


def alerts(site: Site) -> list[AlertRaised]:
    return [e.body for e in site.stores.reader.events("run-1") if isinstance(e.body, AlertRaised)]


def test_a_projector_goes_on_from_its_watermark(site: Site) -> None:
    reads: list[int] = []

    class Watching:
        def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
            reads.append(after)
            return site.stores.reader.events(run_id, after=after, limit=limit)

    site.projector.catch_up("run-1")
    site.drive()
    reader: Any = Watching()
    fresh = Projector(reader, site.stores.writer, site.stores.snapshots, clock=site.clock)
    saved = site.stores.snapshots.load("run-1")
    assert saved is not None
    projected = fresh.catch_up("run-1")
    assert reads[0] == saved.last_event_seq > 0
    assert projected.snapshot == project_run("run-1", site.stores.reader.events("run-1"))


def test_a_projector_that_dies_between_reading_and_saving_loses_nothing(site: Site) -> None:
    class Dies(Exception):
        pass

    class Dying:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def load(self, run_id: str) -> RunSnapshot | None:
            snapshot: RunSnapshot | None = self.inner.load(run_id)
            return snapshot

        def save(self, snapshot: RunSnapshot) -> None:
            raise Dies

        def behind(self, limit: int, *, after: str = "") -> tuple[str, ...]:
            runs: tuple[str, ...] = self.inner.behind(limit, after=after)
            return runs

    dying: Any = Dying(site.stores.snapshots)
    with pytest.raises(Dies):
        Projector(site.stores.reader, site.stores.writer, dying, clock=site.clock).catch_up("run-1")
    assert site.stores.snapshots.behind(5) == ("run-1",)
    assert site.projector.catch_up("run-1").snapshot.last_event_seq == 1
    assert site.stores.snapshots.behind(5) == ()


def test_the_lag_is_measured_and_above_five_seconds_an_alert_is_raised_once(site: Site, clock: SetClock) -> None:
    clock.forward(1)
    assert site.projector.catch_up("run-1").lag.total_seconds() == 1
    assert alerts(site) == []
    site.submit("r-2")
    clock.forward(6)
    assert site.projector.catch_up("run-2").lag.total_seconds() == 6
    assert site.projector.catch_up("run-2").lag.total_seconds() == 0
    (alert,) = [e.body for e in site.stores.reader.events("run-2") if isinstance(e.body, AlertRaised)]
    assert (alert.alert, alert.severity, alert.details["lag_ms"]) == ("PROJECTOR_LAG_HIGH", "P2", 6000)


def test_the_lag_is_measured_by_the_clock_of_the_store(url: str, open_stores: OpenStores) -> None:
    """The clock of the machine that projects is an hour ahead of the store's."""
    ahead = SetClock()
    ahead.forward(3600)
    site = Site(open_stores(url, clock=SetClock()), FakeExecutors(), clock=ahead)
    site.submit()
    assert site.projector.catch_up("run-1").lag.total_seconds() == 0
    assert alerts(site) == []


class Holey:
    """A reader that does not see some of the events yet."""

    def __init__(self, inner: Any, *missing: int) -> None:
        self.inner = inner
        self.missing = set(missing)

    def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> Sequence[StoredEvent]:
        events: Sequence[StoredEvent] = self.inner.events(run_id, after=after, limit=limit)
        return tuple(event for event in events if event.run_seq not in self.missing)

    def now(self) -> datetime:
        moment: datetime = self.inner.now()
        return moment


def test_a_gap_halts_the_projection_makes_it_stale_and_raises_an_alert(site: Site) -> None:
    site.drive()
    stores: RunStores = replace(site.stores)
    delete_saved = stores.snapshots.load("run-1")
    assert delete_saved is not None
    site.submit("r-2")
    site.drive("run-2")
    holey: Any = Holey(stores.reader, 4)
    memory: Any = Memory()
    projector = Projector(holey, stores.writer, memory, clock=site.clock)
    projected = projector.catch_up("run-1")
    assert projected.is_stale
    assert projected.snapshot.last_event_seq == 3
    (alert,) = alerts(site)
    assert (alert.alert, alert.severity) == ("PROJECTOR_GAP_DETECTED", "P1")
    assert alert.details == {"expected_seq": 4, "found_seq": 5}
    assert projector.catch_up("run-1").is_stale
    assert len(alerts(site)) == 1
    holey.missing.clear()
    closed = projector.catch_up("run-1")
    assert not closed.is_stale
    assert closed.snapshot.status is RunStatus.COMPLETED


class Memory:
    """Snapshots that are kept nowhere else."""

    def __init__(self) -> None:
        self.saved: dict[str, RunSnapshot] = {}

    def load(self, run_id: str) -> RunSnapshot | None:
        return self.saved.get(run_id)

    def save(self, snapshot: RunSnapshot) -> None:
        self.saved[snapshot.run_id] = snapshot


def test_a_stale_follower_catches_up_by_fetching_the_snapshot(site: Site) -> None:
    site.drive()
    events = site.stores.reader.events("run-1")
    follower = RunFollower("run-1")
    follower.feed(*events[:2], *events[5:7])
    stale = [follower.is_stale]
    follower.resync(site.projector)
    stale.append(follower.is_stale)
    assert stale == [True, False]
    assert follower.snapshot == project_run("run-1", events)


def test_looking_at_a_run_saves_nothing_and_raises_no_alert(site: Site, clock: SetClock) -> None:
    clock.forward(100)
    assert site.projector.look("run-1").snapshot.status is RunStatus.PENDING
    assert site.stores.snapshots.load("run-1") is None
    assert alerts(site) == []


def test_all_runs_that_are_behind_are_brought_up_to_date(site: Site) -> None:
    for number in range(3):
        site.submit(f"more {number}")
    assert len(site.projector.catch_up_all()) == 4
    assert site.projector.catch_up_all() == ()


def test_a_signal_leaves_no_lag_behind_for_the_next_worker(site: Site, clock: SetClock) -> None:
    site.drive()
    told = [
        Signal(signal_id="refused", run_id="run-1", type=SignalType.PAUSE),
        Signal(signal_id="again", run_id="run-1", type=SignalType.RETRY_RUN),
    ]
    decisions = [site.signals.send(signal, Actor("eve", Role.ADMIN)) for signal in told]
    assert [decision.is_accepted for decision in decisions] == [False, True]
    clock.forward(60)
    assert site.projector.catch_up_all() == ()
    assert alerts(site) == []


def test_an_alert_is_no_lag_of_its_own(site: Site, clock: SetClock) -> None:
    clock.forward(60)
    site.projector.catch_up("run-1")
    assert len(alerts(site)) == 1
    clock.forward(60)
    assert site.projector.catch_up_all() == ()
    site.projector.catch_up("run-1")
    assert len(alerts(site)) == 1


def test_an_event_of_an_unknown_type_stops_neither_snapshots_nor_deliveries_of_other_runs(
    url: str, open_stores: OpenStores
) -> None:
    taken = list[str]()

    class Bus:
        def deliver(self, entry: OutboxEntry) -> None:
            taken.append(entry.run.run_id)

    stores = open_stores(url, buses=("hook",))
    site = Site(stores, FakeExecutors(), buses={"hook": Bus()})
    for number in range(4):
        site.submit(f"r-{number}")
    write_events_of_a_newer_version(url, "run-1", "run-2")
    done = site.projector.catch_up_all(limit=2)
    assert {projected.snapshot.run_id for projected in done} == {"run-3", "run-4"}
    assert stores.snapshots.load("run-4") is not None
    assert stores.snapshots.behind(10) == ("run-1", "run-2")
    with pytest.raises(UserError) as refused:
        site.projector.look("run-1")
    assert refused.value.code == "EventTooNew"
    site.dispatcher.deliver_due()
    assert sorted(taken) == ["run-1", "run-2", "run-3", "run-4"]
    assert stores.outbox.dead_letters() == ()


def write_events_of_a_newer_version(url: str, *run_ids: str) -> None:
    """What a worker with a later release would write, of which this one has not heard."""
    columns = [column.name for column in run_events.c]
    new = {"run_seq": "2", "event_id": "'e-2'", "idempotency_key": "'k-2'", "event_type": "'RunTeleported'"}
    values = ", ".join(new.get(name, name) for name in columns)
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        for run_id in run_ids:
            mine = f"FROM run_events WHERE run_id = '{run_id}'"
            connection.exec_driver_sql(f"INSERT INTO run_events ({', '.join(columns)}) SELECT {values} {mine}")
            connection.exec_driver_sql(f"UPDATE runs SET last_seq = 2 WHERE run_id = '{run_id}'")
            kept = "run_id, sink, attempts, due_at, tenant_id, environment_id"
            copy = f"SELECT 2, {kept} FROM outbox WHERE run_id = '{run_id}'"
            connection.exec_driver_sql(f"INSERT INTO outbox (run_seq, {kept}) {copy}")
    engine.dispose()
