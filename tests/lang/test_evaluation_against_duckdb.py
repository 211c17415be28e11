"""Values against an independent engine, in bulk, wherever DuckDB and the language mean the same."""

import random
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from decimal import Decimal

import duckdb
import pytest

from clew.diagnostics import PlainText
from clew.lang import Grouped, Row, Scalar, Scope, Table, Type, Value, check, evaluator, group_evaluator, parse
from clew.lang.types import BOOLEAN, DATE, INTEGER, STRING, decimal

COLUMNS: dict[str, Type] = {
    "a": decimal(12, 2),
    "b": decimal(18, 6),
    "i": INTEGER,
    "j": INTEGER,
    "n": INTEGER,
    "s": STRING,
    "t": STRING,
    "p": BOOLEAN,
    "q": BOOLEAN,
    "d": DATE,
    "e": DATE,
    "g": STRING,
}
ROWS = 600
TODAY = date(2026, 1, 31)
LETTERS = "aAbBzZ éÉñÑ名前😀-/ "
MONTH_ENDS = [
    date(2024, 2, 29),
    date(2023, 2, 28),
    date(2000, 2, 29),
    date(1900, 2, 28),
    date(2026, 12, 31),
    date(1, 1, 1),
]


def _cell(column: str, chance: random.Random) -> Value:
    if column != "g" and chance.random() < 0.15:
        return None
    match COLUMNS[column]:
        case Type(kind=kind, scale=scale) if kind == "decimal":
            return Decimal(chance.choice([chance.randint(-3000, 3000), chance.randint(-(10**11), 10**11)])).scaleb(
                -scale
            )
        case _ if column == "n":
            return chance.randint(1, 8)
        case _ if column == "g":
            return chance.choice(["x", "y", "z"])
        case kind if kind == INTEGER:
            return chance.choice([chance.randint(-9, 9), chance.randint(-(10**9), 10**9)])
        case kind if kind == STRING:
            return "".join(chance.choice(LETTERS) for _ in range(chance.randint(0, 7)))
        case kind if kind == BOOLEAN:
            return chance.random() < 0.5
        case _:
            return chance.choice([chance.choice(MONTH_ENDS), date(2019, 1, 1) + timedelta(chance.randint(0, 3000))])


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Value]]:
    chance = random.Random(20260131)
    return [{column: _cell(column, chance) for column in COLUMNS} for _ in range(ROWS)]


@pytest.fixture(scope="module")
def query(rows: list[dict[str, Value]]) -> Iterator[Callable[[str], list[tuple[Value, ...]]]]:
    """Runs SQL over a table `r` that holds the same rows, in the order of `k`."""
    names = {INTEGER: "BIGINT", STRING: "VARCHAR", BOOLEAN: "BOOLEAN", DATE: "DATE"}
    columns = ", ".join(f"{name} {names.get(type_, str(type_))}" for name, type_ in COLUMNS.items())
    connection = duckdb.connect(":memory:")
    connection.execute("SET threads = 1")
    connection.execute(f"CREATE TABLE r (k BIGINT, {columns})")
    marks = ", ".join("?" * (len(COLUMNS) + 1))
    connection.execute("BEGIN")
    connection.executemany(f"INSERT INTO r VALUES ({marks})", [[k, *row.values()] for k, row in enumerate(rows)])
    connection.execute("COMMIT")
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


