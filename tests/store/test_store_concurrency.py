import pytest

from clew.events import AlertRaised, verify_chain
from clew.runs.limits import Accepted
from clew.runs.stores import RunStores
from tests.runs.runs_histories import request
from tests.store.seals import KEY, the_key
from tests.store.store_fixtures import OpenStores
from tests.store.store_processes import append_many, fork_context, run_all

WRITERS = 8


@pytest.mark.parametrize("run_ids", [["one"], ["a", "b", "c", "d"]], ids=["one run", "many runs"])
def test_eight_processes_append_without_gaps_losses_or_repetitions(
    url: str, open_stores: OpenStores, run_ids: list[str]
) -> None:
    stores: RunStores = open_stores(url, key=the_key)
    for run_id in run_ids:
        wanted = request(request_id=run_id, period=run_id)
        stores.intake.create(wanted, run_id=run_id, approval_required=False, decide=lambda _: Accepted())
    context = fork_context()
    count = 40 // len(run_ids)
    barrier = context.Barrier(WRITERS)
    run_all(context, append_many, [(url, run_ids, writer, count, barrier) for writer in range(WRITERS)])

    for run_id in run_ids:
        events = stores.reader.events(run_id)
        total = 1 + WRITERS * 2 * count
        assert [event.run_seq for event in events] == list(range(1, total + 1))
        messages = [event.body.message for event in events if isinstance(event.body, AlertRaised)]
        assert len(set(messages)) == len(messages) == WRITERS * 2 * count
        for writer in range(WRITERS):
            own = [int(m.split(":")[1]) for m in messages if m.startswith(f"{writer}:")]
            assert own == sorted(own)
        run = stores.catalog.run(run_id)
        assert run.last_seq == total
        report = verify_chain(stores.reader.raw_events(run_id), key=KEY, last_seq=total, last_hash=run.last_hash)
        assert report.is_intact
