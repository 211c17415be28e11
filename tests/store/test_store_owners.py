"""One state store, several environments: what belongs to one is neither sent, listed nor taken by another."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from clew.bus import EventBus
from clew.bus.dispatcher import Deliveries
from clew.events import AlertRaised, NewEvent, RunFailed
from clew.events.values import Failure, FailureCategory
from clew.runs.limits import Accepted
from clew.runs.stores import OutboxEntry, RunStores
from clew.store.owner import Owner
from tests.runs.runs_histories import START, request
from tests.runs.runs_workers import FakeExecutors, SetClock, Site
from tests.store.store_fixtures import OpenStores

OWNERS = {
    "acme": Owner(tenant_id="acme", environment_id="prod"),
    "another tenant": Owner(tenant_id="globex", environment_id="prod"),
    "another environment": Owner(tenant_id="acme", environment_id="staging"),
}
OTHERS = ("another tenant", "another environment")


class Kept:
    """A bus that takes everything and keeps it."""

    def __init__(self) -> None:
        self.entries: list[OutboxEntry] = []

    def deliver(self, entry: OutboxEntry) -> None:
        self.entries.append(entry)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def handles(url: str, open_stores: OpenStores, clock: SetClock) -> dict[str, RunStores]:
    """The same store, opened for each environment; all of them call their bus "hook"."""
    return {name: open_stores(url, owner=owner, buses=("hook",), clock=clock) for name, owner in OWNERS.items()}


def submit(stores: RunStores, whose: str) -> None:
    owner = OWNERS[whose]
    wanted = request(request_id=whose, period=whose, tenant_id=owner.tenant_id, environment_id=owner.environment_id)
    stores.intake.create(wanted, run_id=whose, approval_required=False, decide=lambda _load: Accepted())


@pytest.mark.parametrize("other", OTHERS)
def test_events_reach_the_buses_of_their_own_environment_only(
    handles: dict[str, RunStores], clock: SetClock, other: str
) -> None:
    submit(handles["acme"], "acme")
    submit(handles[other], other)
    for whose in ("acme", other):
        kept = Kept()
        buses: dict[str, EventBus] = {"hook": kept}
        site = Site(handles[whose], FakeExecutors(), clock=clock, buses=buses)
        assert site.dispatcher.deliver_due() == Deliveries(delivered=1)
        assert [entry.run.run_id for entry in kept.entries] == [whose]


@pytest.mark.parametrize("other", OTHERS)
def test_dead_letters_are_listed_and_replayed_by_their_own_environment_only(
    handles: dict[str, RunStores], other: str
) -> None:
    submit(handles["acme"], "acme")
    (entry,) = handles["acme"].outbox.take("hook", limit=5, hold_s=60)
    handles[other].outbox.delivered([entry.entry_id])
    handles[other].outbox.bury(entry.entry_id, error="not theirs")
    assert handles["acme"].outbox.dead_letters() == ()
    handles["acme"].outbox.bury(entry.entry_id, error="410")
    assert handles[other].outbox.dead_letters() == ()
    assert handles[other].outbox.replay() == 0
    assert handles[other].outbox.replay(entry_ids=[entry.entry_id]) == 0
    assert handles["acme"].outbox.dead_letters(tenant_id="globex") == ()
    (letter,) = handles["acme"].outbox.dead_letters(tenant_id="acme")
    assert letter.error == "410"
    assert handles["acme"].outbox.replay() == 1


@pytest.mark.parametrize("other", OTHERS)
def test_an_event_that_another_environment_writes_does_not_go_to_its_buses(
    handles: dict[str, RunStores], other: str
) -> None:
    submit(handles["acme"], "acme")
    alert = NewEvent(AlertRaised("DEAD_LETTER", "P2", "look"), START, step_id="ALERT:DEAD_LETTER")
    handles[other].writer.append("acme", [alert])
    assert handles[other].outbox.take("hook", limit=5, hold_s=1) == ()
    assert [entry.event.run_seq for entry in handles["acme"].outbox.take("hook", limit=5, hold_s=1)] == [1]


@pytest.mark.parametrize("other", OTHERS)
def test_a_worker_takes_and_projects_runs_of_its_own_environment_only(
    handles: dict[str, RunStores], other: str
) -> None:
    submit(handles["acme"], "acme")
    name = OWNERS[other].environment_id
    assert handles[other].snapshots.behind(10) == ()
    assert handles["acme"].snapshots.behind(10) == ("acme",)
    assert handles[other].leases.claim(name, owner="w", ttl_s=30, max_running=9) is None
    assert handles[other].catalog.load(name).queued == 0
    assert handles["acme"].leases.claim("prod", owner="w", ttl_s=30, max_running=9) is not None


def test_runs_of_another_tenant_take_no_place(handles: dict[str, RunStores]) -> None:
    """The same name for an environment of another tenant means another queue."""
    submit(handles["acme"], "acme")
    assert handles["acme"].leases.claim("prod", owner="w", ttl_s=30, max_running=1) is not None
    submit(handles["another tenant"], "another tenant")
    claim = handles["another tenant"].leases.claim("prod", owner="w", ttl_s=30, max_running=1)
    assert claim is not None
    assert claim.run.run_id == "another tenant"


def test_entries_that_an_older_version_wrote_belong_to_the_environment_of_their_run(
    url: str, open_stores: OpenStores, clock: SetClock
) -> None:
    stores = open_stores(url, owner=OWNERS["acme"], buses=("hook",), clock=clock)
    submit(stores, "acme")
    lease = stores.leases.acquire("acme", owner="w", ttl_s=30)
    assert lease is not None
    failed = RunFailed(Failure("X", "m", FailureCategory.USER))
    stores.writer.append("acme", [NewEvent(failed, START + timedelta(1))], token=lease.lease.token)
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        connection.exec_driver_sql("DROP INDEX ix_outbox_due")
        connection.exec_driver_sql("ALTER TABLE outbox DROP COLUMN tenant_id")
        connection.exec_driver_sql("ALTER TABLE outbox DROP COLUMN environment_id")
        connection.exec_driver_sql("CREATE INDEX ix_outbox_due ON outbox (sink, due_at, entry_id)")
        connection.exec_driver_sql("DROP TABLE ledger")
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("DROP FUNCTION ledger_guard")
        connection.exec_driver_sql("DELETE FROM schema_version WHERE version >= 8")
    engine.dispose()
    assert open_stores(url, owner=OWNERS["another tenant"]).outbox.take("hook", limit=5, hold_s=1) == ()
    again = open_stores(url, owner=OWNERS["acme"], clock=clock)
    assert [entry.event.run_seq for entry in again.outbox.take("hook", limit=5, hold_s=1)] == [1, 2]
