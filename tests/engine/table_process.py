"""A process with a Spark session that knows Delta and Iceberg; tests hand it functions, and read without it.

A process has one Spark with the jars that it started with, so tables need one of their own. It starts with the first
test that asks for it and serves all tests of a worker.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from pyspark.sql import SparkSession

from clew.engine.session import SessionSettings, spark_session
from tests.engine import table_jars

P = ParamSpec("P")
T = TypeVar("T")


class TableProcess:
    """Runs functions of test modules in the process. Their first argument is the session."""

    def __init__(self, pool: ProcessPoolExecutor, folder: Path) -> None:
        self._pool = pool
        self.folder = folder

    def __call__(self, function: Callable[Concatenate[SparkSession, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        found: T = self._pool.submit(_called, function, args, kwargs).result(timeout=300)
        return found

    def sql(self, *statements: str) -> list[tuple[Any, ...]]:
        """The rows of the last of some statements."""
        return self(_sql, statements)


def _sql(spark: SparkSession, statements: tuple[str, ...]) -> list[tuple[Any, ...]]:
    rows = [[tuple(row) for row in spark.sql(statement).collect()] for statement in statements]
    return rows[-1]


def _called(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(_session(), *args, **kwargs)


def _session() -> SparkSession:
    jars = [jar for format_ in table_jars.FORMATS for jar in table_jars.found(format_)]
    extensions, config = list[str](), dict[str, str]()
    if table_jars.found("delta"):
        extensions.append("io.delta.sql.DeltaSparkSessionExtension")
        config["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        config["spark.databricks.delta.snapshotPartitions"] = "1"
    if table_jars.found("iceberg"):
        extensions.append("org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions")
        config["spark.sql.catalog.lake"] = "org.apache.iceberg.spark.SparkCatalog"
        config["spark.sql.catalog.lake.type"] = "hadoop"
        config["spark.sql.catalog.lake.warehouse"] = str(Path.cwd() / "warehouse")
    settings = SessionSettings(
        master="local[2]",
        config={
            **config,
            "spark.sql.extensions": ",".join(extensions),
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(Path.cwd() / "spark-warehouse"),
        },
        jars=tuple(jars),
        app_name="clew-table-tests",
    )
    return spark_session(settings)


@contextmanager
def table_process(folder: Path) -> Iterator[TableProcess]:
    """The process, in a folder that its catalogs keep their tables in."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, _enter, (str(folder),)) as pool:
        yield TableProcess(pool, folder)
        pool.submit(_stop).result(timeout=60)


def _enter(folder: str) -> None:
    import os

    os.chdir(folder)


def _stop() -> None:
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
