"""Which runs take the records of a step: what it has written counts by its StepCompleted event, and by nothing else."""

import pytest

from clew.diagnostics import ClewError
from clew.events import NewEvent, RunCancelled, RunCompleted, RunFailed, RunStarted, StepCompleted
from clew.events.bodies import EventBody
from clew.events.reducer import project_run
from clew.events.values import ArtifactRef
from clew.runs.leases import Lease
from clew.runs.limits import Accepted
from clew.runs.stores import RunStores
from tests.runs.runs_histories import FAILURE, START, request, steps

RECORDS = NewEvent(
    StepCompleted((ArtifactRef("storage:runs/run-1/changes/10-10/part.json", "trace-part"),), {"rows_updated": 3}),
    START,
    step_id="10",
)


def running(stores: RunStores) -> Lease:
    stores.intake.create(request(), run_id="run-1", approval_required=False, decide=lambda _: Accepted())
    claim = stores.leases.acquire("run-1", owner="tests", ttl_s=60)
    assert claim is not None
    stores.writer.append("run-1", [NewEvent(RunStarted(steps(1)), START)], token=claim.lease.token)
    return claim.lease


def artifacts(stores: RunStores) -> int:
    return len(project_run("run-1", stores.reader.events("run-1")).artifacts)


def refused(stores: RunStores, token: int | None) -> str:
    with pytest.raises(ClewError) as error:
        stores.writer.append("run-1", [RECORDS], token=token)
    assert artifacts(stores) == 0
    return error.value.code


def test_a_run_that_is_running_takes_records_from_the_worker_that_drives_it(stores: RunStores) -> None:
    lease = running(stores)
    stores.writer.append("run-1", [RECORDS], token=lease.token)
    assert artifacts(stores) == 1


@pytest.mark.parametrize("end", [RunCompleted(), RunFailed(FAILURE, "10"), RunCancelled("s-1")])
def test_a_run_that_has_ended_takes_no_records(stores: RunStores, end: EventBody) -> None:
    lease = running(stores)
    stores.writer.append("run-1", [NewEvent(end, START)], token=lease.token)
    assert refused(stores, lease.token) == "EventAfterTheEnd"


def test_a_run_that_no_worker_has_started_takes_no_records(stores: RunStores) -> None:
    stores.intake.create(request(), run_id="run-1", approval_required=False, decide=lambda _: Accepted())
    assert refused(stores, None) == "UnfencedWrite"


def test_a_worker_that_has_lost_its_run_writes_no_records(stores: RunStores) -> None:
    lost = running(stores)
    stores.leases.release(lost, seen_seq=0)
    assert stores.leases.acquire("run-1", owner="another", ttl_s=60) is not None
    assert refused(stores, lost.token) == "LateWrite"


def test_a_run_that_does_not_exist_takes_no_records(stores: RunStores) -> None:
    with pytest.raises(ClewError) as error:
        stores.writer.append("run-1", [RECORDS], token=1)
    assert error.value.code == "RunNotFound"
