"""One Spark session for all tests of a worker that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from clew.engine.session import SessionSettings, spark_session


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
