"""Limits bound the work of captures and jobs, and not only its result."""

import math
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

import clew
from clew import budgets
from clew.budgets import Allowance, QuestionLimits
from clew.captures import job_rows, writing
from clew.captures.captured_rows import questions
from clew.captures.job_rows import JobRows
from clew.captures.jobs import copy_within_budget
from clew.captures.spark_statistics import statistics_in_spark
from clew.captures.statistics import statistics_of
from clew.captures.writing import EndedRun, WrittenRows
from clew.diagnostics import UserError
from clew.diagnostics.codes.captures import BUDGET_EXCEEDED
from clew.lang.types import BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal
from clew.storage.drafts import Draft
from clew.trace.sql import Sql, parquet, typed_column
from tests.engine.capture_workspaces import write_people
from tests.engine.endless import ended

COLUMNS = [
    ("text", STRING),
    ("whole", INTEGER),
    ("money", decimal(18, 2)),
    ("huge", decimal(38, 2)),
    ("number", DOUBLE),
    ("flag", BOOLEAN),
    ("day", DATE),
    ("moment", TIMESTAMP),
    ("nothing", STRING),
    ("same", INTEGER),
]
STRANGE = {1: math.nan, 2: math.inf, 3: -math.inf}


def strange_rows(count: int) -> list[tuple[Any, ...]]:
    return [
        (
            f"t{n % 17}" if n % 5 else None,
            n * n % 1009,
            Decimal(n * 7919 % 100_003 * (-1) ** n) / 100,
            Decimal(10) ** 35 * (-1) ** (n % 3),
            STRANGE.get(n, n / 7 if n % 3 else None),
            n % 3 == 0,
            date(2020, 1, 1) + timedelta(days=n % 400),
            datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=n * 12_345_678_901),
            None,
            5,
        )
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 500])
def test_statistics_without_files_are_those_of_the_files(spark: SparkSession, tmp_path: Path, count: int) -> None:
    types = "text string, whole bigint, money decimal(18,2), huge decimal(38,2), number double, flag boolean, day date"
    rows = spark.createDataFrame(strange_rows(count), f"{types}, moment timestamp, nothing string, same bigint")
    path = str(tmp_path / "rows")
    rows.coalesce(1).write.parquet(path)
    columns = ", ".join(f"{typed_column(name, type_)} AS {name}" for name, type_ in COLUMNS)
    files = sorted(map(str, Path(path).glob("*.parquet")))
    expected = statistics_of(Sql(f"SELECT {columns} FROM ") + parquet(files), COLUMNS, bins=7, top=4)
    found = statistics_in_spark(rows, COLUMNS, bins=7, top=4)
    for name, _ in COLUMNS:
        assert repr(found.column(name)) == repr(expected.column(name))
    assert found.rows == count


WIDE = """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Drop, type: delete, selector: amount < 0, assign: kept, after_request: [
      {name: look, tasks: [{describe: {columns: [amount]}}, {topk: {column: city, k: 2}}]},
      {name: send, tasks: [{serialize_rowset: {format: parquet, mode: view}}, {emit_training_log: {sink: log}}]}]}
"""


