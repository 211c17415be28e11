"""What DuckDB computes for an expression is what the evaluator computes, but for rows that are left to that."""

from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from hypothesis import example, given, settings

from clew.diagnostics import ClewError, PlainText
from clew.lang import Row, Scalar, Value, check, evaluator, parse
from clew.lang.typed import ColumnValue, Expression
from clew.trace.exact_sql import Doubts, exact_value
from clew.trace.sql import Sql, joined, quoted, sql_type
from tests.strategies.expressions import COLUMNS, JOINED, JOINED_COLUMNS, SCOPE, TABLE, expression_texts, rows
from tests.tiers import examples

TODAY = date(2026, 1, 31)
ALL = {TABLE: COLUMNS, JOINED: JOINED_COLUMNS}
NONE: dict[str, dict[str, Value]] = {table: dict.fromkeys(columns) for table, columns in ALL.items()}


@pytest.fixture(scope="module")
def database() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        yield connection


def column(value: ColumnValue) -> Sql | None:
    return Sql(quoted(f"{value.table}.{value.column}"))


def checked(text: str) -> Expression | None:
    return check(parse(PlainText(text)), SCOPE, Scalar("in a test")).expression


def of_row(sql: Sql, tables: dict[str, dict[str, Value]], database: Any) -> list[Any]:
    names, marks, values = list[str](), list[str](), list[Any]()
    for table, columns in ALL.items():
        for name, type_ in columns.items():
            names.append(quoted(f"{table}.{name}"))
            marks.append(f"CAST(? AS {sql_type(type_)})")
            value = tables[table][name]
            values.append(str(value) if isinstance(value, Decimal) else value)
    query = f"WITH r ({', '.join(names)}) AS (SELECT {', '.join(marks)}) SELECT {sql.text} FROM r"
    [found] = database.execute(query, [*values, *sql.parameters]).fetchall()
    return list(found)


@settings(max_examples=examples(600))
@given(expression_texts(depth=3), rows())
@example("UPPER(text)", {**NONE, TABLE: {**NONE[TABLE], "text": "ß"}})
@example("MOD(i, j)", {**NONE, TABLE: {**NONE[TABLE], "i": -7, "j": 3}})
@example("MOD(i, j)", {**NONE, TABLE: {**NONE[TABLE], "i": -7, "j": 0}})
@example(
    "ROUND(amount * rate, 2)", {**NONE, TABLE: {**NONE[TABLE], "amount": Decimal("-0.50"), "rate": Decimal("0.01")}}
)
@example("DATEADD(day, i)", {**NONE, TABLE: {**NONE[TABLE], "day": date(9999, 12, 31), "i": 1}})
@example('CONCAT(text, "a")', NONE)
def test_what_duckdb_computes_is_what_the_evaluator_computes(
    database: Any, text: str, tables: dict[str, dict[str, Value]]
) -> None:
    expression = checked(text)
    doubts: Doubts = []
    sql = None if expression is None else exact_value(expression, column, TODAY, doubts=doubts)
    if expression is None or sql is None:
        return
    doubt = joined(" OR ", ["coalesce(" + each + ", FALSE)" for each in (*doubts, Sql("FALSE"))])
    try:
        found, is_doubtful = of_row(sql + ", " + doubt, tables, database)
    except duckdb.Error:
        return  # the evaluator decides, whatever it says
    if is_doubtful:
        return
    expected = evaluator(expression)(Row(tables, TODAY))
    assert found == expected
    assert type(found) is type(expected) or {type(found), type(expected)} <= {int, Decimal}


@given(rows())
@settings(max_examples=examples(100))
def test_a_value_that_the_evaluator_refuses_is_not_computed(database: Any, tables: dict[str, dict[str, Value]]) -> None:
    for text in ("i + j", "i * j", "TO_DECIMAL(amount, 5, 2)", "-i", "DATEADD(day, i)", "TO_INTEGER(text)"):
        expression = checked(text)
        assert expression is not None
        doubts: Doubts = []
        sql = exact_value(expression, column, TODAY, doubts=doubts)
        assert sql is not None
        try:
            evaluator(expression)(Row(tables, TODAY))
        except ClewError:
            doubt = joined(" OR ", ["coalesce(" + each + ", FALSE)" for each in (*doubts, Sql("FALSE"))])
            try:
                [_, is_doubtful] = of_row(sql + ", " + doubt, tables, database)
            except duckdb.Error:
                continue
            assert is_doubtful, text


@pytest.mark.parametrize(
    "text",
    ["share * 2", "amount / rate", "YEAR(at)", 'text LIKE "a%"', "PROPER(text)", 'ROUND(amount, 1, "half_even")'],
)
def test_what_is_not_certain_is_left_to_the_evaluator(text: str) -> None:
    expression = checked(text)
    assert expression is not None
    assert exact_value(expression, column, TODAY, doubts=[]) is None


@pytest.mark.parametrize(
    "text",
    [
        "ROUND(amount * rate, 2)",
        "MOD(i, 4) = 0",
        'CONCAT(text, " large")',
        "amount > i",
        "LEN(text) > 2",
        'CASE WHEN amount > 1 THEN "a" ELSE text END',
        "TO_INTEGER(text)",
        "currency = text",
    ],
)
def test_common_expressions_are_computed_by_duckdb(text: str) -> None:
    expression = checked(text)
    assert expression is not None
    assert exact_value(expression, column, TODAY, doubts=[]) is not None


def test_doubtful_functions_are_not_computed_for_those_who_cannot_ask() -> None:
    for text in ("UPPER(text)", "TO_INTEGER(text)"):
        expression = checked(text)
        assert expression is not None
        assert exact_value(expression, column, TODAY) is None
