"""Every function of the language: what the evaluator says, DuckDB and the verifier of packs say too.

Spark is held against the evaluator, for every function, in tests/engine/test_sql_cases.py.
"""

from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import duckdb
import pytest

from clew.diagnostics import ClewError
from clew.evidence import pack_verifier
from clew.evidence.group_sql import AGGREGATES_IN_SQL, aggregate_in_sql
from clew.lang import Expression, Row, Value, evaluator, group_evaluator
from clew.lang.functions import FUNCTIONS, AggregateFunction, Function, LazyFunction, is_aggregate
from clew.lang.typed import Apply, ColumnValue, columns_of, to_json, walk
from clew.trace.exact_sql import CONVERSIONS, FUNCTIONS_IN_SQL, Doubts, exact_value
from clew.trace.json_values import json_value
from clew.trace.sql import Sql, joined, quoted, sql_type
from tests.strategies.expressions import COLUMNS, JOINED, JOINED_COLUMNS, TABLE
from tests.strategies.function_calls import ALL, calls, hard_rows

TODAY = date(2026, 1, 31)
Tables = dict[str, dict[str, Value]]
REFUSED = "is refused"
LEFT = {name for name, made in {**FUNCTIONS_IN_SQL, **AGGREGATES_IN_SQL}.items() if isinstance(made, str)}
"""Functions that DuckDB does not compute; what stands there is the reason."""


@pytest.fixture(scope="module")
def rows() -> list[Tables]:
    return hard_rows()


Query = Callable[[str, list[Any]], list[tuple[Any, ...]]]


@pytest.fixture(scope="module")
def query(rows: list[Tables]) -> Iterator[Query]:
    """Asks DuckDB about a table `r` of the rows; `n` is their number."""
    columns = [
        (t, name, type_) for t, held in ((TABLE, COLUMNS), (JOINED, JOINED_COLUMNS)) for name, type_ in held.items()
    ]
    named = ", ".join(f"{quoted(f'{table}.{name}')} {sql_type(type_)}" for table, name, type_ in columns)
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        connection.execute(f"CREATE TABLE r (n BIGINT, {named})")
        for number, row in enumerate(rows):
            values = [row[table][name] for table, name, _ in columns]
            texts = [str(value) if isinstance(value, Decimal) else value for value in values]
            connection.execute(f"INSERT INTO r VALUES ({', '.join('?' * (len(columns) + 1))})", [number, *texts])
        yield lambda sql, parameters: connection.execute(sql, parameters).fetchall()


def test_each_function_is_computed_by_duckdb_or_has_a_reason() -> None:
    scalar = {name for name, each in FUNCTIONS.items() if isinstance(each, Function | LazyFunction)}
    assert FUNCTIONS_IN_SQL.keys() | CONVERSIONS == scalar
    assert not FUNCTIONS_IN_SQL.keys() & CONVERSIONS
    assert set(AGGREGATES_IN_SQL) == {name for name, each in FUNCTIONS.items() if isinstance(each, AggregateFunction)}


def column(value: ColumnValue) -> Sql | None:
    return Sql(quoted(f"{value.table}.{value.column}"))


def attempted(calculate: Callable[[], Any]) -> Any:
    try:
        return calculate()
    except (ClewError, ArithmeticError, ValueError):
        return REFUSED


def as_seen(tables: Tables) -> pack_verifier.SeenValues:
    """A row as an explanation in a pack has it."""
    values = {name: json_value(value) for name, value in tables[TABLE].items()}
    values |= {f"{JOINED}.{name}": json_value(value) for name, value in tables[JOINED].items()}
    return pack_verifier.SeenValues(values, TABLE, TODAY)


def is_same_in_a_pack(ours: Any, theirs: Any) -> bool:
    return pack_verifier.is_same(Fraction(ours) if isinstance(ours, Decimal) else ours, theirs)


def functions_in(expression: Expression) -> set[str]:
    return {each.function for each in walk(expression) if isinstance(each, Apply)}


