"""The commands on the sample workspace with Spark: figures that are known, failures that are put right."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import clew as clew_package
from clew.api import starting
from clew.cli.main import run
from clew.sample import write_sample

CLEW = Path(sys.executable).with_name("clew")


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def clew(
    spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[..., Answer]:
    """Runs a command in a folder, on the session that all tests share."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def call(*arguments: str | Path, cwd: Path) -> Answer:
        monkeypatch.chdir(cwd)
        code = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    write_sample(tmp_path / "ledger")
    return tmp_path / "ledger"


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_spark_starts_for_a_short_life_in_a_command_that_has_little_to_read(
    clew: Callable[..., Answer], sample: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = list[str]()

    def starting_as(name: str) -> Callable[..., SparkSession]:
        def start(*_: object) -> SparkSession:
            started.append(name)
            return spark

        return start

    for name in ("session_of", "brief_session_of"):
        monkeypatch.setattr(starting, name, starting_as(name))
    assert clew("run", "gl-close", "--period", "2026-01", cwd=sample).code == 0
    assert set(started) == {"brief_session_of"}
    started.clear()
    # What a program runs may be followed by more.
    clew_package.open(sample).run("gl-close", period="2026-02")
    assert set(started) == {"session_of"}


def test_both_sample_projects_run_with_the_known_figures(clew: Callable[..., Answer], sample: Path) -> None:
    before = files_below(sample)
    dry = clew("run", "gl-close", "--period", "2026-01", "--dry-run", "--json", cwd=sample)
    assert (dry.code, dry.err) == (0, "")
    assert {each["dataset"]: each["rows"] for each in dry.json["datasets"]}["journal-lines"] == 1455
    named = clew("run", "Month close", "--period", "2026-01", "--dry-run", cwd=sample)
    assert named.out.endswith("next: clew run gl-close --period 2026-01\n")
    assert files_below(sample) == before

    closed = clew("run", "gl-close", "--period", "2026-01", "--json", cwd=sample)
    assert (closed.code, closed.err) == (0, "")
    steps = {step["seq"]: step for step in closed.json["steps"]}
    assert closed.json["rows_loaded"] == 1455
    assert steps[20]["rows_updated"] == 34
    assert steps[30]["rows_deleted"] == 17
    assert steps[40]["rows_created"] == 4
    assert steps[50]["rows_created"] == 127
    review, published = closed.json["outputs"]
    assert (review["seq"], review["rows"]) == (35, 1455)
    assert (published["rows"], published["dataset"], published["dataset_version"]) == (1569, "gl-closed", 1)
    rows = pq.read_table(sample / published["path"])
    assert rows.num_rows == 1569

    events = clew("events", closed.json["run_id"], "--json", cwd=sample).json["events"]
    artifacts = [each for event in events for each in event["event_data"].get("artifacts", [])]
    assert {each["kind"] for each in artifacts} == {"trace-part", "output", "dataset-version"}
    assert [each for each in artifacts if not each["sha256"] or not each["size_bytes"]] == []

    reported = clew("run", "group-report", "--period", "2026-01", cwd=sample)
    assert (reported.code, reported.err) == (0, "")
    assert "dataset gl-closed v1" in reported.out
    assert [each["rows"] for each in clew("datasets", "gl-closed", "--json", cwd=sample).json["versions"]] == [1569]
    kept = clew("rm", closed.json["run_id"], cwd=sample)
    assert (kept.code, "gl-closed" in kept.err) == (1, True)

    verified = clew("verify", "--all", "--json", cwd=sample)
    assert (verified.code, verified.json["findings"], verified.json["checked"]["runs"]) == (0, [], 2)

    run_of_python = clew_package.open(sample).get_run(closed.json["run_id"])
    assert run_of_python.status == "COMPLETED"
    assert "Reclassify travel" in run_of_python._repr_html_()


def test_a_rate_published_twice_fails_the_step_and_a_retry_after_the_fix_completes(
    clew: Callable[..., Answer], sample: Path
) -> None:
    definition = sample / "datasets" / "fx-rates.yaml"
    without_key = definition.read_text().replace("natural_key: [from_currency, to_currency, rate_type]\n", "")
    definition.write_text(without_key)
    assert "natural_key" not in without_key
    rates = sample / "data" / "fx_rates.csv"
    right = rates.read_text()
    twice = next(line for line in right.splitlines() if "closing" in line and line.startswith("EUR"))
    cells = dict(zip(right.splitlines()[0].split(","), twice.split(","), strict=True))
    cells |= {"_period_from": "2025-12-15", "_period_to": "2026-02-01", "rate": "1.500000"}
    rates.write_text(right + ",".join(cells.values()) + "\n")
    failed = clew("run", "gl-close", "--period", "2026-01", cwd=sample)
    assert (failed.code, failed.err) == (1, "")
    assert "error JoinNotUnique: " in failed.out
    assert "fragments/fx-to-usd.yaml" in failed.out
    assert "FAILED at step 10; nothing was published." in failed.out
    [run_id] = [each["run_id"] for each in clew("runs", "--json", cwd=sample).json["runs"]]
    assert clew("show", run_id, "--json", cwd=sample).json["last_completed_operation"] == 9

    rates.write_text(right)
    retried = clew("signal", run_id, "RETRY_STEP", "--step", "10", "--json", cwd=sample)
    assert (retried.code, retried.json["status"]) == (0, "COMPLETED")
    assert retried.json["outputs"][1]["rows"] == 1569
    assert [step["logical_attempt"] for step in retried.json["steps"][:4]] == [1, 1, 2, 1]
    traced = clew("trace", run_id, "--where", 'journal_id = "JE-00231" AND line_number = 2', "--json", cwd=sample)
    assert traced.code == 0
    assert traced.json["history"][0]["operation_seq"] == 0


def test_scenarios_pass_fail_and_err(clew: Callable[..., Answer], sample: Path) -> None:
    scenario = sample / "scenarios" / "reclassify-travel.yaml"
    good = clew("test", scenario, "--quick", "--compare", cwd=sample)
    assert (good.code, good.err) == (0, "")
    assert good.out.startswith("1 scenario: 1 passed (")
    assert good.out.endswith("quick and Spark: 1 the same\n")
    text = scenario.read_text()
    (sample / "other").mkdir()
    wrong = sample / "other" / "wrong.yaml"
    wrong.write_text(text.replace('new: "5290"', 'new: "5291"').replace("name: ", "name: Wrong, ", 1))
    assert 'new: "5291"' in wrong.read_text()
    lost = sample / "other" / "lost.yaml"
    lost.write_text(text.replace("id: accounts", "id: cost-centers").replace("name: ", "name: Lost, ", 1))
    answer = clew("test", sample / "other", "--json", "--junit", sample / "junit.xml", cwd=sample)
    assert answer.code == 1
    found = {each["file"]: each for each in answer.json["scenarios"]}
    assert {file: each["status"] for file, each in found.items()} == {
        "other/wrong.yaml": "fail",
        "other/lost.yaml": "error",
    }
    [mismatch] = found["other/wrong.yaml"]["mismatches"]
    assert (mismatch["kind"], mismatch["where"], mismatch["columns"]) == ("trace", "trace of step 20", ["account_code"])
    assert mismatch["actual"] == {"account_code": "5210 -> 5290"}
    assert 'failures="1" errors="1"' in (sample / "junit.xml").read_text()


BY_PERIODS = """
name: rates from one period to another
periods: [{identifier: "2026-01", level: month, start_date: 2026-01-01, end_date: 2026-01-31}]
period: "2026-01"
datasets:
  - id: rates
    main_table:
      name: rates
      temporal_mode: bitemporal
      columns: [{name: id, type: integer}]
    ROWS
project:
  id: inline
  input_dataset: rates
  operations: [{seq: 1, name: out, type: output, arguments: {destination: {location: {path: out}}, columns: [id]}}]
expected_output: {rows: [{id: 1}, {id: 3}, {id: 5}]}
"""
TIMES = (
    (1, "2026-01", ""),
    (2, "2025-Q1", "2026-01"),
    (3, "2025", "2026-02"),
    (4, "2026-02", ""),
    (5, "2025-12-31", ""),
)


def test_rows_of_scenarios_may_begin_and_end_with_periods_whether_these_are_listed_or_not(
    clew: Callable[..., Answer], sample: Path
) -> None:
    cells = [f'{{id: {row}, _period_from: "{start}", _period_to: {end or "null"}}}' for row, start, end in TIMES]
    written = BY_PERIODS.replace("ROWS", f"rows: [{', '.join(cells)}]")
    (sample / "data/times.csv").write_text(
        "id,_period_from,_period_to\n" + "".join(f"{row},{start},{end}\n" for row, start, end in TIMES)
    )
    filed = BY_PERIODS.replace("ROWS", "file: data/times.csv").replace("name: rates", "name: filed rates", 1)
    (sample / "one.yaml").write_text(written)
    (sample / "two.yaml").write_text(filed)
    answer = clew("test", "one.yaml", "two.yaml", "--quick", "--compare", "--json", cwd=sample)
    assert [each["status"] for each in answer.json["scenarios"]] == ["pass", "pass"], answer.out
    assert [each["quick"] for each in answer.json["scenarios"]] == ["same", "same"]