SAME_TEXT = """
    a + b | a - b | -a | a + 1.5 | i + j | i - j | i * j | a + i | ABS(a) | ABS(i) | FLOOR(a) | FLOOR(b) | CEIL(a)
    ROUND(a) | ROUND(a, 1) | ROUND(b, 4) | ROUND(b, 0) | ROUND(a, 2) | ROUND(i, -2) | ROUND(b, 9)
    a = b | a <> b | a < b | a <= 1.5 | a > i | a >= i | s = t | s < t | s >= t | d = e | d < e | p = q | p < q
    p AND q | p OR q | NOT p | p AND q OR NOT p AND q | p AND NULL | p OR NULL | NOT (p AND q) = (NOT p OR NOT q)
    i IN (1, 2, 3) | i IN (1, NULL) | i NOT IN (1, 2, NULL) | s IN (t, "a") | a IN (1, i, b) | NULL IN (1, 2)
    i IS NULL | s IS NOT NULL | (p AND q) IS NULL | COALESCE(a, b, 0) | COALESCE(i, j) | COALESCE(s, t, "none")
    UPPER(s) | LOWER(s) | TRIM(s) | LEFT(s, n) | RIGHT(s, n) | CONTAINS(s, t) | REPLACE(s, "a", t) | SUBSTRING(s, n, 2)
    SUBSTRING(s, n, n) | YEAR(d) | MONTH(d) | DAY(d) | DATE("2024-02-29") | d > DATE("2023-12-31")
""".replace("\n", "|")


def _months(end: str, start: str) -> str:
    """Whole months; DuckDB's own function also counts one that ends with the last day of a shorter month."""
    first, last = (f"(year({each}) * 12 + month({each}))" for each in (start, end))
    return f"({last} - {first} - CAST(day({end}) < day({start}) AS BIGINT))"


