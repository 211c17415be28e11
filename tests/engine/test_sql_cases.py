"""Cases in which Spark and Python would differ without special care."""

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import inf, nan

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from clew.diagnostics import UserError
from clew.engine.sql import quoted, spark_type
from clew.engine.sql.expressions import ENTRIES
from clew.lang import FUNCTIONS, Expression, Row, Scope, Table, Value, group_evaluator, parse_type
from clew.lang.typed import Apply, walk
from tests.engine.sql_parity import (
    TODAY,
    Rows,
    column_name,
    differences,
    group_differences,
    interpreted,
    sql,
    typed,
    typed_aggregation,
    unnoticed_errors,
)

_EXTREMES: dict[str, tuple[str, Sequence[Value]]] = {
    "i": ("integer", [0, 1, -1, 7, -7, 2**63 - 1, -(2**63), None, 12, 2**31, -(2**31), 3]),
    "j": ("integer", [3, -3, 0, None, 2**63 - 1, -(2**63), 1, -1, 5]),
    "money": (
        "decimal(18,2)",
        [Decimal("0.00"), Decimal("10.05"), Decimal("-10.05"), None, Decimal("9999999999999999.99"), Decimal("2.50")],
    ),
    "small": ("decimal(5,2)", [Decimal("0.01"), Decimal("-999.99"), Decimal("0.00"), None, Decimal("1.50")]),
    "huge": ("decimal(38,0)", [Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0), Decimal(5), None, Decimal(-3)]),
    "tiny": (
        "decimal(38,38)",
        [
            Decimal((0, (1,), -38)),
            Decimal((1, (9,) * 38, -38)),
            None,
            Decimal("0." + "0" * 38),
            Decimal("0.5" + "0" * 37),
            Decimal("0." + "3" * 38),
        ],
    ),
    "half": (
        "decimal(38,19)",
        [
            Decimal(1).scaleb(-19),
            Decimal("5.0000000000000000000"),
            None,
            Decimal("-0.5000000000000000000"),
        ],
    ),
    "x": (
        "double",
        [
            0.0,
            -0.0,
            1.5,
            -2.5,
            nan,
            inf,
            -inf,
            None,
            1e15,
            0.1,
            4503599627370496.5,
            -1e-20,
            2.0**63,
            1e300,
            0.15,
            123.456,
        ],
    ),
    "y": ("double", [1.0, -3.0, 0.0, None, nan, inf, 0.3, 1e-300, -0.0]),
    "s": (
        "string",
        [
            "",
            "a",
            None,
            " padded ",
            "straße",
            "ΟΔΟΣ ΣΑΣ.",
            "İı",
            "😀a😀",
            "quote ' \" \\ ` ${x}",
            "line\nbreak\ttab",
            "nul\x00",
            "ﬁ ŉ ǰ",
            "e\u0301",
            "\u0264\ua7cc",
        ],
    ),
    "p": ("string", ["", "a", "😀", None, " ", "ß", "Σ", "\\", "\n", "$", "\x00"]),
    "digits": (
        "string",
        [
            "42",
            " +42 ",
            "-7",
            "1.5",
            ".5",
            "5.",
            "1e3",
            "\t5",
            "5\n",
            "",
            " ",
            None,
            "٣",
            "9223372036854775807",
            "9223372036854775808",
            "-9223372036854775808",
            "0" * 300 + "9",
            "0." + "1" * 60,
            "9" * 39,
            "- 5",
            "+",
            "1_000",
            "0x10",
            "NaN",
            "12345678901234567890.5",
        ],
    ),
    "days": (
        "string",
        [
            "2026-01-31",
            "2024-02-29",
            "2023-02-29",
            "0001-01-01",
            "9999-12-31",
            "0000-01-01",
            "10000-01-01",
            "2026-1-5",
            "2026-01-31 ",
            "2026-01-31\n",
            "2026",
            "2026-01-31T00:00:00",
            "",
            None,
            "٢٠٢٦-01-31",
        ],
    ),
    "flag": ("boolean", [True, False, None]),
    "day": (
        "date",
        [
            date(2024, 2, 29),
            date(1, 1, 1),
            date(9999, 12, 31),
            None,
            date(2026, 1, 31),
            date(1582, 10, 10),
            date(1900, 3, 1),
        ],
    ),
    "at": (
        "timestamp",
        [
            datetime(2024, 2, 29, 23, 59, 59, 999999),  # noqa: DTZ001
            datetime(1, 1, 1),  # noqa: DTZ001
            None,
            datetime(9999, 12, 31, 12, 30, 0, 500000),  # noqa: DTZ001
            datetime(2026, 1, 31),  # noqa: DTZ001
        ],
    ),
    "n": ("integer", [0, 1, 2, -1, 5, 100, 2**63 - 1, -(2**63), None, 2**31, 3, 4000000]),
    "m": ("integer", [1, 3, 0, 2**63 - 1, None, 13, 2, -5, -(2**63), 31]),
}
_NUMBERS = ("i", "j", "money", "small", "huge", "tiny", "half", "x")
_SCOPE = Scope((Table("t", {name: parse_type(type_) for name, (type_, _) in _EXTREMES.items()}),))
_ROW_COUNT = 150

