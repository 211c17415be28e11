"""One Spark session for all tests of a worker that need one."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from clew.spark.session import SessionSettings, spark_session

_HERE = Path(__file__).parent

sys.path[:0] = [str(_HERE.parent / folder) for folder in ("app", "store", "trace")]
"""The interpreter of plans, the PostgreSQL server, and the random projects that the trace is tested with."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    settings = SessionSettings(
        master="local[2]",
        config={
            "spark.driver.memory": "2g",
            # Starts sooner; the better code of the second compiler pays only in long runs.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.shuffle.partitions": "2",
        },
        app_name="clew-tests",
    )
    session = spark_session(settings)
    yield session
    session.stop()