REWORDED = {
    "a * b": "CAST(a AS DECIMAL(20, 2)) * b",
    "LEN(s)": "length(s)",
    "CONCAT(s, t, s)": "s || t || s",
    "STARTSWITH(s, t)": "starts_with(s, t)",
    "ENDSWITH(s, t)": "ends_with(s, t)",
    "ISNULL(p)": "p IS NULL",
    "IF(p, a, b)": "CASE WHEN p THEN a ELSE b END",
    "IF(a > i, s, t)": "CASE WHEN a > i THEN s ELSE t END",
    "MIN(a, b)": "CASE WHEN a IS NOT NULL AND b IS NOT NULL THEN least(a, b) END",
    "MAX(i, j, n)": "CASE WHEN i IS NOT NULL AND j IS NOT NULL AND n IS NOT NULL THEN greatest(i, j, n) END",
    "MAX(s, t)": "CASE WHEN s IS NOT NULL AND t IS NOT NULL THEN greatest(s, t) END",
    "MIN(d, e)": "CASE WHEN d IS NOT NULL AND e IS NOT NULL THEN least(d, e) END",
    "MOD(i, j)": "CASE WHEN j <> 0 THEN ((i % j) + j) % j END",
    "DATEDIFF(d, e)": "date_diff('day', e, d)",
    "DATEADD(d, n)": "CAST(d + CAST(n AS INTEGER) AS DATE)",
    "DATEADD(e, n * 30)": "CAST(e + CAST(n * 30 AS INTEGER) AS DATE)",
    "DATE(2000 + n, n, n * 3)": "make_date(2000 + n, n, n * 3)",
    "TO_STRING(a)": "CAST(a AS VARCHAR)",
    "TO_STRING(i)": "CAST(i AS VARCHAR)",
    "TO_STRING(d)": "CAST(d AS VARCHAR)",
    "TO_STRING(p)": "upper(CAST(p AS VARCHAR))",
    "TO_INTEGER(a)": "CAST(a AS BIGINT)",
    "TO_INTEGER(TO_STRING(i))": "i",
    "TO_DECIMAL(b, 18, 2)": "CAST(b AS DECIMAL(18, 2))",
    "TO_DECIMAL(TO_STRING(b), 18, 4)": "CAST(CAST(b AS VARCHAR) AS DECIMAL(18, 4))",
    "TO_DATE(TO_STRING(d))": "d",
    "i / 0": "CAST(NULL AS BIGINT)",
    "CASE WHEN p THEN i WHEN q THEN j ELSE n END": "CASE WHEN p THEN i WHEN q THEN j ELSE n END",
    'CASE s WHEN t THEN "t" WHEN "a" THEN "a" END': "CASE s WHEN t THEN 't' WHEN 'a' THEN 'a' END",
    "i BETWEEN j AND n": "i BETWEEN j AND n",
    "d NOT BETWEEN e AND d": "d NOT BETWEEN e AND d",
    "NULLIF(i, n)": "nullif(i, n)",
    "IFNULL(s, t)": "ifnull(s, t)",
    "GREATEST(i, j, n)": "greatest(i, j, n)",
    "LEAST(s, t)": "least(s, t)",
    's LIKE "%a_%"': "s LIKE '%a_%'",
    's NOT LIKE "%-" ESCAPE "!"': "s NOT LIKE '%-'",
    'REGEX_MATCH(s, "[a-c]+.?$")': "regexp_matches(s, '[a-c]+.?$')",
    'REGEX_EXTRACT(s, "[A-Z]+([a-z]*)")': (
        "CASE WHEN regexp_matches(s, '[A-Z]+([a-z]*)') THEN regexp_extract(s, '[A-Z]+([a-z]*)', 1) END"
    ),
    'REGEX_REPLACE(s, "[^a-zA-Z]", "*")': "regexp_replace(s, '[^a-zA-Z]', '*', 'g')",
    "FIND(s, t)": "instr(s, t)",
    "REPEAT(s, n)": "repeat(s, n)",
    'LPAD(s, n, "*")': "lpad(s, CAST(n AS INTEGER), '*')",
    'RPAD(s, n, "ab")': "rpad(s, CAST(n AS INTEGER), 'ab')",
    "HASH(s)": "sha256(s)",
    "SIGN(a)": "CAST(sign(a) AS BIGINT)",
    "TRUNC(a)": "CAST(trunc(a) AS DECIMAL(12, 0))",
    "EOMONTH(d)": "last_day(d)",
    "EDATE(d, n)": "CAST(d + to_months(CAST(n AS INTEGER)) AS DATE)",
    'DATE_TRUNC("month", d)': "CAST(date_trunc('month', d) AS DATE)",
    'DATE_TRUNC("week", d)': "CAST(date_trunc('week', d) AS DATE)",
    'DATE_TRUNC("quarter", d)': "CAST(date_trunc('quarter', d) AS DATE)",
    'DATEDIFF(d, e, "month")': f"CASE WHEN d >= e THEN {_months('d', 'e')} ELSE -({_months('e', 'd')}) END",
    'DATEDIFF(d, e, "year")': f"CASE WHEN d >= e THEN {_months('d', 'e')} // 12 ELSE -({_months('e', 'd')} // 12) END",
    'DATEDIFF(d, e, "week")': "date_sub('week', e, d)",
    "WEEKDAY(d)": "isodow(d)",
    'TO_STRING(d, "dd.MM.yyyy")': "strftime(d, '%d.%m.%Y')",
    'TO_STRING(d, "dd-MMM-yyyy")': "strftime(d, '%d-%b-%Y')",
    'TO_STRING(i, "#,##0")': "format('{:,}', i)",
    'TO_DATE(TO_STRING(d, "dd.MM.yyyy"), "dd.MM.yyyy")': "d",
    "TRY_TO_INTEGER(s)": "CASE WHEN regexp_full_match(trim(s), '[+-]?[0-9]+') THEN CAST(s AS BIGINT) END",
    "IF(j = 0, NULL, TO_INTEGER(FLOOR(i / j)))": "CASE WHEN j <> 0 THEN (i - ((i % j) + j) % j) // j END",
}


def _in_sql(text: str) -> str:
    return re.sub(r'DATE\("(.*?)"\)', r"DATE '\1'", text).replace('"', "'")


SAME_IN_SQL = [text.strip() for text in SAME_TEXT.split("|") if text.strip()]
CASES = [*((text, _in_sql(text)) for text in SAME_IN_SQL), *REWORDED.items()]