def of_rows(expression: Expression, rows: list[Tables]) -> list[Any]:
    """What the evaluator says of each row; that of packs says the same."""
    evaluate, document = evaluator(expression), to_json(expression)
    found = list[Any]()
    for row in rows:
        ours = attempted(partial(evaluate, Row(row, TODAY)))
        if ours is not REFUSED:
            theirs = attempted(partial(pack_verifier.calculate, document, as_seen(row)))
            assert is_same_in_a_pack(ours, theirs), (document, row, ours, theirs)
        found.append(ours)
    return found


def of_group(expression: Expression, rows: list[Tables]) -> Any:
    """What the evaluator says of a group; that of packs says the same."""
    ours = attempted(partial(group_evaluator(expression), [Row(row, TODAY) for row in rows]))
    if ours is not REFUSED:
        document, seen = to_json(expression), [as_seen(row) for row in rows]
        theirs = attempted(partial(pack_verifier.calculate_group, document, seen))
        assert is_same_in_a_pack(ours, theirs), (document, rows, ours, theirs)
    return ours


def assert_duckdb_agrees(query: Query, sql: Sql, where: str, expected: Any) -> None:
    """A value and a doubt in SQL: what DuckDB cannot compute, or doubts, is the evaluator's."""
    asked = "SELECT " + sql + f" FROM r WHERE {where}"
    try:
        [(found, is_doubtful)] = query(asked.text, [*asked.parameters])
    except duckdb.Error:
        return
    assert is_doubtful or found == expected, (asked.text, asked.parameters, expected, found)


def with_doubts(sql: Sql, doubts: Doubts, form: str = "{}") -> Sql:
    before, after = form.split("{}")
    listed = [before + each + after for each in ("coalesce(" + doubt + ", FALSE)" for doubt in doubts)]
    return sql + ", " + joined(" OR ", [*listed, Sql("FALSE")])


@pytest.mark.parametrize("name", [name for name in ALL if not is_aggregate(name) and ALL[name].examples])
def test_a_function_of_a_row_has_one_value(name: str, rows: list[Tables], query: Query) -> None:
    tried = calls(ALL[name])
    assert any(columns_of(expression) for expression in tried), "no call reads a column"
    values, is_computed = set[bool](), False
    for expression in tried:
        ours = of_rows(expression, rows)
        values |= {value is None or value is REFUSED for value in ours}
        doubts: Doubts = []
        sql = exact_value(expression, column, TODAY, doubts=doubts)
        if sql is not None and columns_of(expression):
            is_computed |= name in functions_in(expression)
            for number, value in enumerate(ours):
                assert_duckdb_agrees(query, with_doubts(sql, doubts), f"n = {number}", value)
    assert False in values, "every call is NULL or refused for every row"
    if name in FUNCTIONS_IN_SQL:
        assert is_computed == (name not in LEFT), FUNCTIONS_IN_SQL[name]


@pytest.mark.parametrize("name", [name for name in ALL if is_aggregate(name)])
def test_a_function_of_a_group_has_one_value(name: str, rows: list[Tables], query: Query) -> None:
    groups = [range(start, len(rows), 5) for start in range(5)]
    values, is_computed = set[bool](), False
    for expression in calls(ALL[name]):
        doubts: Doubts = []
        argument = partial(exact_value, column=column, today=TODAY, doubts=doubts)
        sql = exact_value(
            expression, lambda _: None, TODAY, doubts=doubts, aggregate=partial(aggregate_in_sql, value=argument)
        )
        is_computed |= sql is not None and name in functions_in(expression)
        for group in groups:
            ours = of_group(expression, [rows[number] for number in group])
            values.add(ours is None or ours is REFUSED)
            if sql is not None and ours is not REFUSED:
                among = f"n IN ({', '.join(map(str, group))})"
                assert_duckdb_agrees(query, with_doubts(sql, doubts, "bool_or({})"), among, ours)
    assert False in values, "every call is NULL or refused for every group"
    if name in AGGREGATES_IN_SQL:
        assert is_computed == (name not in LEFT), AGGREGATES_IN_SQL[name]
