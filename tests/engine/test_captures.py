"""Captures of real runs: what they hold, what they do not change, and how they come about."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from pyspark.sql import SparkSession

import clew
from clew.api.capture import Capture
from clew.api.run import Run
from clew.api.run_view import RunReader
from clew.api.starting import RunStarter
from clew.api.state import open_state
from clew.captures.requests import KeptColumn
from clew.captures.worker import CaptureWorker
from clew.captures.writing import CaptureWriter, EndedRun, raw_rows, sample_of, write_rows
from clew.definitions import CaptureMode, capture_wishes_of_data
from clew.diagnostics import ClewError
from clew.runs.limits import LeasePolicy
from clew.sample import write_sample
from clew.storage.drafts import draft
from clew.storage.parts import ORDINAL
from clew.storage.root import StorageRoot
from clew.storage.roots import storage_at
from clew.trace.json_values import values_of
from clew.trace.reader import RunTrace
from clew.trace.run_trace import open_trace
from tests.captures.samples import sampled
from tests.engine.capture_workspaces import write_people
from tests.engine.engine_projects import RICH_DATASETS, rich_projects, rich_tables
from tests.engine.engine_runs import PERIOD, RUN_ID, TODAY, in_any_order, run_plan
from tests.trace.random_projects import compiled

BREAKPOINTS = ["gl-close::fx::converted", "gl-close::main::cleaned", "gl-close::main::after_totals"]
CLEANED = "gl-close::main::cleaned"
CRASH = "tests.engine.capture_crash"
WITHOUT_JOBS = """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Greet, type: update, arguments: {assignments: [
      {column: greeting, expression: 'CONCAT("Hello ", name)'}]}}
  - {seq: 2, name: Drop, type: delete, selector: amount < 0, assign: kept}
