"""One expression on one row, as people at a prompt use it."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest

from clew.diagnostics import UserError
from clew.lang import evaluate

NAIVE = datetime(2026, 1, 31, 12, 30, 15, 500_000)  # noqa: DTZ001
NAN, INFINITY = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("text", "row", "expected"),
    [
        ("amount * rate", {"amount": Decimal("12.50"), "rate": Decimal("1.0920")}, Decimal("13.650000")),
        ("fx.rate + 1", {"fx.rate": 2}, 3),
        ('name = "x"', {"name": None}, None),
        ("a", {"a": None}, None),
        ("`odd name`", {"odd name": "v"}, "v"),
        (
            "- a",
            {"a": Decimal(12345678901234567890123456789012345678)},
            Decimal(-12345678901234567890123456789012345678),
        ),
        ("TO_STRING(a)", {"a": Decimal("-0.00")}, "0.00"),
        ("TO_STRING(-a)", {"a": Decimal("0.00")}, "0.00"),
        ("TO_STRING(a)", {"a": Decimal("1E+3")}, "1000"),
        ("TO_STRING(a)", {"a": NAIVE}, "2026-01-31 12:30:15.5"),
        (
            "TO_STRING(a)",
            {"a": datetime(2026, 1, 31, 1, 0, tzinfo=timezone(timedelta(hours=2)))},
            "2026-01-30 23:00:00",
        ),
        ("TO_STRING(a)", {"a": True}, "TRUE"),
        ("TO_STRING(a)", {"a": 1e10}, "1.0E10"),
        ("TO_STRING(a)", {"a": 1234567.0}, "1234567.0"),
        ("TO_STRING(a)", {"a": 12345678.0}, "1.2345678E7"),
        ("TO_STRING(a)", {"a": 0.001}, "0.001"),
        ("TO_STRING(a)", {"a": 0.0001}, "1.0E-4"),
        ("TO_STRING(a)", {"a": -0.0}, "-0.0"),
        ("TO_STRING(a)", {"a": NAN}, "NaN"),
        ("TO_STRING(a)", {"a": -INFINITY}, "-Infinity"),
        ("ROUND(a, 2)", {"a": 2.675}, 2.68),
        ("ROUND(a)", {"a": -2.5}, -3.0),
        ("ROUND(a, 38)", {"a": 1.7e308}, 1.7e308),
        ("ROUND(a, -38)", {"a": 1.7e38}, 2e38),
        ("TO_STRING(ROUND(a))", {"a": -0.4}, "0.0"),
        ("TO_STRING(CEIL(a))", {"a": -0.5}, "0.0"),
        ("FLOOR(a)", {"a": 1e300}, 1e300),
        ("FLOOR(a) = a", {"a": INFINITY}, True),
        ("MOD(a, 3)", {"a": -7.5}, 1.5),
        ("MOD(a, b)", {"a": 7, "b": -3}, -2),
        ("MOD(a, b)", {"a": Decimal("-7.5"), "b": Decimal(2)}, Decimal("0.5")),
        ("MOD(a, b)", {"a": Decimal("7.5"), "b": Decimal(-2)}, Decimal("-0.5")),
        ("a / 0", {"a": 1.5}, None),
        ("a / b", {"a": 1.0, "b": 0.0}, None),
        ("a * 2", {"a": INFINITY}, INFINITY),
        ("a - 1", {"a": -INFINITY}, -INFINITY),
        ("TO_INTEGER(a)", {"a": Decimal("-2.5")}, -3),
        ("TO_INTEGER(a)", {"a": 2.5}, 3),
        ("TO_INTEGER(a)", {"a": " +42 "}, 42),
        ("TO_INTEGER(a)", {"a": True}, 1),
        ("TO_DECIMAL(a, 5, 2)", {"a": "-.005"}, Decimal("-0.01")),
        ("TO_DECIMAL(a, 5, 2)", {"a": 0.125}, Decimal("0.13")),
        ("TO_DATE(a)", {"a": NAIVE}, date(2026, 1, 31)),
        ("YEAR(a) + MONTH(a) + DAY(a)", {"a": NAIVE}, 2058),
        ("a = b", {"a": date(2026, 1, 31), "b": datetime(2026, 1, 31)}, True),  # noqa: DTZ001
        ("a < b", {"a": date(2026, 1, 31), "b": NAIVE}, True),
        ('SUBSTRING("ledger", 0, 3)', {}, "le"),
        ('SUBSTRING("ledger", -3, 2)', {}, ""),
        ('SUBSTRING("ledger", 5, 99)', {}, "er"),
        ('SUBSTRING("ledger", 2, -1)', {}, ""),
        ('LEFT("ledger", -1)', {}, ""),
        ('RIGHT("ledger", 0)', {}, ""),
        ('RIGHT("ledger", 99)', {}, "ledger"),
        ('REPLACE("aaa", "", "x")', {}, "aaa"),
        ('TRIM("\t a \u00a0 ")', {}, "\t a \u00a0"),
        ('UPPER("ŉ ß ﬁ")', {}, "ʼN SS FI"),
        ('LOWER("ΟΔΟΣ İ")', {}, "οδος i̇"),
        ('LEN("😀e\u0301")', {}, 3),
        ('"😀" > "\uffff"', {}, True),
        ("TRUE > FALSE", {}, True),
        ("IF(a = 0, 0, 1 / a)", {"a": 0}, Decimal(0)),
        ("COALESCE(a, TO_INTEGER(b))", {"a": 1, "b": "x"}, 1),
        ("a <> 0 AND TO_INTEGER(b) > 1", {"a": 0, "b": "x"}, False),
        ("a = 0 OR TO_INTEGER(b) > 1", {"a": 0, "b": "x"}, True),
        ("a IN (0, TO_INTEGER(b))", {"a": 0, "b": "x"}, True),
    ],
)
def test_an_expression_has_this_value(text: str, row: dict[str, object], expected: object) -> None:
    value = evaluate(text, row)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = a", True),
        ("a <> a", False),
        ("a >= b", True),
        ("b < a", True),
        ("a IN (b, a)", True),
        ("a IN (b)", False),
        ("MAX(a, b) = a", True),
        ("MAX(b, a) = a", True),
        ("MIN(a, b) = b", True),
        ("MIN(b, a) = b", True),
    ],
)
def test_nan_equals_itself_and_comes_after_all_numbers(text: str, expected: bool) -> None:
    assert evaluate(text, {"a": NAN, "b": INFINITY}) is expected


def test_today_is_what_the_caller_says_or_the_date_in_utc() -> None:
    assert evaluate("TODAY()", {}, today=date(2026, 1, 31)) == date(2026, 1, 31)
    before = datetime.now(UTC).date()
    assert evaluate("TODAY()", {}) in {before, datetime.now(UTC).date()}


@pytest.mark.parametrize(
    ("text", "row", "code", "says"),
    [
        ("a +", {"a": 1}, "SyntaxError", "the expression ends too early"),
        ("b", {"a": 1}, "UnknownColumn", 'no column "b"'),
        ("a + 1", {"a": "x"}, "TypeMismatch", "expected a number, this is a string"),
        ("SUM(a)", {"a": 1}, "AggregateNotAllowed", "is not allowed in this expression"),
        ("a + 1", {"a": 2**63 - 1}, "ValueOutOfRange", "does not fit integer"),
        ("a", {"a": 2**63}, "ValueOutOfRange", "does not fit integer"),
        ("ABS(a)", {"a": -(2**63)}, "ValueOutOfRange", "does not fit integer"),
        ("-a", {"a": -(2**63)}, "ValueOutOfRange", "does not fit integer"),
        ("TO_INTEGER(a)", {"a": NAN}, "ValueOutOfRange", "nan is not a whole number"),
        ("TO_INTEGER(a)", {"a": 1e300}, "ValueOutOfRange", "does not fit integer"),
        ("TO_INTEGER(a)", {"a": "1.5"}, "ValueOutOfRange", '"1.5" is not a whole number'),
        ("TO_INTEGER(a)", {"a": "9" * 201}, "ValueOutOfRange", "does not fit integer"),
        ("TO_INTEGER(a)", {"a": "٣"}, "ValueOutOfRange", "is not a whole number"),
        ("TO_DECIMAL(a)", {"a": "1e5"}, "ValueOutOfRange", '"1e5" is not a number'),
        ("TO_DECIMAL(a)", {"a": INFINITY}, "ValueOutOfRange", "inf is not a number"),
        ("TO_DECIMAL(a, 3, 2)", {"a": "9.995"}, "ValueOutOfRange", "9.995 does not fit decimal(3,2)"),
        ("TO_DATE(a)", {"a": "2026-1-3"}, "ValueOutOfRange", '"2026-1-3" is not a date'),
        ("TO_DATE(a)", {"a": "2026-02-30"}, "ValueOutOfRange", 'there is no day "2026-02-30"'),
        ("DATE(a, 1, 1)", {"a": 10**15}, "ValueOutOfRange", "there is no day 1 of month 1"),
        ("DATEADD(a, b)", {"a": date(9999, 12, 31), "b": 1}, "ValueOutOfRange", "outside the years 1 to 9999"),
        ("DATEADD(a, b)", {"a": date(2026, 1, 31), "b": 2**62}, "ValueOutOfRange", "outside the years 1 to 9999"),
        ("a * a", {"a": 1e200}, "ValueOutOfRange", "the result for 1e+200 and 1e+200 does not fit double"),
        ("a + a", {"a": 1e308}, "ValueOutOfRange", "does not fit double"),
        ("-a - a", {"a": 1e308}, "ValueOutOfRange", "does not fit double"),
        ("a / b", {"a": 1e300, "b": 1e-300}, "ValueOutOfRange", "does not fit double"),
        ("a * a * a", {"a": Decimal("9" * 20)}, "ValueOutOfRange", "does not fit decimal(38,0)"),
        ("a", {"a": [1]}, "TypeMismatch", 'the value of "a" is a list'),
        ("a", {"a": Decimal("NaN")}, "TypeMismatch", "NaN is not a number"),
        ("a", {"a": Decimal("1E+38")}, "TypeMismatch", "a decimal has 1 to 38 digits, not 39"),
    ],
)
def test_what_is_wrong_is_a_user_error_with_a_code(text: str, row: dict[str, object], code: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        evaluate(text, row)
    assert caught.value.code == code
    assert says in caught.value.diagnostic.message


def test_all_problems_are_raised_together() -> None:
    with pytest.raises(UserError) as caught:
        evaluate("x + y", {})
    assert [d.code for d in caught.value.diagnostics] == ["UnknownColumn", "UnknownColumn"]
