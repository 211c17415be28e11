"""Decimal arithmetic to the last digit, against Python's fractions."""

from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import floor

from hypothesis import example, given, settings
from hypothesis import strategies as st

from clew.diagnostics import PlainText, UserError
from clew.lang import Grouped, Row, Scalar, Scope, Table, Type, Value, check, evaluator, group_evaluator, parse
from clew.lang.types import INTEGER, decimal, mean_of_decimals, total_of_decimals
from tests.strategies.expressions import values_but_null
from tests.tiers import examples

TODAY = date(2026, 1, 31)
TYPES = st.integers(1, 38).flatmap(lambda precision: st.builds(decimal, st.just(precision), st.integers(0, precision)))


@st.composite
def _pairs(draw: st.DrawFn) -> tuple[Type, Decimal, Type, Decimal]:
    a, b = draw(TYPES), draw(TYPES)
    return a, _decimal(draw(values_but_null(a))), b, _decimal(draw(values_but_null(b)))


def _decimal(value: Value) -> Decimal:
    assert isinstance(value, Decimal)
    return value


def _evaluate(text: str, types: dict[str, Type], row: Mapping[str, Value]) -> tuple[Value, Type]:
    """The value and its type; the text "too large" where it does not fit."""
    checked = check(parse(PlainText(text)), Scope((Table("t", types),)), Scalar("in a test"))
    expression = checked.expression
    assert expression is not None, checked.diagnostics
    return _attempt(lambda: evaluator(expression)(Row({"t": row}, TODAY))), expression.type


def _attempt(evaluate: Callable[[], Value]) -> Value:
    try:
        return evaluate()
    except UserError as error:
        if error.code == "ValueOutOfRange":
            return "too large"
        raise


def _half_up(value: Fraction, places: int) -> Fraction:
    scaled = abs(value) * Fraction(10) ** places
    units = floor(scaled + Fraction(1, 2))
    return (1 if value >= 0 else -1) * units / Fraction(10) ** places


def _to_significant_digits(value: Fraction, digits: int) -> Fraction:
    if value == 0:
        return value
    magnitude = len(str(floor(abs(value)))) if abs(value) >= 1 else 0
    while abs(value) * Fraction(10) ** -magnitude < Fraction(1, 10):
        magnitude -= 1
    return _half_up(value, digits - magnitude)


def _fitted(value: Fraction, type_: Type) -> Fraction | str:
    rounded = _half_up(value, type_.scale)
    return "too large" if abs(rounded) >= Fraction(10) ** (type_.precision - type_.scale) else rounded


def _shown(value: Value) -> Fraction | str:
    assert isinstance(value, Decimal | str)
    return value if isinstance(value, str) else Fraction(value)


@given(_pairs())
@settings(max_examples=examples(400))
@example((decimal(38, 18), Decimal("0.000000000000000005"), decimal(38, 18), Decimal("0.100000000000000000")))
@example((decimal(38, 0), Decimal("9" * 38), decimal(38, 0), Decimal("9" * 38)))
@example((decimal(38, 38), Decimal("0." + "9" * 38), decimal(38, 38), Decimal("0." + "9" * 38)))
def test_the_four_operations_are_exact_up_to_the_scale_of_their_type(
    case: tuple[Type, Decimal, Type, Decimal],
) -> None:
    type_a, a, type_b, b = case
    x, y = Fraction(a), Fraction(b)
    expected = {
        "a + b": x + y,
        "a - b": x - y,
        "a * b": _to_significant_digits(x * y, 39),
        "a / b": _half_up(x / y, 39) if y else None,
    }
    for text, exact in expected.items():
        value, type_ = _evaluate(text, {"a": type_a, "b": type_b}, {"a": a, "b": b})
        if exact is None:
            assert value is None
        else:
            assert _shown(value) == _fitted(exact, type_), text


@given(_pairs())
@settings(max_examples=examples(200))
def test_a_remainder_has_the_sign_of_the_divisor(case: tuple[Type, Decimal, Type, Decimal]) -> None:
    type_a, a, type_b, b = case
    value, type_ = _evaluate("MOD(a, b)", {"a": type_a, "b": type_b}, {"a": a, "b": b})
    if not b:
        assert value is None
    else:
        assert _shown(value) == _fitted(Fraction(a) % Fraction(b), type_)


@given(_pairs(), st.integers(-38, 38))
@settings(max_examples=examples(200))
def test_rounding_goes_away_from_zero_at_halves(case: tuple[Type, Decimal, Type, Decimal], digits: int) -> None:
    type_a, a, _, _ = case
    expected = {
        f"ROUND(a, {digits})": _half_up(Fraction(a), min(digits, type_a.scale)),
        "ROUND(a)": _half_up(Fraction(a), 0),
        "FLOOR(a)": Fraction(floor(Fraction(a))),
        "CEIL(a)": Fraction(-floor(-Fraction(a))),
        "ABS(a)": abs(Fraction(a)),
        "-a": -Fraction(a),
    }
    for text, exact in expected.items():
        value, type_ = _evaluate(text, {"a": type_a}, {"a": a})
        assert _shown(value) == _fitted(exact, type_), text


@given(_pairs())
@settings(max_examples=examples(200))
def test_comparisons_see_every_digit(case: tuple[Type, Decimal, Type, Decimal]) -> None:
    type_a, a, type_b, b = case
    types, row = {"a": type_a, "b": type_b}, {"a": a, "b": b}
    x, y = Fraction(a), Fraction(b)
    for text, expected in {
        "a = b": x == y,
        "a <> b": x != y,
        "a < b": x < y,
        "a >= b": x >= y,
        "a IN (NULL, b, a)": True,
    }.items():
        assert _evaluate(text, types, row)[0] is expected


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
@settings(max_examples=examples(200))
@example(-(2**63), -1)
@example(7, 0)
def test_integers_stay_exact_and_within_64_bits(a: int, b: int) -> None:
    types, row = {"a": INTEGER, "b": INTEGER}, {"a": a, "b": b}
    for text, exact in {"a + b": a + b, "a - b": a - b, "a * b": a * b, "-a": -a}.items():
        expected = exact if -(2**63) <= exact < 2**63 else "too large"
        assert _evaluate(text, types, row)[0] == expected
    assert _evaluate("MOD(a, b)", types, row)[0] == (a % b if b else None)
    quotient, type_ = _evaluate("a / b", types, row)
    assert type_ == decimal(38, 18)
    if b:
        assert _shown(quotient) == _fitted(_half_up(Fraction(a, b), 39), type_)


@given(
    TYPES.flatmap(lambda type_: st.tuples(st.just(type_), st.lists(values_but_null(type_), min_size=1, max_size=20)))
)
@settings(max_examples=examples(100))
def test_sums_and_means_over_rows_are_exact(case: tuple[Type, list[Value]]) -> None:
    type_, values = case
    numbers = [Fraction(_decimal(value)) for value in values]
    total = sum(numbers, Fraction(0))
    assert _over_rows("SUM(a)", type_, values) == _fitted(total, total_of_decimals(type_))
    mean = _half_up(total / len(numbers), 39)
    assert _over_rows("AVG(a)", type_, values) == _fitted(mean, mean_of_decimals(type_))


def _over_rows(text: str, type_: Type, values: list[Value]) -> Fraction | str:
    checked = check(parse(PlainText(text)), Scope((Table("t", {"a": type_}),)), Grouped(frozenset()))
    expression = checked.expression
    assert expression is not None
    rows = [Row({"t": {"a": value}}, TODAY) for value in values]
    return _shown(_attempt(lambda: group_evaluator(expression)(rows)))
