from datetime import UTC, datetime, timedelta

from clew.runs.limits import Accepted
from clew.runs.stores import RunStores
from clew.store.owner import Owner
from tests.runs.runs_histories import request
from tests.store.store_fixtures import OpenStores

NOON = datetime(2026, 2, 1, 12, tzinfo=UTC)


def submit(stores: RunStores, run_id: str, tenant: str = "default") -> None:
    wanted = request(request_id=run_id, period=run_id, tenant_id=tenant)
    stores.intake.create(wanted, run_id=run_id, approval_required=False, decide=lambda _load: Accepted())


def test_leases_are_listed_with_their_holders_and_whether_they_have_run_out(url: str, open_stores: OpenStores) -> None:
    moment = [NOON]
    stores = open_stores(url, clock=lambda: moment[0])
    submit(stores, "a")
    submit(stores, "b")
    stores.leases.acquire("a", owner="w1", ttl_s=10)
    moment[0] += timedelta(seconds=20)
    stores.leases.acquire("b", owner="w2", ttl_s=10)
    held = [(lease.run_id, lease.owner, lease.is_expired) for lease in stores.activity.leases("dev")]
    assert held == [("a", "w1", True), ("b", "w2", False)]
    assert stores.activity.leases("prod") == ()
    assert stores.activity.leases("dev", tenant_id="another") == ()


def test_the_outbox_is_counted_by_bus(url: str, open_stores: OpenStores) -> None:
    stores = open_stores(url, clock=lambda: NOON, buses=("hook", "log"))
    other = open_stores(url, clock=lambda: NOON, buses=("hook", "log"), owner=Owner(tenant_id="another"))
    submit(stores, "a")
    submit(stores, "c")
    submit(other, "b", tenant="another")
    (first, _) = stores.outbox.take("hook", limit=5, hold_s=1)
    stores.outbox.bury(first.entry_id, error="no answer")
    stores.outbox.postpone(stores.outbox.take("log", limit=1, hold_s=1)[0].entry_id, error="busy", delay_s=5)
    found = {load.bus: load for load in stores.activity.outbox("dev", tenant_id="default")}
    assert (found["hook"].waiting, found["hook"].retried, found["hook"].dead) == (1, 0, 1)
    assert (found["log"].waiting, found["log"].retried, found["log"].dead) == (2, 1, 0)
    assert found["hook"].oldest is not None
    assert found["log"].last_error == "busy"
    mine = stores.activity.outbox("dev", tenant_id="another")
    assert [load.waiting for load in mine] == [1, 1]
