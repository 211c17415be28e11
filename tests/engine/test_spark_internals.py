"""The parts of PySpark that it does not promise, as `clew.engine.spark_internals` uses them.

A failure here on a version of PySpark names what to look at. Until then it is not among those that are supported.
"""

import ast
import inspect
from pathlib import Path

import pyarrow as pa
import pyspark.errors.exceptions.base
import pytest
from benchmarks.run_counts import calls_to_the_jvm
from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
from pyspark import SparkContext
from pyspark.errors import AnalysisException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.connect.client import DefaultChannelBuilder, SparkConnectClient
from pyspark.sql.connect.session import SparkSession as ConnectSession
from pyspark.sql.types import DateType, DecimalType, LongType, StringType, StructType, TimestampNTZType

from clew.engine import spark_internals
from clew.engine.spark_internals import QUERY_LOGGERS, arrow_schema, select_sql
from tests.docs.source_imports import parsed

ROOT = Path(__file__).parents[2]


@pytest.mark.classic
def test_the_gateway_of_the_process_is_where_it_is_looked_for(spark: SparkSession) -> None:
    assert spark.sparkContext is not None
    assert isinstance(SparkContext._gateway, JavaGateway)


def test_a_gateway_can_be_launched_with_a_place_for_what_the_jvm_writes() -> None:
    assert list(inspect.signature(launch_gateway).parameters) == ["conf", "popen_kwargs"]
    assert "gateway" in inspect.signature(SparkContext.__init__).parameters


def test_a_session_on_spark_connect_still_knows_the_way_to_its_server() -> None:
    session_id = "6a1b6f9c-3f57-4d0e-9d5e-0f4b8f8f9d11"
    channels = DefaultChannelBuilder(f"sc://localhost:15002/;token=x;session_id={session_id}")
    assert channels._params["session_id"] == channels.session_id == session_id
    assert "self._builder = " in inspect.getsource(SparkConnectClient.__init__)
    assert "connection" in inspect.signature(ConnectSession.__init__).parameters


def test_pyspark_still_writes_errors_of_queries_with_these_loggers() -> None:
    source = inspect.getsource(pyspark.errors.exceptions.base)
    assert all(f'getLogger("{name}")' in source for name in QUERY_LOGGERS)
    assert source.count("PySparkLogger.getLogger(") == len(QUERY_LOGGERS)


def test_the_arrow_schema_is_the_one_that_a_query_gives(spark: SparkSession) -> None:
    schema = StructType()
    for name, kind in {
        "text": StringType(),
        "number": LongType(),
        "amount": DecimalType(18, 2),
        "day": DateType(),
        "moment": TimestampNTZType(),
    }.items():
        schema.add(name, kind, nullable=name != "number")
    found = arrow_schema(schema)
    assert found == spark.createDataFrame([], schema).toArrow().schema
    assert found.field("amount").type == pa.decimal128(18, 2)


def test_columns_go_to_the_jvm_in_one_call(spark: SparkSession) -> None:
    rows = spark.range(3).selectExpr("id", "id + 1 AS next")
    texts = ["id AS `a b`", "concat('x\\\\', next, ',\u00e9 ') AS text", "*", "next % 2 = 0 AS even"]
    found = select_sql(rows, texts)
    assert (found.schema, found.collect()) == (rows.selectExpr(*texts).schema, rows.selectExpr(*texts).collect())
    with_nul = [*texts, "'\x00' AS nul"]
    assert select_sql(rows, with_nul).collect() == rows.selectExpr(*with_nul).collect()
    with pytest.raises(AnalysisException):
        select_sql(rows, [*texts, "nothing AS n"])


@pytest.mark.classic
def test_few_calls_select_many_columns(spark: SparkSession) -> None:
    rows = spark.range(3)
    texts = [f"id + {number} AS c{number}" for number in range(200)]
    select_sql(rows, texts)
    with calls_to_the_jvm() as calls:
        found = select_sql(rows, texts)
    assert calls[0] <= 10
    assert len(found.columns) == 200


def test_no_other_module_reads_private_attributes_of_others() -> None:
    allowed = Path(spark_internals.__file__)
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.attr}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if path != allowed
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith(("_active_spark", "_gateway", "_jvm", "_jdf", "_jsc", "_jsparkSession", "_sc"))
        and isinstance(node.value, ast.Name | ast.Attribute)
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    ]
    assert found == []
    undocumented = ("pyspark.java_gateway", "pyspark.sql.pandas", "pyspark.logger", "pyspark.core")
    importing = [
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if path != allowed and any(name in path.read_text(encoding="utf-8") for name in undocumented)
    ]
    assert importing == []
