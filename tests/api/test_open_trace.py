"""Opening the trace of a run."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from clew.api.run_view import RunReader, RunView
from clew.api.state import open_state
from clew.definitions import Environment
from clew.diagnostics import UserError
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.events.values import PlanRef
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunRecord, RunRequest
from clew.trace.run_trace import open_trace


def environment(root: Path) -> RunEnvironment:
    return RunEnvironment("dev", Environment(), root)


def view(status: RunStatus) -> RunView:
    request = RunRequest(project_id="p", plan=PlanRef("p", "1"), period="2026-01", request_id="r")
    record = RunRecord(
        run_id="run",
        request=request,
        status=status,
        approval_pending=False,
        last_seq=1,
        created_at=datetime(2026, 1, 31, tzinfo=UTC),
    )
    return RunView(record, RunSnapshot("run", status=status), None)


@pytest.mark.parametrize("status", [RunStatus.PENDING, RunStatus.APPROVED, RunStatus.RUNNING, RunStatus.PAUSED])
def test_the_trace_of_a_run_that_goes_on_is_refused(tmp_path: Path, status: RunStatus) -> None:
    with pytest.raises(UserError) as refused:
        open_trace(view(status), environment(tmp_path))
    assert refused.value.code == "RunNotFinished"
    assert status.value in refused.value.diagnostic.message


def test_the_trace_of_a_run_that_does_not_exist_is_refused_by_name(tmp_path: Path) -> None:
    place = environment(tmp_path)
    with open_state(place) as state, pytest.raises(UserError) as refused:
        RunReader(state, place).view("1234")
    assert refused.value.code == "RunNotFound"
    assert "1234" in refused.value.diagnostic.message
