"""What runs on Spark can be interrupted from other threads, whatever threads Spark uses itself."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import clew
from clew.diagnostics import TransientFailure
from clew.engine.blame import SPARK_ERRORS, translated
from clew.engine.spark_work import SparkWork, for_another_thread
from clew.runs.signals import SignalType
from tests.engine.capture_workspaces import write_people
from tests.engine.endless import ended


def numbers(spark: SparkSession) -> DataFrame:
    return spark.range(10**15)


def with_broadcast(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(n,) for n in range(20)], "n int").crossJoin(spark.range(10**15))


@pytest.mark.parametrize("rows", [numbers, with_broadcast])
@pytest.mark.parametrize("in_another_thread", [False, True])
def test_work_is_interrupted_from_another_thread_wherever_it_runs(
    spark: SparkSession, rows: Callable[[SparkSession], DataFrame], in_another_thread: bool
) -> None:
    """The interrupt comes before the job has begun, and must reach it all the same."""

    def work() -> str:
        endless = SparkWork(spark, "endless")
        with endless.here():
            threading.Thread(target=endless.interrupt).start()
            try:
                if in_another_thread:
                    with ThreadPoolExecutor(1) as threads:
                        threads.submit(for_another_thread(spark, lambda: rows(spark).count())).result()
                else:
                    rows(spark).count()
            except SPARK_ERRORS:
                return "interrupted"
        return "done"

    assert ended(work, or_else=spark.sparkContext.cancelAllJobs) == "interrupted"
    assert not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_work_leaves_the_job_group_of_its_caller_and_other_work_alone(spark: SparkSession) -> None:
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", "mine")
    stopped, other = SparkWork(spark, "stopped"), SparkWork(spark, "other")
    with other.here():
        with stopped.here():
            stopped.interrupt()
        assert spark.range(10).count() == 10
    assert spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "mine"
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


SLOW = """
id: greet
status: active
input_dataset: people
operations:
  - {seq: 1, name: Compare, type: update, arguments: {joins: [{alias: other, dataset_id: people,
     on: 'REPLACE(REPLACE(people.name, "a", "b"), "b", other.name) = CONCAT(other.pin, people.city)'}],
     assignments: [{column: city, expression: 'COALESCE(other.city, people.city)'}]}}
"""


def test_cancel_stops_a_step_while_spark_works_on_it(spark: SparkSession, tmp_path: Path) -> None:
    """Every person is compared with every other: that would take minutes."""
    root = write_people(tmp_path, SLOW, people=60_000)
    workspace = clew.open(root)

    def run() -> str:
        return str(workspace.run("greet", period="2026-01").status)

    cancelled = threading.Event()

    def cancel() -> None:
        tracker = spark.sparkContext.statusTracker()
        while not cancelled.wait(0.2):
            active = [run for run in clew.open(root).runs() if run.status == "RUNNING"]
            if active and any(step.step_id == "1" for step in active[0].steps) and tracker.getActiveJobsIds():
                active[0].signal(SignalType.CANCEL)
                return

    watch = threading.Thread(target=cancel)
    watch.start()
    try:
        assert ended(run, or_else=spark.sparkContext.cancelAllJobs) == "CANCELLED"
    finally:
        cancelled.set()
        watch.join()


def test_a_spark_that_went_away_is_a_failure_for_now() -> None:
    error = translated(PySparkException("Job aborted because SparkContext was shut down"), None, None)
    assert isinstance(error, TransientFailure)
    assert error.code == "SparkUnavailable"
