"""Points are frozen when the run passes them, not when it ends."""

import threading
from pathlib import Path

from pyspark.sql import SparkSession

import clew
from clew.api.signalling import send_signal
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.captures.worker import CaptureWorker
from clew.definitions import capture_wishes_of_data
from clew.events.bodies import StepCompleted
from clew.events.envelope import StoredEvent
from clew.runs.signals import SignalType
from tests.engine.capture_workspaces import write_people

PROJECT = """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Drop, type: delete, selector: amount < 0, assign: kept, after_request: [
      {name: look, tasks: [{describe: {columns: [amount]}}]}]}
  - {seq: 2, name: Write, type: output, arguments: {destination: {location: {format: csv, path: out/people}},
     columns: [id, city]}}
  - {seq: 3, name: Empty, type: delete, selector: amount >= 0, assign: emptied}
"""


def test_a_run_that_is_paused_behind_a_breakpoint_has_its_tickets(spark: SparkSession, tmp_path: Path) -> None:
    del spark
    root = write_people(tmp_path, PROJECT, people=20)
    workspace = clew.open(root)
    environment = workspace.run_environment
    with open_state(environment) as state:
        starter = RunStarter(workspace.files, environment, state)
        run = starter.submit("greet", "2026-01", captures=capture_wishes_of_data(["kept", "emptied"], "captures"))

        def pause(event: StoredEvent) -> None:
            if isinstance(event.body, StepCompleted) and event.step_id == "1":
                send_signal(state, environment, run.run_id, SignalType.PAUSE, reason="to look at it")

        status = starter.worker(on_event=pause).run_one(run.run_id, threading.Event())
        assert status is not None
        assert status.value == "PAUSED"
        paused = state.captures.of_run(run.run_id)
        assert [(each.kind, each.seq, each.frozen is not None) for each in paused] == [
            ("capture", 1, True),
            ("job", 1, True),
            ("capture", 3, False),
        ]
        assert {each.status.value for each in paused} == {"queued"}
        worker = CaptureWorker(environment, state, starter.session)
        assert not worker.work_once(), "nothing is written before the run is over"

        send_signal(state, environment, run.run_id, SignalType.RESUME, reason="seen")
        starter.drive(run.run_id, threading.Event())
        worker.after_run(run.run_id)
        kept, job, emptied = state.captures.of_run(run.run_id)
    assert [each.status.value for each in (kept, job, emptied)] == ["ready"] * 3
    assert kept.frozen is not None
    assert paused[0].frozen is not None
    assert kept.frozen.ticket == paused[0].frozen.ticket
    found = {each.breakpoint: each.to_arrow().num_rows for each in clew.open(root).captures()}
    assert found == {"greet::main::kept": 18, "greet::main::emptied": 0}