_MODES = ('"half_even"', '"up"', '"down"', '"floor"', '"ceiling"')
_UNITS = ("day", "week", "month", "quarter", "year")
_LIKES = ('"%a%"', '"_"', '"%😀"', '"%ß_"', '"line%tab"', '"%"', '""', '"% \\%"', '"a%a%a%"', '"%\\_%"', '"q%\\\\%}"')
_REGEXES = (
    '"[0-9]+"',
    '"[^a-z]"',
    '"\\\\w+\\\\s?"',
    '"(-?)([0-9]+)(?:-|$)"',
    '"[\\\\[\\\\]^$-]|[αΣ-ω]|😀"',
    '"^.*a"',
    '"^(?:[0-9]{4}-)?[0-9]{1,2}$"',
    '"\\\\.|\\\\D\\\\S"',
    '".$"',
)
_REPLACEMENTS = ('""', '"<$0>1"', '"$$\\\\"')
_SOURCES = [
    *(f"{a} {op} {b}" for op in ("+", "-", "*", "/") for a in _NUMBERS for b in ("j", "small", "huge", "tiny", "y")),
    *(f"MOD({a}, {b})" for a in _NUMBERS for b in ("j", "small", "huge", "tiny", "half", "y", "7", "-7", "0.3", "0")),
    *(
        f"{a} {op} {b}"
        for op in ("=", "<>", "<", "<=", ">", ">=")
        for a in _NUMBERS
        for b in ("huge", "tiny", "y", "0.5")
    ),
    *(f"{a} {op} {b}" for op in ("=", "<", ">=") for a, b in (("s", "p"), ("day", "at"), ("flag", "(NOT flag)"))),
    *(
        f"{f}({a})"
        for f in ("ABS", "ROUND", "FLOOR", "CEIL", "TO_STRING", "TO_INTEGER", "TO_DECIMAL")
        for a in _NUMBERS
    ),
    *(f"-{a}" for a in _NUMBERS),
    *(f"ROUND({a}, {d})" for a in _NUMBERS for d in (-38, -19, -2, -1, 1, 2, 18, 38)),
    *(f"{f}({a}, {b})" for f in ("MIN", "MAX") for a in _NUMBERS for b in ("j", "money", "y", "1")),
    *(
        f"TO_DECIMAL({a}, {t})"
        for a in (*_NUMBERS, "digits", "flag")
        for t in ("38, 0", "38, 38", "5, 2", "2, 2", "20")
    ),
    "TO_INTEGER(digits)",
    "TO_DECIMAL(digits)",
    "TO_INTEGER(flag)",
    "TO_STRING(flag)",
    "TO_STRING(day)",
    "TO_STRING(at)",
    "TO_STRING(s)",
    "TO_DATE(days)",
    "DATE(days)",
    "TO_DATE(at)",
    "TO_DATE(day)",
    "DATE(n, m, 1)",
    "DATE(2024, m, n)",
    "DATE(i, j, m)",
    "DATEADD(day, n)",
    "DATEADD(at, n)",
    "DATEADD(day, -1)",
    "DATEADD(day, 1)",
    "DATEADD(day, 3652058)",
    "DATEDIFF(day, at)",
    "DATEDIFF(at, TODAY())",
    *(f"{f}({d})" for f in ("YEAR", "MONTH", "DAY") for d in ("day", "at", "TODAY()")),
    *(f"{f}(s)" for f in ("UPPER", "LOWER", "TRIM", "LEN")),
    *(f"{f}(s, {count})" for f in ("LEFT", "RIGHT") for count in ("n", "m", "0", "2", "-1", "9223372036854775807")),
    *(f"SUBSTRING(s, {a}, {b})" for a in ("n", "m", "0", "-1", "2") for b in ("m", "n", "3", "0", "-2")),
    "SUBSTRING(s, -9223372036854775807, 9223372036854775807)",
    "SUBSTRING(s, 9223372036854775807, 9223372036854775807)",
    *(f"{f}(s, p)" for f in ("CONTAINS", "STARTSWITH", "ENDSWITH", "CONCAT", "MIN", "MAX")),
    'REPLACE(s, p, "<>")',
    "REPLACE(s, p, s)",
    'CONCAT(s, "it\'s \\ ""$0"" ${env:HOME} `x` 😀 ", p)',
    'CONCAT("a\nb\tc\rd", s)',
    's = "quote \' "" \\ ` ${x}"',
    "money IN (10.05, 2.5, NULL)",
    "huge IN (tiny, 5, 0.5)",
    "tiny IN (huge, half)",
    "x IN (0, 1.5, y)",
    f"x IN ({', '.join(str(number) for number in range(12))})",
    'p IN ("a", s, NULL)',
    f"i IN ({', '.join(str(number) for number in range(-3, 500))})",
    "i IN (NULL)",
    'digits <> "" AND TO_INTEGER(digits) > 5',
    'NOT CONTAINS(digits, ".") OR TO_DECIMAL(digits, 38, 0) > 1',
    "COALESCE(money / small, huge / tiny, 1)",
    "IF(small = 0, NULL, money / small)",
    "IF(NULL, 1, i)",
    "IF(flag, huge, tiny)",
    "NULL + NULL",
    "money + NULL",
    "NULL * tiny",
    "NULL / i",
    "i / NULL",
    "3 / NULL + 0.5",
    "NULL / money",
    "NULL / x",
    "NULL / NULL",
    "MOD(huge, NULL)",
    "NULL = NULL",
    "COALESCE(NULL, NULL)",
    "IF(flag, NULL, NULL)",
    "MIN(NULL, NULL)",
    "NULL IN (1, NULL)",
    "ISNULL(NULL)",
    "-NULL",
    "1 / (1 / (1 / (1 / (1 / (1 / (1 / (huge / tiny)))))))",
    "MOD(MOD(MOD(MOD(MOD(MOD(i, j), 7), -5), j), 3), -2)",
    "MIN(MIN(MIN(MIN(MIN(MIN(i, j), n), m), 7), LEN(s)), j)",
    "FLOOR(FLOOR(FLOOR(x / 2) / 3) / y)",
    "SUBSTRING(SUBSTRING(SUBSTRING(CONCAT(s, s), n, m), m, n), n, m)",
    "DATEADD(DATEADD(DATEADD(DATEADD(day, n), -n), m), -m)",
    *(f"ROUND({a}, {d}, {m})" for a in _NUMBERS[:-1] for d in (-2, 0, 1) for m in _MODES),
    *(f"{f}({a})" for f in ("SIGN", "SQRT", "EXP", "LN", "TRUNC", "LOG") for a in (*_NUMBERS, "y")),
    *(
        f"POWER({a}, {b})"
        for a in ("x", "y", "i", "small")
        for b in ("j", "y", "0.5", "-1.5", "10", "x", "1000", "0.1")
    ),
    *(f"{a} BETWEEN {b} AND {c}" for a in ("i", "money", "huge", "x") for b, c in (("j", "huge"), ("0", "5.5"))),
    "s BETWEEN p AND s",
    "day NOT BETWEEN DATE(days) AND at",
    *(f"{f}({a}, {b})" for f in ("GREATEST", "LEAST", "NULLIF", "IFNULL") for a in _NUMBERS for b in ("j", "y", "1")),
    "GREATEST(s, p, digits)",
    "LEAST(day)",
    "GREATEST(NULL, NULL)",
    "NULLIF(s, p)",
    "NULLIF(flag, TRUE)",
    "CASE WHEN flag THEN money WHEN i > 0 THEN huge ELSE tiny END",
    "CASE WHEN NULL THEN 1 END",
    'CASE WHEN digits = "" THEN 0 WHEN CONTAINS(digits, ".") THEN -1 ELSE TO_INTEGER(digits) END',
    'CASE s WHEN p THEN "same" WHEN "a" THEN p ELSE s END',
    "SWITCH(x, 0, 1, y, 2)",
    "SWITCH(huge, tiny, i, money, j, n)",
    f"SWITCH({' + '.join(['i'] * 150)}, 0, s, j, p, digits)",
    "SWITCH(NULL, NULL, 1, 2)",
    *(f"s LIKE {p}" for p in _LIKES),
    's LIKE "%!_%" ESCAPE "!"',
    "s LIKE NULL",
    *(f"{f}({t}, {p})" for f in ("REGEX_MATCH", "REGEX_EXTRACT") for t in ("s", "digits", "days") for p in _REGEXES),
    *(f"REGEX_REPLACE({t}, {p}, {r})" for t in ("s", "digits") for p in _REGEXES[:5] for r in _REPLACEMENTS),
    'REGEX_EXTRACT(days, "([0-9]+)-([0-9]+)", 2)',
    'REGEX_EXTRACT(digits, "(a)|[0-9]", 1)',
    'REGEX_MATCH(REPEAT(s, 4000), "a")',
    "FIND(s, p)",
    *(f"FIND(s, p, {n})" for n in ("n", "m", "0", "2")),
    *(f"SPLIT({t}, {p}, {n})" for t in ("s", "days") for p in ("p", '"-"') for n in ("n", "m", "-1", "2", "0")),
    *(f"{f}(s, {n})" for f in ("LPAD", "RPAD", "REPEAT") for n in ("n", "m", "5", "0", "-1")),
    *(f"{f}(s, {n}, p)" for f in ("LPAD", "RPAD") for n in ("m", "7")),
    *(f"{f}(s)" for f in ("PROPER", "HASH")),
    'PROPER("mary-ann o\'neill\u00a0ÉCOLE 3rd ǆ")',
    'UUID5("6ba7b811-9dad-11d1-80b4-00c04fd430c8", s)',
    "UUID5(NULL, s)",
    *(f"{f}({d}, {n})" for f in ("EOMONTH", "EDATE") for d in ("day", "at") for n in ("n", "m", "-1", "12")),
    "EOMONTH(day)",
    *(f'DATE_TRUNC("{u}", {d})' for u in _UNITS for d in ("day", "at")),
    *(f'DATEDIFF({a}, {b}, "{u}")' for u in _UNITS for a, b in (("day", "at"), ("at", "DATE(2024, 1, 31)"))),
    "WEEKDAY(day)",
    "WEEKDAY(at)",
    *(f"WORKDAY({d}, {n})" for d in ("day", "at") for n in ("m", "0", "-7", "250")),
    'WORKDAY(day, m, DATE("2024-03-01"), DATE("2026-02-02"))',
    "WORKDAY(DATE(2026, 1, 31), n, day)",
    *(f'TO_DATE(days, "{p}")' for p in ("yyyy-MM-dd", "yyyy-M-d")),
    *(f'TRY_TO_DATE(days, "{p}")' for p in ("yyyy-MM-dd", "yyyy-M-d", "dd.MM.yy")),
    'TO_DATE(TO_STRING(day, "d MMM yyyy"), "d MMM yyyy")',
    'TRY_TO_DATE("31-feb-2026", "dd-MMM-yyyy")',
    *(f'TO_STRING({d}, "{p}")' for d in ("day", "at") for p in ("dd.MM.yyyy", "d/M/yy", "yyyyMMdd HH:mm:ss", "MMM ''")),
    *(f'TO_STRING({a}, "{p}")' for a in _NUMBERS[:-1] for p in ("0", "#,##0.00", "00000.0", "0.000000000000000000")),
    *(f"TRY_TO_INTEGER({a})" for a in (*_NUMBERS, "digits", "flag", "y")),
    *(f"TRY_TO_DECIMAL({a}, {t})" for a in (*_NUMBERS, "digits", "y") for t in ("38, 0", "5, 2", "38, 38")),
    "TRY_TO_DATE(days)",
    "TRY_TO_DATE(at)",
    "(" * 60 + "i" + " + 0)" * 60,
    " AND ".join(["i = j"] * 200),
]

