"""Three-valued logic: what AND, OR, NOT, IF, IN and comparisons make of NULL."""

import pytest

from clew.lang import evaluate

T, F, N = "TRUE", "FALSE", "NULL"
VALUES = {T: True, F: False, N: None}

AND = {(T, T): T, (T, F): F, (T, N): N, (F, T): F, (F, F): F, (F, N): F, (N, T): N, (N, F): F, (N, N): N}
OR = {(T, T): T, (T, F): T, (T, N): T, (F, T): T, (F, F): F, (F, N): N, (N, T): T, (N, F): N, (N, N): N}


@pytest.mark.parametrize(("a", "b"), list(AND))
def test_and_and_or_follow_their_truth_tables(a: str, b: str) -> None:
    for expression in (f"{a} AND {b}", f"AND({a}, {b})", f"AND(TRUE, {a}, {b}, TRUE)"):
        assert evaluate(expression, {}) is VALUES[AND[a, b]]
    for expression in (f"{a} OR {b}", f"OR({a}, {b})", f"OR(FALSE, {a}, {b}, FALSE)"):
        assert evaluate(expression, {}) is VALUES[OR[a, b]]
    assert evaluate("x AND y", {"x": VALUES[a], "y": VALUES[b]}) is VALUES[AND[a, b]]
    assert evaluate("x OR y", {"x": VALUES[a], "y": VALUES[b]}) is VALUES[OR[a, b]]


@pytest.mark.parametrize(("a", "expected"), [(T, False), (F, True), (N, None)])
def test_not_follows_its_truth_table(a: str, expected: bool | None) -> None:
    assert evaluate(f"NOT {a}", {}) is expected


@pytest.mark.parametrize("operator", ["=", "<>", "<", "<=", ">", ">="])
@pytest.mark.parametrize("value", ["1", "1.5", '"x"', "TRUE", 'DATE("2026-01-31")', "NULL"])
def test_a_comparison_with_null_is_null(operator: str, value: str) -> None:
    assert evaluate(f"{value} {operator} NULL", {}) is None
    assert evaluate(f"NULL {operator} {value}", {}) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1 IN (1, 2)", True),
        ("3 IN (1, 2)", False),
        ("1 IN (1, NULL)", True),
        ("3 IN (1, NULL)", None),
        ("NULL IN (1, 2)", None),
        ("NULL IN (NULL)", None),
        ("1 NOT IN (1, NULL)", False),
        ("3 NOT IN (1, NULL)", None),
        ("3 NOT IN (1, 2)", True),
        ("1.0 IN (1, 2)", True),
        ('"a" IN ("A", "a")', True),
        ("IF(NULL, 1, 2)", 2),
        ("IF(FALSE, 1, NULL)", None),
        ("NULL IS NULL", True),
        ("NULL IS NOT NULL", False),
        ("0 IS NULL", False),
        ("ISNULL(NULL = NULL)", True),
        ("COALESCE(NULL, NULL)", None),
        ("COALESCE(NULL, FALSE)", False),
        ('COALESCE("", "x")', ""),
        ("MIN(1, NULL)", None),
        ("MAX(NULL, 2)", None),
    ],
)
def test_null_in_lists_conditions_and_choices(expression: str, expected: object) -> None:
    assert evaluate(expression, {}) is expected or evaluate(expression, {}) == expected
    assert type(evaluate(expression, {})) is type(expected)
