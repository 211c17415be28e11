"""Names of types, and how the digits of decimals grow: every row of the table, against values worked out by hand."""

import pytest

from clew.lang import parse_type
from clew.lang.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    bounded,
    common_type,
    decimal,
    either_decimal,
    mean_of_decimals,
    product_of_decimals,
    quotient_of_decimals,
    remainder_of_decimals,
    sum_of_decimals,
    total_of_decimals,
)

D = tuple[int, int]


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((10, 2), (10, 2), (11, 2)),
        ((10, 2), (5, 4), (13, 4)),
        ((1, 0), (1, 0), (2, 0)),
        ((38, 18), (38, 18), (38, 17)),
        ((38, 0), (38, 38), (38, 6)),
        ((38, 2), (38, 2), (38, 2)),
        ((38, 38), (38, 38), (38, 37)),
        ((37, 10), (37, 10), (38, 10)),
    ],
)
def test_sums(a: D, b: D, expected: D) -> None:
    assert sum_of_decimals(decimal(*a), decimal(*b)) == decimal(*expected)
    assert sum_of_decimals(decimal(*b), decimal(*a)) == decimal(*expected)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((10, 2), (10, 2), (21, 4)),
        ((18, 2), (19, 6), (38, 8)),
        ((20, 2), (20, 6), (38, 6)),
        ((38, 18), (38, 18), (38, 6)),
        ((38, 2), (38, 2), (38, 4)),
        ((19, 10), (20, 12), (38, 20)),
        ((38, 38), (38, 38), (38, 37)),
    ],
)
def test_products(a: D, b: D, expected: D) -> None:
    assert product_of_decimals(decimal(*a), decimal(*b)) == decimal(*expected)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((1, 0), (1, 0), (7, 6)),
        ((10, 2), (10, 2), (23, 13)),
        ((20, 0), (20, 0), (38, 18)),
        ((38, 18), (38, 18), (38, 6)),
        ((38, 0), (1, 0), (38, 6)),
        ((12, 2), (18, 6), (37, 21)),
        ((1, 1), (38, 38), (38, 6)),
        ((5, 5), (38, 0), (38, 38)),
    ],
)
def test_quotients(a: D, b: D, expected: D) -> None:
    assert quotient_of_decimals(decimal(*a), decimal(*b)) == decimal(*expected)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((10, 2), (5, 4), (5, 4)),
        ((5, 4), (10, 2), (12, 4)),
        ((38, 38), (38, 0), (38, 6)),
        ((1, 0), (1, 0), (1, 0)),
        ((37, 10), (37, 10), (37, 10)),
        ((38, 10), (38, 10), (38, 9)),
    ],
)
def test_remainders(a: D, b: D, expected: D) -> None:
    assert remainder_of_decimals(decimal(*a), decimal(*b)) == decimal(*expected)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((10, 2), (10, 2), (10, 2)),
        ((10, 2), (5, 4), (12, 4)),
        ((38, 0), (38, 10), (38, 6)),
        ((38, 0), (38, 3), (38, 3)),
    ],
)
def test_either(a: D, b: D, expected: D) -> None:
    assert either_decimal(decimal(*a), decimal(*b)) == decimal(*expected)
    assert either_decimal(decimal(*b), decimal(*a)) == decimal(*expected)


@pytest.mark.parametrize(
    ("a", "total", "mean"),
    [
        ((12, 2), (22, 2), (16, 6)),
        ((28, 2), (38, 2), (32, 6)),
        ((30, 10), (38, 10), (34, 14)),
        ((38, 18), (38, 18), (38, 18)),
        ((38, 0), (38, 0), (38, 6)),
        ((35, 2), (38, 2), (38, 6)),
        ((34, 2), (38, 2), (38, 6)),
        ((20, 0), (30, 0), (24, 4)),
    ],
)
def test_totals_and_means(a: D, total: D, mean: D) -> None:
    assert total_of_decimals(decimal(*a)) == decimal(*total)
    assert mean_of_decimals(decimal(*a)) == decimal(*mean)


@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ((38, 10), (38, 10)),
        ((39, 10), (38, 9)),
        ((42, 10), (38, 6)),
        ((60, 10), (38, 6)),
        ((60, 4), (38, 4)),
        ((60, 0), (38, 0)),
        ((77, 76), (38, 37)),
    ],
)
def test_what_needs_more_than_38_digits_gives_up_scale_down_to_six(digits: D, expected: D) -> None:
    assert bounded(*digits) == decimal(*expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("string", STRING),
        (" Integer ", INTEGER),
        ("DOUBLE", DOUBLE),
        ("boolean", BOOLEAN),
        ("date", DATE),
        ("timestamp", TIMESTAMP),
        ("decimal", decimal(38, 18)),
        ("decimal(10)", decimal(10, 0)),
        ("Decimal ( 18 , 2 )", decimal(18, 2)),
    ],
)
def test_type_names(name: str, expected: Type) -> None:
    assert parse_type(name) == expected
    assert parse_type(str(expected)) == expected


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("text", 'no type "text"'),
        ("null", 'no type "null"'),
        ("", 'no type ""'),
        ("decimal(0)", "1 to 38 digits"),
        ("decimal(39,2)", "1 to 38 digits"),
        ("decimal(5,6)", "is not between 0 and 5"),
        ("decimal(5,-1)", "no type"),
        ("decimal(99999,1)", "no type"),
    ],
)
def test_names_that_are_no_types(name: str, says: str) -> None:
    with pytest.raises(ValueError, match=says.replace("(", r"\(")):
        parse_type(name)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (INTEGER, INTEGER, INTEGER),
        (INTEGER, decimal(5, 2), decimal(22, 2)),
        (INTEGER, DOUBLE, DOUBLE),
        (decimal(5, 2), DOUBLE, DOUBLE),
        (decimal(5, 2), decimal(9, 4), decimal(9, 4)),
        (DATE, TIMESTAMP, TIMESTAMP),
        (NULL, STRING, STRING),
        (NULL, NULL, NULL),
        (STRING, INTEGER, None),
        (STRING, DATE, None),
        (BOOLEAN, INTEGER, None),
        (DATE, INTEGER, None),
    ],
)
def test_the_common_type_of_two(a: Type, b: Type, expected: Type | None) -> None:
    assert common_type(a, b) == expected
    assert common_type(b, a) == expected