_AGGREGATIONS = [
    *(
        f"{f}({a})"
        for f in ("SUM", "AVG", "MIN_AGG", "MAX_AGG", "COUNT", "COUNT_DISTINCT")
        for a in ("m0", "c9", "w", "k")
    ),
    *(
        f"{f}({a})"
        for f in ("MIN_AGG", "MAX_AGG", "COUNT", "COUNT_DISTINCT")
        for a in ("label", "day", "x", "flag", "at")
    ),
    "COUNT_ALL()",
    "SUM(x)",
    "AVG(x)",
    "AVG(e)",
    "SUM(NULL)",
    "AVG(NULL)",
    "COUNT(NULL)",
    "COUNT_DISTINCT(NULL)",
    "MIN_AGG(NULL)",
    "SUM(m0) / COUNT_ALL()",
    "ROUND(AVG(m0), 2) - MIN_AGG(c9)",
    'IF(COUNT_ALL() > 5, g, "few")',
    "MOD(SUM(k), 7) + MAX_AGG(k)",
    "1 / (1 / (1 / (1 / (SUM(w) / COUNT(w)))))",
    "COALESCE(SUM(IF(flag, m0, 0)), 0)",
    *(f"{f}({a})" for f in ("MEDIAN", "VARIANCE", "STDDEV") for a in ("m0", "c9", "w", "k", "x")),
    *(f"PERCENTILE({a}, {p})" for a in ("m0", "w", "e", "k", "x") for p in ("0", "0.25", "0.9999", "1")),
    *(f"{f}({a}, {b})" for f in ("FIRST", "LAST") for a in ("label", "m0", "flag") for b in ("day", "k", "label, at")),
    *(f"STRING_AGG(label, {p}{o})" for p in ('", "', '""') for o in ("", ", day", ", flag, x")),
    "STRING_AGG(label, NULL)",
    "FIRST(NULL, k)",
    "COUNT_IF(flag)",
    '"total"',
    "1 + 2",
    'CONCAT(g, "!")',
    "SUM_IF(m0, flag)",
    "WEIGHTED_AVG(m0, c9)",
    "ROUND(MEDIAN(m0) - FIRST(m0, day), 2)",
    'IF(COUNT_IF(flag) > 2, STRING_AGG(g, "-"), g)',
]


