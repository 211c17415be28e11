"""Holds Spark's evaluation of expressions against the one in Python, many expressions in one job."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from clew.diagnostics import ClewError, PlainText
from clew.engine.sql import quoted, spark_type, sql_of
from clew.lang import (
    Expression,
    Grouped,
    Row,
    Scalar,
    Scope,
    Value,
    check,
    evaluator,
    group_evaluator,
    parse,
    text_of,
)
from clew.lang.typed import Apply, ColumnValue, Constant, Convert

_NO_CODE_GENERATION = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
TODAY = date(2026, 1, 31)
ROW = "_row"
_IN_ONE_JOB = 250

Tables = Mapping[str, Mapping[str, Value]]


class _Failure:
    """What stands for a value where Python reports an error."""

    def __repr__(self) -> str:
        return "an error"


FAILURE = _Failure()


@dataclass(frozen=True)
class Rows:
    """Rows of typed tables, as Python and Spark see them."""

    scope: Scope
    tables: Sequence[Tables]

    def in_python(self) -> list[Row]:
        return [Row(tables, TODAY) for tables in self.tables]

    def in_spark(self, spark: SparkSession) -> DataFrame:
        columns = [(table.name, name, type_) for table in self.scope.tables for name, type_ in table.columns.items()]
        schema = ", ".join(f"{column_name(table, name)} {spark_type(type_)}" for table, name, type_ in columns)
        data = [
            (number, *(tables[table][name] for table, name, _ in columns)) for number, tables in enumerate(self.tables)
        ]
        return spark.createDataFrame(data, f"{ROW} INT, {schema}").coalesce(1)


@contextmanager
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Spark evaluates without generating code, which takes less time for many expressions on few rows."""
    for name, value in _NO_CODE_GENERATION.items():
        spark.conf.set(name, value)
    yield
    for name in _NO_CODE_GENERATION:
        spark.conf.unset(name)


def column_name(table: str, name: str) -> str:
    return quoted(f"{table}.{name}")


def typed(source: str, scope: Scope) -> Expression | None:
    """The expression of a source; None where the checker refuses it, for a constant that is out of range."""
    return check(parse(PlainText(source)), scope, Scalar("in a test")).expression


def typed_aggregation(source: str, scope: Scope, group_by: str) -> Expression | None:
    return check(parse(PlainText(source)), scope, Grouped(frozenset({group_by}))).expression


def sql(expression: Expression) -> str:
    return sql_of(expression, column_name, TODAY)


def value_in_python(expression: Expression, row: Row) -> object:
    try:
        return evaluator(expression)(row)
    except ClewError:
        return FAILURE


def differences(frame: DataFrame, expressions: Sequence[Expression], rows: Sequence[Row]) -> list[str]:
    """What Spark sees otherwise, in words. Rows for which Python reports an error are left out."""
    expected = [[value_in_python(expression, row) for row in rows] for expression in expressions]
    found = list[str]()
    for start in range(0, len(expressions), _IN_ONE_JOB):
        part = slice(start, start + _IN_ONE_JOB)
        found += _differences_in_one_job(frame, expressions[part], expected[part])
    return found


def _differences_in_one_job(
    frame: DataFrame, expressions: Sequence[Expression], expected: Sequence[Sequence[object]]
) -> list[str]:
    columns = [
        expr(_where_python_has_a_value(expression, values)).alias(f"e{number}")
        for number, (expression, values) in enumerate(zip(expressions, expected, strict=True))
    ]
    try:
        selected = frame.select(ROW, *columns)
        actual = sorted(selected.collect())
    except PySparkException as error:
        if len(expressions) == 1:
            return [f"{text_of(expressions[0])}: {_first_line(error)}\n    {sql(expressions[0])}"]
        half = len(expressions) // 2
        return [
            *_differences_in_one_job(frame, expressions[:half], expected[:half]),
            *_differences_in_one_job(frame, expressions[half:], expected[half:]),
        ]
    found = list[str]()
    for number, (expression, values) in enumerate(zip(expressions, expected, strict=True)):
        spark_name = selected.schema[f"e{number}"].dataType.simpleString()
        if spark_name != spark_type(expression.type).lower():
            found.append(f"{text_of(expression)}: {expression.type} is {spark_name}\n    {sql(expression)}")
        for row, value in zip(actual, values, strict=True):
            if value is not FAILURE and not same(value, row[number + 1]):
                found.append(
                    f"{text_of(expression)}: row {row[0]}: {value!r} is {row[number + 1]!r}\n    {sql(expression)}"
                )
                break
    return found