@pytest.mark.parametrize(("text", "sql"), CASES, ids=[text for text, _ in CASES])
def test_every_row_has_the_value_that_duckdb_gives(
    text: str,
    sql: str,
    rows: list[dict[str, Value]],
    query: Callable[[str], list[tuple[Value, ...]]],
) -> None:
    checked = check(parse(PlainText(text)), Scope((Table("r", COLUMNS),)), Scalar("in a test"))
    assert checked.expression is not None, checked.diagnostics
    evaluate = evaluator(checked.expression)
    ours = [evaluate(Row({"r": row}, TODAY)) for row in rows]
    theirs = [value for (value,) in query(f"SELECT {sql} FROM r ORDER BY k")]
    assert [case for case in zip(rows, ours, theirs, strict=True) if case[1] != case[2]][:3] == []


AGGREGATIONS = {
    "SUM(a)": "sum(a)",
    "SUM(i)": "sum(i)",
    "SUM(a * b)": "sum(CAST(a AS DECIMAL(20, 2)) * b)",
    "COUNT(s)": "count(s)",
    "COUNT_ALL()": "count(*)",
    "COUNT_DISTINCT(n)": "count(DISTINCT n)",
    "COUNT_DISTINCT(s)": "count(DISTINCT s)",
    "MIN_AGG(a)": "min(a)",
    "MAX_AGG(s)": "max(s)",
    "MIN_AGG(d)": "min(d)",
    "MAX_AGG(a + b) - MIN_AGG(b)": "max(a + b) - min(b)",
    "SUM(IF(p, a, 0))": "sum(CASE WHEN p THEN a ELSE 0 END)",
    "COALESCE(SUM(NULL + i), 0)": "0",
    "CONCAT(g, MAX_AGG(t))": "g || max(t)",
    "COUNT_IF(p)": "count_if(p)",
    '"total"': "'total'",
    "SUM_IF(a, p)": "sum(a) FILTER (WHERE p)",
    "MEDIAN(i)": "CAST(quantile_cont(CAST(i AS DECIMAL(20, 4)), 0.5) AS DECIMAL(27, 4))",
    "PERCENTILE(a, 0.25)": "CAST(quantile_cont(CAST(a AS DECIMAL(25, 6)), 0.25) AS DECIMAL(25, 6))",
    "FIRST(a, d, i, j, b)": "first(a ORDER BY d, i, j, b, a) FILTER (WHERE a + b + i + j + day(d) IS NOT NULL)",
    'STRING_AGG(s, "-")': "string_agg(s, '-' ORDER BY s)",
    "ROUND(STDDEV(a), 4)": "round(stddev_samp(a), 4)",
    "ROUND(VARIANCE(n), 9)": "round(var_samp(n), 9)",
    "ROUND(WEIGHTED_AVG(a, n), 6)": (
        "CAST(round(CAST(sum(a * n) AS DECIMAL(38, 12)) / sum(n) FILTER (WHERE a IS NOT NULL), 6) AS DECIMAL(38, 6))"
    ),
}


@pytest.mark.parametrize(("text", "sql"), AGGREGATIONS.items(), ids=AGGREGATIONS)
def test_every_group_has_the_value_that_duckdb_gives(
    text: str,
    sql: str,
    rows: list[dict[str, Value]],
    query: Callable[[str], list[tuple[Value, ...]]],
) -> None:
    checked = check(parse(PlainText(text)), Scope((Table("r", COLUMNS),)), Grouped(frozenset({"g"})))
    assert checked.expression is not None, checked.diagnostics
    evaluate = group_evaluator(checked.expression)
    groups: dict[Value, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["g"], []).append(Row({"r": row}, TODAY))
    ours = {group: evaluate(members) for group, members in groups.items()}
    assert ours == dict(query(f"SELECT g, {sql} FROM r GROUP BY g"))  # type: ignore[arg-type]