def _typed(sources: Sequence[str]) -> list[Expression]:
    found = [typed(source, _SCOPE) for source in sources]
    return [expression for expression in found if expression is not None]


@pytest.fixture(scope="module")
def extremes() -> Rows:
    """Every value of a column meets most values of the others, since the lists have different lengths."""
    return Rows(
        _SCOPE,
        [
            {"t": {name: values[(row + row // len(values)) % len(values)] for name, (_, values) in _EXTREMES.items()}}
            for row in range(_ROW_COUNT)
        ],
    )


@pytest.fixture(scope="module")
def frame(spark: SparkSession, extremes: Rows) -> Iterator[DataFrame]:
    frame = extremes.in_spark(spark).cache()
    yield frame
    frame.unpersist()


def test_every_function_of_the_language_has_an_entry() -> None:
    assert set(ENTRIES) == set(FUNCTIONS)


def test_every_function_of_the_language_is_in_the_cases() -> None:
    found = [*_typed(_SOURCES), *_typed_aggregations()]
    used = {node.function for expression in found for node in walk(expression) if isinstance(node, Apply)}
    assert set(FUNCTIONS) - used == set()


def test_extreme_values_give_what_python_gives(spark: SparkSession, frame: DataFrame, extremes: Rows) -> None:
    with interpreted(spark):
        assert differences(frame, _typed(_SOURCES), extremes.in_python()) == []


def test_extreme_values_give_the_same_in_generated_code(frame: DataFrame, extremes: Rows) -> None:
    assert differences(frame, _typed(_SOURCES)[::6], extremes.in_python()) == []


def test_extreme_values_that_fail_in_python_fail_in_spark(frame: DataFrame, extremes: Rows) -> None:
    assert unnoticed_errors(frame, _typed(_SOURCES)[::3], extremes.in_python(), most=60) == []


_GROUPED = Scope(
    (
        Table(
            "t",
            {
                name: parse_type(type_)
                for name, type_ in {
                    "g": "string",
                    "k": "integer",
                    "m0": "decimal(18,2)",
                    "c9": "decimal(9,4)",
                    "w": "decimal(38,10)",
                    "e": "decimal(35,0)",
                    "x": "double",
                    "label": "string",
                    "day": "date",
                    "at": "timestamp",
                    "flag": "boolean",
                }.items()
            },
        ),
    )
)
_GROUP_VALUES: dict[str, Sequence[Value]] = {
    "k": [2**63 - 1, 2**62, -(2**63) + 1, -(2**62), None, 1, 3],
    "m0": [Decimal("0.01"), Decimal("9999999999999999.99"), None, Decimal("-3.33"), Decimal("0.02")],
    "c9": [Decimal("0.0001"), Decimal("0.0002"), Decimal("-99999.9999"), None, Decimal("7.0000"), Decimal("0.0003")],
    "w": [Decimal("9" * 20 + ".0000000001"), Decimal("-1.5000000000"), None, Decimal("0.0000000003")],
    "e": [Decimal("1" * 35), Decimal(2), Decimal("-" + "3" * 34), None, Decimal(1), Decimal(1)],
    "x": [1.5, -2.25, None, 1e10, 0.1, 0.0, -0.0],
    "label": ["b", "a", None, "Z", "😀", "", "ß"],
    "day": [date(2024, 2, 29), None, date(1, 1, 1), date(9999, 12, 31)],
    "at": [datetime(2024, 2, 29, 1), None, datetime(2024, 2, 29, 1, 0, 0, 1)],  # noqa: DTZ001
    "flag": [True, False, None],
}


def _typed_aggregations() -> list[Expression]:
    found = [typed_aggregation(source, _GROUPED, "g") for source in _AGGREGATIONS]
    return [expression for expression in found if expression is not None]


def _grouped_rows() -> Rows:
    """Groups of 1 to 40 rows, one whose values are all NULL."""
    tables = list[dict[str, dict[str, Value]]]()
    for size in (1, 2, 3, 7, 40):
        for row in range(size):
            cells = {name: values[(row * 3 + size) % len(values)] for name, values in _GROUP_VALUES.items()}
            tables.append({"t": {"g": f"group of {size}", **cells}})
    tables.append({"t": {"g": None, **dict.fromkeys(_GROUP_VALUES)}})
    return Rows(_GROUPED, tables)


def test_aggregations_over_groups_give_what_python_gives(spark: SparkSession) -> None:
    rows = _grouped_rows()
    assert group_differences(rows.in_spark(spark), _typed_aggregations(), rows.in_python(), ("t", "g")) == []


def test_a_total_of_integers_fails_only_if_the_total_itself_does_not_fit(spark: SparkSession) -> None:
    scope = Scope((Table("t", {"k": parse_type("integer")}),))
    total = typed_aggregation("SUM(k)", scope, "g")
    assert total is not None
    frame = spark.createDataFrame([(2**63 - 1,), (2**63 - 1,), (-(2**63),), (1,)], f"{column_name('t', 'k')} BIGINT")
    assert frame.agg(expr(sql(total))).collect()[0][0] == 2**63 - 1
    with pytest.raises(PySparkException):
        frame.where(f"{column_name('t', 'k')} > 0").agg(expr(sql(total))).collect()


@pytest.mark.parametrize("source", ["SUM(x)", "AVG(x)", "SUM(x * 2)", "MAX_AGG(x + x)"])
def test_a_total_of_doubles_that_is_too_large_fails_in_both_and_infinite_data_does_not(
    spark: SparkSession, source: str
) -> None:
    scope = Scope((Table("t", {"x": parse_type("double")}),))
    total = typed_aggregation(source, scope, "g")
    assert total is not None
    frame = spark.createDataFrame([(1.5e308,), (1.5e308,), (None,)], f"{column_name('t', 'x')} DOUBLE")
    with pytest.raises(PySparkException, match="does not fit double"):
        frame.agg(expr(sql(total))).collect()
    with pytest.raises(UserError, match="does not fit double"):
        group_evaluator(total)([Row({"t": {"x": 1.5e308}}, TODAY)] * 2)
    infinite = spark.createDataFrame([(inf,), (1.0,)], f"{column_name('t', 'x')} DOUBLE")
    assert infinite.agg(expr(sql(total))).collect()[0][0] == inf
    assert group_evaluator(total)([Row({"t": {"x": value}}, TODAY) for value in (inf, 1.0)]) == inf


@pytest.mark.parametrize("type_", ["integer", "double"])
def test_a_total_of_a_long_expression_is_one_too(spark: SparkSession, type_: str) -> None:
    scope = Scope((Table("t", {"k": parse_type(type_)}),))
    total = typed_aggregation(f"SUM({' + '.join(['IF(k > 1, k, 1)'] * 30)})", scope, "g")
    assert total is not None
    assert len(sql(total)) > 300
    frame = spark.createDataFrame([(2,), (0,)], "k INT").selectExpr(
        f"CAST(k AS {spark_type(parse_type(type_))}) AS {column_name('t', 'k')}"
    )
    assert frame.agg(expr(sql(total))).collect()[0][0] == 90


def test_upper_and_lower_case_of_every_character_are_those_of_python(spark: SparkSession) -> None:
    characters = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code <= 0xDFFF]
    texts = ["".join(characters[start : start + 256]) for start in range(0, len(characters), 256)]
    rows = Rows(Scope((Table("t", {"s": parse_type("string")}),)), [{"t": {"s": text}} for text in texts])
    cases = [typed(f"{function}(s)", rows.scope) for function in ("UPPER", "LOWER")]
    assert differences(rows.in_spark(spark), [case for case in cases if case is not None], rows.in_python()) == []


def test_what_and_guards_is_not_calculated_even_if_it_occurs_twice(spark: SparkSession) -> None:
    scope = Scope((Table("t", {"s": parse_type("string")}),))
    rows = Rows(scope, [{"t": {"s": text}} for text in ("5", "", "7")])
    sources = ('s <> "" AND TO_INTEGER(s) > 5', 's <> "" AND TO_INTEGER(s) < 6', 'IF(s = "", 0, TO_INTEGER(s))')
    guarded = [typed(source, scope) for source in sources]
    assert differences(rows.in_spark(spark), [each for each in guarded if each is not None], rows.in_python()) == []


def test_texts_are_as_long_as_in_python_and_no_longer(spark: SparkSession) -> None:
    scope = Scope((Table("t", {"s": parse_type("string"), "p": parse_type("string"), "r": parse_type("string")}),))
    texts = [
        ("a" * 1_000_000, "a", "b"),
        ("a" * 1_000_001, "a", "b"),
        ("a" * 500_000, "a", "bb"),
        ("a" * 500_001, "a", "bb"),
        ("é" * 999_999, "x", "é"),
        ("é" * 1_000_000, "é", None),
        ("a" * 2_000_000, "aa", "a"),
        ("a" * 2_000_000, "", "abc"),
        ("a" * 2_000_000, "b", "abc"),
        ("a", "a", "a" * 1_000_001),
        (None, "a", "bb"),
        ("x", "x", ""),
    ]
    rows = Rows(scope, [{"t": {"s": s, "p": p, "r": r}} for s, p, r in texts])
    tenfold = "s"
    for _ in range(9):
        tenfold = f'REPLACE({tenfold}, "x", "xxxxxxxxxx")'
    sources = (
        "LEN(REPLACE(s, p, r))",
        'LEN(REPLACE(s, "a", "bb"))',
        "LEN(CONCAT(s, p))",
        'LEN(CONCAT(s, "", r))',
        "LEN(CONCAT(REPLACE(s, p, r), REPLACE(s, p, r)))",
        f"LEN({tenfold})",
    )
    expressions = [each for source in sources if (each := typed(source, scope)) is not None]
    assert len(expressions) == len(sources)
    assert differences(rows.in_spark(spark), expressions, rows.in_python()) == []
    for tables in rows.tables:
        one = Rows(scope, [tables])
        assert unnoticed_errors(one.in_spark(spark), expressions, one.in_python(), len(sources)) == []


def test_names_mean_themselves() -> None:
    assert quoted("a`b.c") == "`a``b.c`"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("string", "STRING"),
        ("integer", "BIGINT"),
        ("decimal", "DECIMAL(38,18)"),
        ("decimal(12,2)", "DECIMAL(12,2)"),
        ("double", "DOUBLE"),
        ("boolean", "BOOLEAN"),
        ("date", "DATE"),
        ("timestamp", "TIMESTAMP_NTZ"),
    ],
)
def test_types_have_one_spark_type_each(name: str, expected: str) -> None:
    assert spark_type(parse_type(name)) == expected
