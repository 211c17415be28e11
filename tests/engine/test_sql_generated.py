from collections.abc import Iterator
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from clew.lang import Expression
from tests.engine.sql_parity import (
    Rows,
    differences,
    group_differences,
    interpreted,
    typed,
    typed_aggregation,
    unnoticed_errors,
)
from tests.strategies.expressions import SCOPE, TABLE, aggregation_texts, expression_texts, rows

T = TypeVar("T")


def drawn(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """So many values of a strategy, the same ones every time."""
    values = list[T]()

    @settings(max_examples=count, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(strategy)
    def collect(value: T) -> None:
        values.append(value)

    collect()
    return values


@pytest.fixture(scope="module")
def generated() -> Rows:
    return Rows(SCOPE, drawn(rows(), 50))


@pytest.fixture(scope="module")
def frame(spark: SparkSession, generated: Rows) -> Iterator[DataFrame]:
    frame = generated.in_spark(spark).cache()
    yield frame
    frame.unpersist()


@pytest.fixture(scope="module")
def expressions() -> list[Expression]:
    found = (typed(source, SCOPE) for source in dict.fromkeys(drawn(expression_texts(depth=2), 1500)))
    return [expression for expression in found if expression is not None]


def test_generated_expressions_have_the_values_that_python_gives(
    spark: SparkSession, frame: DataFrame, generated: Rows, expressions: list[Expression]
) -> None:
    assert len(expressions) > 900
    with interpreted(spark):
        assert differences(frame, expressions, generated.in_python()) == []


def test_generated_expressions_have_the_same_values_in_generated_code(
    frame: DataFrame, generated: Rows, expressions: list[Expression]
) -> None:
    assert differences(frame, expressions[::8], generated.in_python()) == []


def test_generated_expressions_that_fail_in_python_fail_in_spark(
    frame: DataFrame, generated: Rows, expressions: list[Expression]
) -> None:
    assert unnoticed_errors(frame, expressions, generated.in_python(), most=40) == []


def test_generated_aggregations_have_the_values_that_python_gives(frame: DataFrame, generated: Rows) -> None:
    found = (typed_aggregation(source, SCOPE, "text") for source in dict.fromkeys(drawn(aggregation_texts(), 150)))
    aggregations = [each for each in found if each is not None]
    assert len(aggregations) > 80
    assert group_differences(frame, aggregations, generated.in_python(), (TABLE, "text")) == []