def test_no_more_is_written_than_a_capture_may_keep(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many rows exist is not known before: the environment allows jobs 50 rows, and `describe` sees them all."""
    del spark
    root = write_people(tmp_path, WIDE, people=200)
    settings = root / "clew.yaml"
    settings.write_text(settings.read_text().replace("    retry:", "    captures: {max_rows: 50}\n    retry:", 1))
    written = list[int]()
    write = writing.write_rows

    def counting(rows: DataFrame, draft: Draft) -> WrittenRows:
        done = write(rows, draft)
        written.append(done.rows)
        return done

    monkeypatch.setattr(writing, "write_rows", counting)
    monkeypatch.setattr(job_rows, "write_rows", counting)
    monkeypatch.setattr("clew.captures.freezing._rows", lambda *_plan: None)
    run = clew.open(root).run(
        "greet",
        period="2026-01",
        captures=({"breakpoint": "kept", "mode": "full_view", "limits": {"max_rows": 10}}, "kept=stats"),
    )
    sample, stats = (each for each in run.captures if each.record.request is not None)
    assert (sample.manifest.mode.value, sample.manifest.rows) == ("sample_view", 10)
    assert (stats.manifest.mode.value, stats.statistics().rows) == ("stats", 180)
    look, send = run.postlude_jobs
    assert (look["status"], look["results"][0]["rows"]) == ("ready", 180)  # type: ignore[index]
    assert (send["status"], send["error"]["code"]) == ("failed", "BudgetExceeded")  # type: ignore[index]
    assert sorted(written) == [10, 11, 51]


def test_a_million_rows_are_described(spark: SparkSession) -> None:
    rows = spark.range(1_000_001).selectExpr("id", "CAST(id % 10 AS STRING) AS digit")
    found = statistics_in_spark(rows, [("id", INTEGER), ("digit", STRING)])
    numbers, digits = found.columns
    assert (found.rows, numbers.distinct, numbers.min, numbers.max) == (1_000_001, 1_000_001, 0, 1_000_000)
    assert (numbers.quantiles or {})["p50"] == 500_000
    assert [(each.value, each.count) for each in digits.top[:2]] == [("0", 100_001), ("1", 100_000)]


# Time

SLOW = """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Drop, type: delete, selector: amount < 0, assign: kept, after_request: [
      {name: slow, budget: {timeout_seconds: 1}, tasks: [%s]}]}
"""
WRITES = "{take: 2}, {serialize_rowset: {format: parquet, mode: raw}}, {emit_training_log: {sink: log}}"
ENDLESS = Sql("SELECT sum(a.range * b.range) FROM range(10000000000) a, range(10000000000) b")
"""A query that the database would compute for years."""


def endless_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that Spark would compute for years, with a broadcast of those that there are."""
    rows_at = EndedRun.rows_at

    def many(ended: EndedRun, seq: int) -> DataFrame:
        return rows_at(ended, seq).crossJoin(ended.spark.range(10**15).toDF("again")).drop("again")

    monkeypatch.setattr(EndedRun, "rows_at", many)


def endless_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(JobRows, "_raw", lambda _rows: ENDLESS)


@pytest.mark.parametrize(("tasks", "make_endless"), [("{describe: {}}", endless_rows), (WRITES, endless_query)])
def test_a_job_that_would_never_end_is_stopped_by_its_budget(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tasks: str, make_endless: Any
) -> None:
    root = write_people(tmp_path, SLOW % tasks, people=20)
    make_endless(monkeypatch)
    workspace = clew.open(root)
    run = ended(lambda: workspace.run("greet", period="2026-01"), or_else=spark.sparkContext.cancelAllJobs)
    [job] = run.postlude_jobs
    assert (run.status, job["status"]) == ("COMPLETED", "failed")
    error: Any = job["error"]
    assert (error["code"], "longer than 1 seconds" in error["message"]) == ("BudgetExceeded", True)
    assert not list((root / "out").rglob("*.parquet"))
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def stopped_by_its_budget(work: Callable[[], object]) -> str:
    """The code of the error of work that has no end, so that only the budget can stop it."""
    allowance = Allowance(QuestionLimits(deadline_s=math.inf))
    error = UserError(BUDGET_EXCEEDED.anywhere(problem="it takes longer than it may"))
    timer = threading.Timer(0.2, lambda: allowance.stop(error))
    timer.start()
    with pytest.raises(UserError) as stopped, budgets.under(allowance):
        work()
    timer.join()
    return stopped.value.code


def test_the_database_is_stopped_by_the_budget_before_its_first_row_and_between_rows() -> None:
    for query in (ENDLESS, Sql("SELECT a.range FROM range(10000000000) a, range(10000000000) b")):

        def ask(query: Sql = query) -> None:
            with questions() as asked:
                _, batches = asked.batches(query)
                for _batch in batches:
                    pass

        assert ended(partial(stopped_by_its_budget, ask), or_else=lambda: None) == "BudgetExceeded"


def test_copying_is_stopped_by_the_budget() -> None:
    def copy() -> None:
        with Path("/dev/zero").open("rb") as source, Path("/dev/null").open("wb") as target:
            copy_within_budget(source, target)

    assert ended(partial(stopped_by_its_budget, copy), or_else=lambda: None) == "BudgetExceeded"
