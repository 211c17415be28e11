from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

from clew.diagnostics import ClewError
from clew.engine.loading.conversions import serves, value_of_text, value_of_typed
from clew.lang.arithmetic import fit
from clew.lang.conversion import to_date, to_decimal, to_integer
from clew.lang.types import Kind, Type, parse_type

_WHOLE = ["0", "-9223372036854775808", "9223372036854775807", "+007", " 42 ", "1.0", "1e3", "9223372036854775808"]
_WHOLE += ["٣", "abc", "", " ", "+", "--1", "1 2", "0x10", "1_000", "\t5", "1" * 60, "TRUE"]
_EXACT = ["1.00", "-.5", "1.", ".", "999.9900000", "999.99", "1000.00", "1.005", "1,5", "1e2", "NaN", "", "+.05", "-0"]
_EXACT += [" 1.5 ", "0001.50", "-999.99", "1.5d", "1..5", ".50000000", "0.001", "abc", "1.5\n"]
_DAYS = ["2024-02-29", "2026-02-29", "0001-01-01", "9999-12-31", "0000-01-01", "2026-1-2", "2026-01-1 ", "2026-01-1T"]
_DAYS += ["2026-01-02T10:00", "31.01.2026", " 2026-01-02", "20260102", "2026", "2026-01", "", "now", "2026-13-01"]


def values(spark: SparkSession, texts: list[str], target: Type) -> list[object]:
    frame = spark.createDataFrame([(number, text) for number, text in enumerate(texts)], "number INT, text STRING")
    return [row[0] for row in frame.orderBy("number").select(expr(value_of_text("text", target))).collect()]


def meant(text: str, target: Type) -> object:
    """What the language makes of a text, without the digits that loading refuses to round."""
    try:
        match target.kind:
            case Kind.INTEGER:
                return to_integer(text)
            case Kind.DATE:
                return to_date(text)
            case _:
                fitted = fit(to_decimal(text), target)
                return fitted if fitted == to_decimal(text) else None
    except ClewError:
        return None


@pytest.mark.parametrize(
    ("type_", "texts"),
    [("integer", _WHOLE), ("decimal(5,2)", _EXACT), ("date", _DAYS), ("decimal(38,18)", [*_EXACT, "9" * 20 + ".5"])],
)
def test_a_text_means_what_the_language_says_and_nothing_is_rounded(
    spark: SparkSession, type_: str, texts: list[str]
) -> None:
    target = parse_type(type_)
    assert dict(zip(texts, values(spark, texts, target), strict=True)) == {text: meant(text, target) for text in texts}


def test_booleans_are_written_out(spark: SparkSession) -> None:
    texts = ["true", "FALSE", "True", "yes", "1", "t", "", " true"]
    assert values(spark, texts, parse_type("boolean")) == [True, False, True, *[None] * 5]


def test_doubles_have_exponents_and_names_for_what_is_not_finite(spark: SparkSession) -> None:
    texts = [".5E-3", "-0.5", "1e3", "Infinity", "-Infinity", "1e999", "1f", "inf", "nan", "", "0x1p3"]
    expected = [0.0005, -0.5, 1000.0, float("inf"), float("-inf"), *[None] * 6]
    assert values(spark, texts, parse_type("double")) == expected
    (nan,) = values(spark, ["NaN"], parse_type("double"))
    assert nan != nan  # noqa: PLR0124


def test_timestamps_are_taken_to_utc(spark: SparkSession) -> None:
    ten = datetime.fromisoformat("2026-01-01T10:00")
    expected = {
        "2026-01-01": datetime.fromisoformat("2026-01-01"),
        "2026-01-01 10:00": ten,
        "2026-01-01T10:00Z": ten,
        "2026-01-01T11:00+01": ten,
        "2026-01-01 10:00:00.123456000-05:30": datetime.fromisoformat("2026-01-01T15:30:00.123456"),
        "2026-01-01T10:00:00.1234567": None,
        "2026-01-01 25:00": None,
        "0000-01-01 10:00": None,
        "10:00": None,
        "now": None,
        "2026-01-01 10": None,
        "2026-01-01 10:00 ": None,
        "": None,
    }
    assert dict(zip(expected, values(spark, [*expected], parse_type("timestamp")), strict=True)) == expected


@pytest.mark.parametrize(
    ("source", "literal", "target", "expected"),
    [
        ("int", "7", "integer", 7),
        ("int", "7", "decimal(5,2)", Decimal("7.00")),
        ("bigint", "1000", "decimal(5,2)", None),
        ("bigint", "9007199254740993", "double", None),
        ("decimal(20,0)", "9223372036854775808", "integer", None),
        ("decimal(20,0)", "5", "integer", 5),
        ("decimal(10,4)", "1.2500", "decimal(5,2)", Decimal("1.25")),
        ("decimal(10,4)", "1.2550", "decimal(5,2)", None),
        ("decimal(10,4)", "1.5", "double", 1.5),
        ("double", "0.1D", "decimal(5,2)", Decimal("0.10")),
        ("double", "0.125D", "decimal(5,2)", None),
        ("double", "double('NaN')", "decimal(5,2)", None),
        ("double", "3D", "integer", 3),
        ("double", "3.5D", "integer", None),
        ("float", "1.5F", "double", 1.5),
        ("date", "DATE'2026-01-02'", "timestamp", datetime.fromisoformat("2026-01-02")),
        ("timestamp_ntz", "TIMESTAMP_NTZ'2026-01-02 00:00:00'", "date", date(2026, 1, 2)),
        ("timestamp_ntz", "TIMESTAMP_NTZ'2026-01-02 10:00:00'", "date", None),
        (
            "timestamp_ltz",
            "TIMESTAMP_LTZ'2026-01-02 10:00:00+02:00'",
            "timestamp",
            datetime.fromisoformat("2026-01-02T08:00"),
        ),
        ("varchar(5)", "'x'", "string", "x"),
    ],
)
def test_a_typed_value_is_taken_exactly_or_not_at_all(
    spark: SparkSession, source: str, literal: str, target: str, expected: object
) -> None:
    assert serves(source, parse_type(target))
    frame = spark.sql(f"SELECT CAST({literal} AS {source}) AS x")
    assert frame.select(expr(value_of_typed("x", source, parse_type(target)))).collect()[0][0] == expected


@pytest.mark.parametrize(
    ("source", "target"),
    [("string", "integer"), ("int", "string"), ("binary", "string"), ("boolean", "integer"), ("bigint", "date")],
)
def test_types_that_mean_different_things_do_not_serve(source: str, target: str) -> None:
    assert not serves(source, parse_type(target))
