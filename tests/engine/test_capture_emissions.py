"""What postlude jobs send: it is on record whatever comes after it, and nothing of it is overwritten."""

import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import clew
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.captures.queue import CaptureRecord, CaptureStatus
from clew.captures.removal import ExpiredCaptures
from clew.captures.worker import CaptureWorker
from clew.runs.clock import utc_now
from tests.engine.capture_workspaces import write_people

PROJECT = """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Drop, type: delete, selector: amount < 0, assign: kept, after_request: [
      {name: fails-late, tasks: [
        {take: 5}, {serialize_rowset: {format: parquet, mode: view}}, {emit_training_log: {sink: log, ttl_days: 1}},
        {emit_training_log: {sink: log, ttl_days: 3}}, {emit_capture_store: {store: shelf, ttl_days: 2}},
        {filter: 'TO_INTEGER(city) > 0'}, {describe: {}}]},
      {name: retried, tasks: [
        {take: 3}, {serialize_rowset: {format: arrow, mode: raw}}, {emit_training_log: {sink: log}},
        {emit_capture_store: {store: shelf}}, {emit_training_log: {sink: blocked}}]}]}
"""


@pytest.fixture(scope="module")
def sent(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, CaptureRecord]]:
    """The two jobs once they have failed; the second one has been tried as often as the environment allows."""
    del spark
    root = write_people(tmp_path_factory.mktemp("emissions"), PROJECT, people=20)
    (root / "out").mkdir()
    (root / "out" / "blocked").write_text("a file where the sink would make a folder")
    workspace = clew.open(root)
    run = workspace.run("greet", period="2026-01")
    environment = workspace.run_environment
    with open_state(environment) as state:
        worker = CaptureWorker(environment, state, lambda: RunStarter(workspace.files, environment, state).session())
        while not all(record.status.is_over for record in state.captures.of_run(run.id)):
            if not worker.work_once():
                threading.Event().wait(0.05)
        records = state.captures.of_run(run.id)
    names = {str(job["job_id"]): str(job["name"]) for job in run.postlude_jobs}
    return root, {names[record.slot]: record for record in records if record.kind == "job"}


def emissions(record: CaptureRecord) -> list[Any]:
    assert record.outcome.job is not None
    return list(record.outcome.job.emissions)


def test_what_was_sent_before_a_later_task_failed_is_on_record_and_expires(
    sent: tuple[Path, dict[str, CaptureRecord]],
) -> None:
    root, jobs = sent
    job = jobs["fails-late"]
    assert job.outcome.error is not None
    assert (job.status, job.outcome.error.code) == (CaptureStatus.FAILED, "ValueOutOfRange")
    found = emissions(job)
    assert [(each.type, each.status.value, each.attempt, each.rows) for each in found] == [
        ("training_log", "sent", 1, 5),
        ("training_log", "sent", 1, 5),
        ("capture_store", "sent", 1, 5),
    ]
    assert all((root / each.path).exists() for each in found)
    assert job.expires_at == found[0].expires_at == min(each.expires_at for each in found)
    [shelf] = [each.capture_id for each in found if each.capture_id]
    assert clew.open(root).capture(shelf).to_arrow().num_rows == 5


def test_two_emissions_of_a_job_do_not_overwrite_each_other(sent: tuple[Path, dict[str, CaptureRecord]]) -> None:
    root, jobs = sent
    logs = [each for job in jobs.values() for each in emissions(job) if each.sink == "log"]
    assert len({each.path for each in logs}) == len(logs) == 5
    assert all((root / each.path).stat().st_size == each.size for each in logs)


def test_every_attempt_has_its_emissions_on_record(sent: tuple[Path, dict[str, CaptureRecord]]) -> None:
    root, jobs = sent
    job = jobs["retried"]
    assert job.outcome.error is not None
    assert (job.status, job.attempts) == (CaptureStatus.FAILED, 4)
    found = emissions(job)
    assert [(each.sink, each.status.value, each.attempt) for each in found] == [
        (sink, status, attempt)
        for attempt in (1, 2, 3)
        for sink, status in (("log", "sent"), ("shelf", "sent"), ("blocked", "started"))
    ]
    shelves = [each.capture_id for each in found if each.capture_id]
    assert len(set(shelves)) == 3
    assert {each.id for each in clew.open(root).captures()} >= set(shelves)
    named = {root / each.path for record in jobs.values() for each in emissions(record) if each.sink == "log"}
    assert set((root / "out" / "log").rglob("*.parquet")) | set((root / "out" / "log").rglob("*.arrow")) == named


def test_nothing_due_is_taken_for_expired(sent: tuple[Path, dict[str, CaptureRecord]]) -> None:
    root, _ = sent
    environment = clew.open(root).run_environment
    with open_state(environment) as state:
        assert ExpiredCaptures(environment, state).expired(utc_now()) == []
