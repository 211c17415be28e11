"""What is left to DuckDB is what the evaluator says, for every row: TRUE, FALSE and NULL alike."""

from datetime import date
from typing import Any

import duckdb
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.diagnostics import ClewError, PlainText
from clew.lang import Row, check_condition, evaluator, parse
from clew.lang.typed import ColumnValue, Expression
from clew.lang.types import Kind
from clew.trace.prefilter import conjuncts, translated
from clew.trace.sql import Sql, quoted, sql_type
from tests.strategies.expressions import COLUMNS, SCOPE, TABLE, condition_texts, rows
from tests.tiers import examples

TODAY = date(2026, 1, 31)
NUMBERS = ["1", "1.5", "-1.50", "0.001", "1.500", "9223372036854775808", "12345678901234567890.5", "1 + 1", "NULL"]
COMPARED = {
    ("i", "j", "amount", "rate", "wide"): NUMBERS,
    ("text", "größe", "_period"): ['"EUR"', '"ß"', '"x\ty"', "NULL"],
    ("day",): ['DATE("2024-02-29")', "TODAY()"],
    ("flag",): ["TRUE", "FALSE"],
}
COMPARISONS = st.sampled_from(list(COMPARED)).flatmap(
    lambda columns: st.builds(
        "{} {} {}".format,
        st.sampled_from(columns),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
        st.sampled_from(COMPARED[columns]),
    )
)
CONDITIONS = st.one_of(
    COMPARISONS,
    st.builds("NOT ({}) OR {}".format, COMPARISONS, COMPARISONS),
    st.builds("({}) AND ({})".format, COMPARISONS, COMPARISONS),
    st.sampled_from(
        [
            'text IN ("EUR", "", NULL)',
            "amount IN (1, 1.5, -1.50)",
            "i NOT IN (1, 2)",
            'CONTAINS(text, "")',
            'STARTSWITH(größe, "na")',
            'ENDSWITH(text, "😀!")',
            "wide IS NULL",
            "flag IS NOT NULL AND NOT flag",
        ]
    ),
    condition_texts(depth=2),
)


@pytest.fixture(scope="module")
def database() -> Any:
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        types = ", ".join(f"{quoted(name)} {sql_type(type_)}" for name, type_ in COLUMNS.items())
        connection.execute(f"CREATE TABLE rows ({types})")
        yield connection


def column(value: ColumnValue) -> Sql | None:
    return Sql(quoted(value.column)) if value.table == TABLE else None


def checked(text: str) -> Expression:
    condition = check_condition(parse(PlainText(text)), SCOPE, "in a test").expression
    assert condition is not None
    return condition


def is_condition(text: str) -> bool:
    return check_condition(parse(PlainText(text)), SCOPE, "in a test").expression is not None


@settings(max_examples=examples(200))
@given(CONDITIONS, rows())
def test_a_translated_condition_is_what_the_evaluator_says(
    database: Any, text: str, tables: dict[str, dict[str, Any]]
) -> None:
    assume(is_condition(text))
    condition = checked(text)
    sql = translated(condition, column, TODAY)
    if sql is None:
        return
    cells = tables[TABLE]
    marks = ", ".join(f"CAST(? AS {sql_type(type_)})" for type_ in COLUMNS.values())
    stored = [str(cells[name]) if _is_decimal(name, cells) else cells[name] for name in COLUMNS]
    query = f"WITH r ({', '.join(map(quoted, COLUMNS))}) AS (SELECT {marks}) SELECT {sql.text} FROM r"
    [(found,)] = database.execute(query, [*stored, *sql.parameters]).fetchall()
    assert found == evaluator(condition)(Row(tables, TODAY))


def _is_decimal(name: str, cells: dict[str, Any]) -> bool:
    return COLUMNS[name].kind is Kind.DECIMAL and cells[name] is not None


@settings(max_examples=examples(100))
@given(CONDITIONS, rows())
def test_the_parts_of_a_condition_are_all_true_where_the_whole_is(text: str, tables: dict[str, dict[str, Any]]) -> None:
    assume(is_condition(text))
    condition = checked(text)
    row = Row(tables, TODAY)
    try:
        whole = evaluator(condition)(row)
    except ClewError:
        assume(False)
    if whole is True:
        assert all(evaluator(part)(row) is True for part in conjuncts(condition))


@pytest.mark.parametrize(
    "text",
    ["share > 0.5", 'at > DATE("2026-01-01")', "amount = 1.505", "amount > i", "LEN(text) = 1", "fx.since = day"],
)
def test_what_is_not_certain_is_left_to_the_evaluator(text: str) -> None:
    assert translated(checked(text), column, TODAY) is None


@pytest.mark.parametrize("text", ["amount = 1.50", "i > 3", "i = 3.0", 'text = "EUR"', "amount >= 1 AND flag"])
def test_simple_comparisons_are_left_to_duckdb(text: str) -> None:
    assert translated(checked(text), column, TODAY) is not None
