"""One Spark session for all tests of a worker that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from clew.engine.session import SessionSettings, spark_session
from tests.engine import table_jars
from tests.engine.spark_servers import connect_server
from tests.engine.table_lakes import Lake
from tests.engine.table_process import TableProcess, table_process


@pytest.fixture(scope="session")
def spark(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A local Spark, or a Connect server with the option `--spark-connect`."""
    if not request.config.getoption("--spark-connect"):
        yield from _session("local[2]")
        return
    with connect_server(tmp_path_factory.mktemp("spark")) as address:
        yield from _session(address)


def _session(master: str) -> Iterator[SparkSession]:
    settings = SessionSettings(
        master=master,
        config={
            "spark.driver.memory": "2g",
            # Starts sooner; the better code of the second compiler pays only in long runs.
            # Derby would write its log into the folder that the tests were started in.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Dderby.stream.error.file=/dev/null",
            "spark.sql.shuffle.partitions": "2",
        },
        app_name="clew-tests",
    )
    session = spark_session(settings)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def table_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableProcess]:
    """A process with a session that knows Delta and Iceberg."""
    with table_process(tmp_path_factory.mktemp("tables")) as process:
        yield process


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, table_spark: TableProcess) -> Lake:
    """Each format of tables in turn, as far as there is a connector."""
    table_jars.require(request.param)
    return Lake(table_spark, table_spark.folder / "warehouse", request.param)
