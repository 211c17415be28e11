"""A process with a Spark session that knows Delta and Iceberg; tests hand it functions, and read without it.

A process has one Spark with the jars that it started with, so tables need one of their own. It starts with the first
test that asks for it and serves all tests of a worker.
"""

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
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


_FURTHER = dict[str, str]()
"""Settings of the process beside those that all have."""
_MASTER = "spark.master"
_JARS = "spark.jars"


def _session() -> SparkSession:
    if _MASTER in _FURTHER:
        return spark_session(SessionSettings(master=_FURTHER[_MASTER], app_name="clew-table-tests"))
    jars, config = connectors(Path.cwd())
    settings = SessionSettings(
        master="local[2]",
        config={
            **config,
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.sql.shuffle.partitions": "2",
            "spark.ui.enabled": "false",
            **{name: value for name, value in _FURTHER.items() if name != _JARS},
        },
        jars=(*jars, *filter(None, _FURTHER.get(_JARS, "").split(","))),
        app_name="clew-table-tests",
    )
    return spark_session(settings)


def connectors(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The jars of both formats, as far as they are there, and the settings of catalogs that keep tables in a folder."""
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
        config["spark.sql.catalog.lake.warehouse"] = str(folder / "warehouse")
    config["spark.sql.extensions"] = ",".join(extensions)
    config["spark.sql.warehouse.dir"] = str(folder / "spark-warehouse")
    return jars, config


@contextmanager
def table_process(folder: Path, further: Mapping[str, str] | None = None) -> Iterator[TableProcess]:
    """The process, in a folder that its catalogs keep their tables in."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, context, _enter, (str(folder), dict(further or {}))) as pool:
        yield TableProcess(pool, folder)
        pool.submit(_stop).result(timeout=60)


def _enter(folder: str, further: dict[str, str]) -> None:
    import os

    os.chdir(folder)
    _FURTHER.update(further)


def _stop() -> None:
    active = SparkSession.getActiveSession()
    if active is not None:
        active.stop()