"""
DROP_ONLY = """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Drop, type: delete, selector: amount < 0, assign: kept}
"""


@dataclass(frozen=True)
class Ledger:
    """The sample, run without captures and with many."""

    root: Path
    plain: Run
    captured: Run
    outputs: dict[str, dict[str, str]]
    trace: RunTrace

    def at(self, breakpoint_name: str, number: int = 0) -> Capture:
        return [each for each in self.captured.captures if each.breakpoint == breakpoint_name][number]


def digests(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def ledger(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    del spark
    root = tmp_path_factory.mktemp("captures") / "ledger"
    write_sample(root)
    workspace = clew.open(root)
    plain = workspace.run("gl-close", period="2026-01")
    outputs = {"plain": digests(root / "out")}
    wishes: list[Any] = [
        *(f"{name}=full_raw" for name in BREAKPOINTS),
        *(f"cleaned={mode}" for mode in ("stats", "sample_raw", "sample_view", "full_view")),
        {"breakpoint": "cleaned", "mode": "sample_view", "sample": {"rows": 10**6}},
        {"breakpoint": "cleaned", "mode": "full_raw", "limits": {"max_rows": 100}},
        {"breakpoint": "cleaned", "mode": "full_view", "limits": {"max_rows": 100}},
        {"breakpoint": "cleaned", "mode": "full_raw", "limits": {"max_bytes": 2500}},
        {"breakpoint": "cleaned", "mode": "full_raw", "limits": {"max_columns": 2}},
        {"breakpoint": "cleaned", "mode": "full_view", "include_columns": ["journal_id", "amount_*"]},
        {"breakpoint": "cleaned", "mode": "full_view", "store": "close-review", "ttl_days": 2},
    ]
    captured = workspace.run("gl-close", period="2026-01", captures=wishes)
    outputs["captured"] = digests(root / "out")
    environment = workspace.run_environment
    with open_state(environment) as state:
        trace = open_trace(RunReader(state, environment).view(captured.id), environment)
    yield Ledger(root, plain, captured, outputs, trace)
    trace.close()


def test_in_dev_every_capture_is_ready_when_the_run_returns(ledger: Ledger) -> None:
    asked = [each for each in ledger.captured.captures if each.record.request is not None]
    assert len(asked) == 14
    assert [each.status for each in asked].count("ready") == 13
    assert ledger.captured.status == "COMPLETED"


@pytest.mark.parametrize("name", BREAKPOINTS)
def test_a_raw_capture_is_the_working_dataset_that_the_trace_rebuilds(ledger: Ledger, name: str) -> None:
    """The trace is read without Spark, from what each step has changed, so that the two ways are independent."""
    capture = ledger.at(name)
    seq = capture.record.seq
    expected = ledger.trace.search(None, at=seq, limit=10_000)
    assert not expected.has_more
    columns = [name for name, _ in expected.columns if name != "entered_by"]
    wanted = [{"_row_id": row.row_id, **{each: row.state[each] for each in columns}} for row in expected.rows]
    found = capture.rows.to_arrow_raw().to_pylist()
    assert found == wanted
    assert capture.to_arrow().num_rows == sum(not row["_deleted"] for row in wanted)


def test_outputs_are_the_same_to_the_byte_with_and_without_captures(ledger: Ledger) -> None:
    def content(files: dict[str, str]) -> list[str]:
        return sorted(digest for name, digest in files.items() if not name.endswith((".crc", "_SUCCESS")))

    assert content(ledger.outputs["plain"]) == content(ledger.outputs["captured"])
    assert len(content(ledger.outputs["plain"])) >= 2
    assert [step.counts for step in ledger.plain.steps] == [step.counts for step in ledger.captured.steps]


def test_each_mode_keeps_what_it_says(ledger: Ledger) -> None:
    stats, sample_raw, sample_view, full_view = (ledger.at(CLEANED, number) for number in (1, 2, 3, 4))
    assert stats.manifest.files == ()
    assert (stats.statistics().rows, stats.manifest.rows) == (1438, 1438)
    assert stats.statistics().column("amount_usd") == full_view.statistics().column("amount_usd")
    assert (sample_raw.manifest.rows, sample_view.manifest.rows, full_view.manifest.rows) == (200, 200, 1438)
    raw = pq.read_table(ledger.root / sample_raw.manifest.folder / sample_raw.manifest.files[0].path)
    assert {ORDINAL, "_deleted"} <= set(raw.column_names)
    view = pq.read_table(ledger.root / full_view.manifest.folder / full_view.manifest.files[0].path)
    assert "_row_id" in view.column_names
    assert not {ORDINAL, "_deleted"} & set(view.column_names)


def test_a_sample_follows_from_the_run_id_and_is_drawn_from_the_view(ledger: Ledger) -> None:
    sample_raw, sample_view, everything = (ledger.at(CLEANED, number) for number in (2, 3, 5))
    ids = ledger.trace.row_ids
    ordinals = [ids.ordinal(row_id) or 0 for row_id in everything.to_arrow()["_row_id"].to_pylist()]
    assert len(ordinals) == 1438
    expected = [ids.row_id(ordinal) for ordinal in sampled(ledger.captured.id, ordinals, 200)]
    assert sample_raw.to_arrow()["_row_id"].to_pylist() == expected
    assert sample_view.to_arrow()["_row_id"].to_pylist() == expected
    assert sample_raw.rows.deleted() == 0


def test_a_sample_is_the_same_on_any_number_of_partitions(spark: SparkSession) -> None:
    rows = spark.range(5000).selectExpr(f"id * 7 AS {ORDINAL}", "id % 10 = 0 AS _deleted", "id AS value")
    expected = sampled("run-1", [n * 7 for n in range(5000) if n % 10], 40)
    for partitions in (1, 2, 13):
        drawn = sample_of(rows.repartition(partitions), "run-1", 40)
        assert [row[0] for row in drawn.select(ORDINAL).collect()] == expected


def test_what_exceeds_a_limit_steps_down_with_a_reason(ledger: Ledger) -> None:
    by_rows, by_rows_view, by_bytes = (ledger.at(CLEANED, number) for number in (6, 7, 8))
    for capture, mode in ((by_rows, "sample_raw"), (by_rows_view, "sample_view")):
        [step] = capture.manifest.degradations
        assert (capture.manifest.mode, step.reason, step.limit) == (mode, "MAX_ROWS", 100)
        assert capture.manifest.rows == 100
    assert [step.reason for step in by_bytes.manifest.degradations] == ["MAX_BYTES", "MAX_BYTES"]
    assert by_bytes.manifest.mode == "stats"
    assert by_bytes.statistics().rows == 1438
    dropped = ledger.at(CLEANED, 9)
    assert (dropped.status, dropped.to_json()["drop_reason"]) == ("dropped", "MAX_COLUMNS")


def test_columns_by_pattern_and_a_store_of_the_environment(ledger: Ledger) -> None:
    some, elsewhere = ledger.at(CLEANED, 10), ledger.at(CLEANED, 11)
    assert some.to_arrow().column_names == ["_row_id", "journal_id", "amount_local", "amount_usd", "_period", "_labels"]
    assert elsewhere.manifest.folder.startswith(".clew/close-review/cap_")
    assert (elsewhere.manifest.expires_at - elsewhere.manifest.created_at).days == 2
    assert elsewhere.to_arrow().equals(ledger.at(CLEANED, 4).to_arrow())


def test_personal_columns_are_in_no_file_of_any_capture(ledger: Ledger) -> None:
    names = {
        column
        for path in (ledger.root / ".clew").rglob("*.parquet")
        if "captures" in path.parts or "close-review" in path.parts
        for column in pq.read_schema(path).names
    }
    assert "amount_usd" in names
    assert "entered_by" not in names


def test_a_manifest_lies_beside_the_rows_and_records_what_happened(ledger: Ledger) -> None:
    capture = ledger.at(CLEANED)
    manifest = json.loads((ledger.root / capture.manifest.folder / "manifest.json").read_text())
    assert manifest == capture.manifest.to_json()
    assert (manifest["breakpoint"], manifest["seq"], manifest["plan_digest"]) == (
        CLEANED,
        30,
        ledger.trace.plan.digest,
    )
    assert {each["name"]: each["type"] for each in manifest["columns"]}["amount_usd"] == "decimal(18,2)"
    assert manifest["left_out"] == [{"column": "entered_by", "reason": "PERSONAL"}]
    for field in ("estimated_bytes", "freeze_us", "write_ms", "size"):
        assert manifest[field] > 0
    assert manifest["wait_ms"] >= 0
    assert manifest["frozen_at"] <= manifest["created_at"] < manifest["expires_at"]
    assert (manifest["mode"], manifest["asked"], manifest["attempts"]) == ("full_raw", "full_raw", 1)


def test_two_runs_on_the_same_data_do_not_differ(ledger: Ledger) -> None:
    """The first run kept nothing but what its job sent, which is enough to compare."""
    [kept] = [each for each in ledger.plain.captures if each.manifest.job_id]
    [again] = [each for each in ledger.captured.captures if each.status == "ready" and each.manifest.job_id]
    found = again.diff(again)
    assert found.is_same
    both = kept.diff(ledger.at(CLEANED, 4))
    assert (both.removed, both.changed) == (0, 0)
    assert both.key == ("journal_id", "line_number")
    assert both.added == 1438 - 200


def test_a_wrong_rate_shows_in_the_difference_of_two_captures(ledger: Ledger) -> None:
    rates = ledger.root / "data" / "fx_rates.csv"
    before = rates.read_text()
    lines = [line.replace("1.092", "1.192") if line.startswith("EUR,USD") else line for line in before.splitlines()]
    rates.write_text("\n".join(lines) + "\n")
    assert rates.read_text() != before
    try:
        wrong = clew.open(ledger.root).run("gl-close", period="2026-01", captures="cleaned=full_view")
    finally:
        rates.write_text(before)
    [capture] = [each for each in wrong.captures if each.record.request is not None]
    found = ledger.at(CLEANED, 4).diff(capture)
    assert (found.added, found.removed) == (0, 0)
    assert found.changed > 0
    assert {name for change in found.examples_changed for name in change.columns} == {"amount_usd"}
    assert {pair.name for pair in found.columns if pair.changed} == {"amount_usd"}


@settings(max_examples=3, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
@given(project=rich_projects(), data=rich_tables())
def test_every_point_of_random_projects_is_what_the_trace_rebuilds(
    spark: SparkSession, project: dict[str, Any], data: dict[str, list[dict[str, Any]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plan = compiled(Path(folder, "workspace"), project, RICH_DATASETS)
        assume(plan is not None)
        assert plan is not None
        try:
            ran = run_plan(spark, Path(folder, "storage"), plan, data)
        except ClewError:
            return
        trace = ran.trace()
        ended = EndedRun(spark, storage_at(ran.root), RUN_ID, plan, PERIOD, TODAY, trace.parts, frozenset())
        for step in plan.steps[::2]:
            names = [column.name for column in plan.columns_after(step.seq)] + ["_period", "_labels"]
            started = draft(ended.root, "c")
            written = write_rows(raw_rows(ended.rows_at(step.seq), [KeptColumn(name) for name in names], ""), started)
            table = pa.concat_tables([pq.read_table(source) for source in written.sources])
            started.abandon()
            found = trace.search(None, at=step.seq, limit=10_000)
            types = dict(found.columns)
            cells = {name: values_of(table[name], types[name]) for name in [*names, "_deleted"]}
            rows = [
                {"_row_id": trace.row_ids.row_id(ordinal), **{name: cells[name][index] for name in cells}}
                for index, ordinal in enumerate(table[ORDINAL].to_pylist())
            ]
            wanted = [{"_row_id": row.row_id, **{name: row.state[name] for name in cells}} for row in found.rows]
            assert in_any_order(rows) == in_any_order(wanted)
        trace.close()


# Postlude jobs


@pytest.fixture(scope="module")
def people(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run]:
    del spark
    root = write_people(tmp_path_factory.mktemp("people"))
    return root, clew.open(root).run("greet", period="2026-01", captures="kept=full_view")


def job_of(run: Run, name: str) -> dict[str, Any]:
    [found] = [job for job in run.postlude_jobs if job["name"] == name or name in str(job.get("job_id"))]
    return found


def test_a_job_does_its_tasks_in_order_and_sends_what_is_left(people: tuple[Path, Run]) -> None:
    root, run = people
    assert run.status == "COMPLETED"
    job = job_of(run, "every-task")
    assert (job["status"], job["error"], job["drop_reason"]) == ("ready", None, None)
    described, spread, top = job["results"]
    amounts = [n * 5 for n in range(200) if n % 10 and n * 5 < 900]
    [amount] = described["columns"]
    assert (described["rows"], amount["min"], amount["max"]) == (
        len(amounts),
        f"{min(amounts)}.00",
        f"{max(amounts)}.00",
    )
    assert sum(each["count"] for each in spread["bins"]) == len(amounts)
    assert len(spread["bins"]) == 4
    assert len(top["values"]) == 2
    log, shelf = job["emissions"]
    assert (log["sink"], log["type"], log["rows"]) == ("log", "training_log", 7)
    table = pa.ipc.open_file(root / log["path"]).read_all()
    assert table.column_names == [ORDINAL, "id", "city", "amount", "_deleted"]
    first_fifty = [n for n in range(200) if n % 10 and n * 5 < 900][:50]
    assert table["id"].to_pylist() == sampled(run.id, first_fifty, 7)
    kept = clew.open(root).capture(shelf["capture_id"])
    assert kept.to_arrow()["id"].to_pylist() == table["id"].to_pylist()
    assert (kept.manifest.expires_at - kept.manifest.created_at).days == 30
    assert kept.manifest.mode is CaptureMode.SAMPLE_RAW
    described_beside = json.loads((root / log["path"]).with_suffix(".json").read_text())
    assert described_beside["job_id"] == job["job_id"]


def test_raw_rows_keep_the_deleted_ones_and_leave_out_what_is_not_for_everybody(people: tuple[Path, Run]) -> None:
    root, run = people
    job = job_of(run, "all-rows")
    [log] = job["emissions"]
    table = pq.read_table(root / log["path"])
    assert table.num_rows == 200
    assert sum(table["_deleted"].to_pylist()) == 20
    assert not {"name", "pin", "greeting"} & set(table.column_names)
    assert job["left_out"] == ["greeting", "name", "pin"]


def test_a_condition_decides_whether_a_job_is_done(people: tuple[Path, Run]) -> None:
    _, run = people
    for name in ("only-when-failed", "only-when-many"):
        job = job_of(run, name)
        assert (job["status"], job["drop_reason"]) == ("dropped", "WHEN_NOT_TRUE")
    assert job_of(run, "when-as-counted")["status"] == "ready"


def test_a_job_beyond_its_budget_is_stopped_and_sends_nothing(people: tuple[Path, Run]) -> None:
    root, run = people
    failed: list[dict[str, Any]] = [job for job in run.postlude_jobs if job["status"] == "failed"]
    jobs = {job["job_id"]: job for job in failed}
    codes = sorted(job["error"]["code"] for job in jobs.values())
    assert codes == ["BudgetExceeded", "BudgetExceeded", "ValueOutOfRange"]
    messages = " ".join(job["error"]["message"] for job in jobs.values())
    assert "10 that it may handle" in messages
    assert "may send 10" in messages
    assert len(list((root / "out" / "log" / run.id).glob("*.parquet"))) == 1
    assert not list((root / ".clew" / "storage" / "captures" / "staging").iterdir())


def test_a_job_that_fails_leaves_the_run_and_the_others_alone(people: tuple[Path, Run]) -> None:
    _, run = people
    assert (run.status, run.error) == ("COMPLETED", None)
    assert [job["status"] for job in run.postlude_jobs] == [
        "ready",
        "ready",
        "dropped",
        "dropped",
        "ready",
        "failed",
        "failed",
        "failed",
    ]


def test_the_error_of_a_job_quotes_no_value_where_the_plan_reads_personal_columns(people: tuple[Path, Run]) -> None:
    error = job_of(people[1], "cannot-work")["error"]
    assert (error["code"], "CAST_INVALID_INPUT" in error["message"]) == ("ValueOutOfRange", True)
    assert "City" not in error["message"]


def test_jobs_at_one_point_share_the_ticket_and_record_waits_and_times(people: tuple[Path, Run]) -> None:
    _, run = people
    records = [record for record in run.view.captures if record.frozen is not None]
    assert len({record.frozen.ticket for record in records if record.frozen is not None}) == 1
    assert len(records) >= 9
    job = job_of(run, "every-task")
    assert job["run_ms"] > 0
    assert job["wait_ms"] >= 0
    assert job["bytes"] == sum(each["size"] for each in job["emissions"])
    assert job["emissions"][0]["emit_ms"] >= 0


# In prod


def test_in_prod_a_worker_makes_captures_ready_and_one_that_dies_in_the_middle_is_made_good(
    spark: SparkSession, tmp_path: Path
) -> None:
    del spark
    root = write_people(tmp_path, WITHOUT_JOBS)
    workspace = clew.open(root, "prod")
    environment = workspace.run_environment
    with open_state(environment) as state:
        starter = RunStarter(workspace.files, environment, state)
        hashed = {"breakpoint": "kept", "mode": "sample_view", "mask": {"city": "hash"}}
        wishes = capture_wishes_of_data([hashed, "kept=sample_raw", "kept=stats"], "captures")
        run = starter.submit("greet", "2026-01", captures=wishes)
        assert {record.status.value for record in state.captures.of_run(run.run_id)} == {"queued"}
        starter.drive(run.run_id, threading.Event())
        worker = CaptureWorker(environment, state, starter.session)
        worker.after_run(run.run_id)
        waiting = [record for record in state.captures.of_run(run.run_id) if record.request is not None]
        assert [record.status.value for record in waiting] == ["queued"] * 3
        assert all(record.frozen is not None for record in waiting)

        quick_start = {**os.environ, "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1"}
        killed = subprocess.run([sys.executable, "-m", CRASH, root], env=quick_start, capture_output=True, check=False)
        assert killed.returncode == -signal.SIGKILL, killed.stderr.decode()[-2000:]
        lost = [record for record in state.captures.of_run(run.run_id) if record.status.value == "running"]
        folders = [Path(environment.storage_root.address) / "captures" / record.capture_id for record in lost]
        [unpublished], [published] = ([path.name for path in folder.iterdir()] for folder in folders)
        described = [
            (folder / name / "manifest.json").exists()
            for folder, name in zip(folders, (unpublished, published), strict=True)
        ]
        assert (unpublished[:2], published[:2], described) == ("1-", "1-", [False, True])

        while not all(record.status.is_over for record in state.captures.of_run(run.run_id)):
            worked_or_waited(worker)
        done = {record.capture_id: record for record in state.captures.of_run(run.run_id)}
        captures = [record for record in done.values() if record.request is not None]
        assert [record.status.value for record in captures] == ["ready"] * 3
        assert [done[record.capture_id].attempts for record in lost] == [2, 2]
        assert [[path.name[:2] for path in folder.iterdir()] for folder in folders] == [["2-"], ["2-"]]

    found = {each.id: each for each in clew.open(root, "prod").captures()}
    sample, raw = (found[record.capture_id] for record in lost)
    rows = sample.to_arrow().to_pylist()
    assert len(rows) == 180
    assert sorted(row["id"] for row in raw.to_arrow().to_pylist()) == [n for n in range(200) if n % 10]
    assert {row["pin"] for row in rows} == {"[masked]"}
    assert all(row["name"] == "*" * (len(f"Person {row['id']}") - 1) + str(row["id"])[-1] for row in rows)
    assert all(len(row["greeting"]) == 16 and "Person" not in row["greeting"] for row in rows)
    cities = {row["city"]: row["id"] % 7 for row in rows}
    assert len(cities) == len(set(cities.values())) == 7
    assert all(len(city) == 16 and "City" not in city for city in cities)
    masked = {column.name: column.mask for column in sample.manifest.columns if column.mask}
    assert masked == {"name": "keep_last(1)", "pin": "redact", "greeting": "hash", "city": "hash"}


def test_a_capture_that_always_loses_its_worker_is_given_up(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark
    root = write_people(tmp_path, DROP_ONLY, people=20)

    def gone(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("clew.captures.writing.write_rows", gone)
    workspace = clew.open(root)
    run = workspace.run("greet", period="2026-01", captures="kept")
    assert run.status == "COMPLETED"
    [capture] = run.captures
    assert capture.status in {"queued", "failed"}
    environment = workspace.run_environment
    with open_state(environment) as state:
        worker = CaptureWorker(environment, state, lambda: RunStarter(workspace.files, environment, state).session())
        for _ in range(200):
            record = state.captures.find(capture.id)
            assert record is not None
            if record.status.is_over:
                break
            worked_or_waited(worker)
        assert record is not None
        assert record.status.value == "failed"
        assert record.outcome.error is not None
        assert record.outcome.error.code == "CaptureAbandoned"
        assert "No space left" in record.outcome.error.message


def test_a_worker_that_was_overtaken_takes_nothing_from_the_capture_that_is_ready(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    del spark
    root = write_people(tmp_path, DROP_ONLY, people=20)
    workspace = clew.open(root, "prod")
    environment = workspace.run_environment
    with open_state(environment) as state:
        starter = RunStarter(workspace.files, environment, state)
        run = starter.submit("greet", "2026-01", captures=capture_wishes_of_data(["kept=sample_view"], "captures"))
        starter.drive(run.run_id, threading.Event())
        slow = CaptureWorker(environment, state, starter.session, lease=LeasePolicy(ttl_s=0.01))
        quick = CaptureWorker(environment, state, starter.session)
        describe = CaptureWriter._manifest

        def overtaken(writer: CaptureWriter, kept: Any, folder: StorageRoot, write_ms: int) -> Any:
            while writer.attempt == 1 and not state.captures.of_run(run.run_id)[0].status.is_over:
                worked_or_waited(quick)
            return describe(writer, kept, folder, write_ms)

        monkeypatch.setattr(CaptureWriter, "_manifest", overtaken)
        monkeypatch.setattr(type(state.captures), "keep", lambda *_lease, **_ttl: False)
        slow.after_run(run.run_id)
        assert slow.work_once()
        [record] = state.captures.of_run(run.run_id)
    assert (record.status.value, record.attempts) == ("ready", 2)
    folder = Path(environment.storage_root.address) / "captures" / record.capture_id
    assert [path.name[:2] for path in folder.iterdir()] == ["2-"]
    [capture] = clew.open(root, "prod").captures()
    assert sorted(row["id"] for row in capture.to_arrow().to_pylist()) == [n for n in range(20) if n % 10]


def worked_or_waited(worker: CaptureWorker) -> None:
    """Do what is due, or let what was put off become due."""
    if not worker.work_once():
        threading.Event().wait(0.05)


def test_a_large_column_is_left_out_in_prod_unless_it_is_asked_for(spark: SparkSession, tmp_path: Path) -> None:
    del spark
    root = write_people(
        tmp_path,
        """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Blow up, type: update, arguments: {assignments: [
      {column: long, expression: 'REPLACE("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "x", CONCAT(city, TO_STRING(id)))'}]}}
  - {seq: 2, name: More, type: update, assign: kept, arguments: {assignments: [
      {column: longer, expression: 'REPLACE("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "x", long)'}]}}
""",
        people=30,
    )
    named: dict[str, object] = {"breakpoint": "kept", "mode": "sample_view", "include_columns": ["id", "longer"]}
    workspace = clew.open(root, "prod")
    run = workspace.run("greet", period="2026-01", captures=("kept=sample_view", named))
    assert {each.status for each in run.captures} == {"queued"}
    environment = workspace.run_environment
    with open_state(environment) as state:
        starter = RunStarter(workspace.files, environment, state)
        worker = CaptureWorker(environment, state, starter.session)
        while worker.work_once():
            pass
    first, second = workspace.captures(run=run.id)
    assert "longer" not in first.to_arrow().column_names
    assert "LARGE" in {each.reason for each in first.manifest.left_out if each.column == "longer"}
    assert "longer" in second.to_arrow().column_names
    assert replace(first.manifest, left_out=()) != first.manifest