def _where_python_has_a_value(expression: Expression, values: Sequence[object]) -> str:
    rows = [str(number) for number, value in enumerate(values) if value is not FAILURE]
    if len(rows) == len(values):
        return sql(expression)
    return f"CASE WHEN {ROW} IN ({', '.join(rows) or 'NULL'}) THEN {sql(expression)} END"


def same(a: object, b: object) -> bool:
    """Whether two values are one, to the last digit."""
    if isinstance(a, float) and isinstance(b, float):
        return repr(a) == repr(b)
    return type(a) is type(b) and a == b


def unnoticed_errors(frame: DataFrame, expressions: Sequence[Expression], rows: Sequence[Row], most: int) -> list[str]:
    """Expressions that are an error in Python for a row, and a value in Spark; at most so many are tried."""
    found, tried = list[str](), 0
    for expression in expressions:
        number = _row_with_error(expression, rows)
        if number is None:
            continue
        tried += 1
        if tried > most:
            break
        try:
            value = frame.where(f"{ROW} = {number}").select(expr(sql(expression))).collect()[0][0]
        except PySparkException:
            continue
        found.append(f"{text_of(expression)}: row {number}: an error is {value!r}\n    {sql(expression)}")
    return found


def _row_with_error(expression: Expression, rows: Sequence[Row]) -> int | None:
    for number, row in enumerate(rows):
        if value_in_python(expression, row) is FAILURE and not _can_be_hidden(expression, row):
            return number
    return None


def _can_be_hidden(expression: Expression, row: Row) -> bool:
    """Whether an error stands beside a NULL or a zero, or where its value may not matter: Spark need not see it."""
    match expression:
        case Constant() | ColumnValue():
            return False
        case Convert(operand):
            return _can_be_hidden(operand, row)
        case Apply(_, arguments):
            values = [value_in_python(argument, row) for argument in arguments]
            hides = expression.function in {"ISNULL", "IF", "AND", "OR"} or None in values or 0 in values
            return (FAILURE in values and hides) or any(_can_be_hidden(argument, row) for argument in arguments)


def group_differences(
    frame: DataFrame, expressions: Sequence[Expression], rows: Sequence[Row], group_by: tuple[str, str]
) -> list[str]:
    """What Spark sees otherwise in aggregations, in words. Aggregations with an error in Python are left out."""
    table, column = group_by
    groups = dict[Value, list[Row]]()
    for row in rows:
        groups.setdefault(row.tables[table][column], []).append(row)
    calculable = [(each, values) for each in expressions if (values := _values_of_groups(each, groups)) is not None]
    key = column_name(table, column)
    aggregated = frame.groupBy(expr(key).alias(f"{table}.{column}")).agg(
        *(expr(sql(expression)).alias(f"e{number}") for number, (expression, _) in enumerate(calculable))
    )
    found = list[str]()
    for group, *results in aggregated.collect():
        for (expression, values), result in zip(calculable, results, strict=True):
            if not _nearly_same(values[group], result):
                shown = f"{values[group]!r} is {result!r}"
                found.append(f"{text_of(expression)}: group {group!r}: {shown}\n    {sql(expression)}")
    return found


def _values_of_groups(expression: Expression, groups: Mapping[Value, Sequence[Row]]) -> dict[Value, Value] | None:
    try:
        return {key: group_evaluator(expression)(rows) for key, rows in groups.items()}
    except ClewError:
        return None


def _nearly_same(a: object, b: object) -> bool:
    """Sums of doubles depend on their order, in the last digits."""
    if isinstance(a, float) and isinstance(b, float):
        return same(a, b) or math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
    return same(a, b)


def _first_line(error: PySparkException) -> str:
    return str(error).splitlines()[0]
