"""What a small run asks of Spark and of the disk is bounded: users wait for each job, call and file."""

from pathlib import Path

import pytest
from benchmarks.run_counts import counts_of_run
from pyspark.sql import SparkSession

from clew.sample import write_sample

pytestmark = [pytest.mark.slow, pytest.mark.classic]


def test_a_run_of_the_sample_takes_few_jobs_calls_and_files(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    write_sample(folder)
    january = counts_of_run(folder)
    assert 0 < january.jobs <= 30, january
    assert 0 < january.calls <= 5_500, january
    assert 0 < january.files <= 80, january
    assert 0 < january.fsyncs <= 20, january
    march = counts_of_run(folder, period="2026-03")
    assert march.jobs < january.jobs, "the Parquet file of March is copied as it is, which takes no job"
