"""A typed expression survives JSON and text, and evaluating it gives a value of its type or a UserError."""

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.diagnostics import PlainText, UserError
from clew.lang import (
    Expression,
    Grouped,
    Row,
    Scalar,
    Scope,
    Table,
    Value,
    check,
    evaluator,
    group_evaluator,
    parse,
    text_of,
)
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, columns_of, from_json, to_json, walk
from clew.lang.types import DATE, DOUBLE, INTEGER, NULL, STRING, TIMESTAMP, Kind, Type, decimal
from tests.strategies.expressions import JOINED, SCOPE, TABLE, aggregation_texts, expression_texts, expressions, rows
from tests.tiers import examples

TODAY = date(2026, 1, 31)


@given(expressions())
@settings(max_examples=examples(300))
def test_an_expression_survives_json(expression: Expression) -> None:
    assert from_json(json.loads(json.dumps(to_json(expression)))) == expression


@given(expressions())
@settings(max_examples=examples(300))
def test_the_text_of_an_expression_reads_as_the_same_expression(expression: Expression) -> None:
    checked = check(parse(PlainText(text_of(expression))), SCOPE, Scalar("in a test"))
    assert checked.diagnostics == ()
    assert checked.expression == expression


@given(expression_texts())
@settings(max_examples=examples(300))
def test_generated_expressions_are_well_typed(text: str) -> None:
    checked = check(parse(PlainText(text)), SCOPE, Scalar("in a test"))
    assert {d.code for d in checked.diagnostics} <= {"ValueOutOfRange"}, checked.diagnostics


@given(expressions(), rows())
@settings(max_examples=examples(600))
def test_an_expression_has_a_value_of_its_type_or_is_out_of_range(
    expression: Expression, tables: dict[str, dict[str, Value]]
) -> None:
    value = _value_or_none(lambda: evaluator(expression)(Row(tables, TODAY)))
    assert value is None or _is_of(value, expression.type), (value, expression.type)


@given(aggregation_texts(), st.lists(rows(), min_size=1, max_size=4))
@settings(max_examples=examples(200))
def test_an_aggregation_has_a_value_of_its_type_or_is_out_of_range(
    text: str, group: list[dict[str, dict[str, Value]]]
) -> None:
    checked = check(parse(PlainText(text)), SCOPE, Grouped(frozenset({"text"})))
    expression = checked.expression
    if expression is None:
        assert {d.code for d in checked.diagnostics} == {"ValueOutOfRange"}
        return
    value = _value_or_none(lambda: group_evaluator(expression)([Row(tables, TODAY) for tables in group]))
    assert value is None or _is_of(value, expression.type)


def _value_or_none(evaluate: Callable[[], Value]) -> Value:
    """The value, or None where it is out of range; everything else that is raised is a mistake."""
    try:
        return evaluate()
    except UserError as error:
        if error.code == "ValueOutOfRange":
            return None
        raise


def _is_of(value: Value, type_: Type) -> bool:
    match type_.kind:
        case Kind.DECIMAL:
            if not isinstance(value, Decimal):
                return False
            _, digits, exponent = value.as_tuple()
            return exponent == -type_.scale and len(digits) <= max(type_.precision, type_.scale + 1)
        case Kind.INTEGER:
            return type(value) is int and -(2**63) <= value < 2**63
        case Kind.DOUBLE:
            return type(value) is float
        case Kind.STRING:
            return type(value) is str
        case Kind.BOOLEAN:
            return type(value) is bool
        case Kind.DATE:
            return type(value) is date
        case Kind.TIMESTAMP:
            return type(value) is datetime
        case Kind.NULL:
            return False


@pytest.mark.parametrize(
    "constant",
    [
        Constant(None, NULL),
        Constant(None, STRING),
        Constant(-(2**63), INTEGER),
        Constant(Decimal("-0.50"), decimal(2, 2)),
        Constant(1e300, DOUBLE),
        Constant(float("inf"), DOUBLE),
        Constant(date(1, 1, 1), DATE),
        Constant(datetime(2026, 1, 31, 12, 0, 0, 5), TIMESTAMP),  # noqa: DTZ001
    ],
)
def test_every_kind_of_constant_survives_json(constant: Constant) -> None:
    assert from_json(json.loads(json.dumps(to_json(constant)))) == constant


@pytest.mark.parametrize(
    "data", [None, [], ["constant"], ["apply", "string"], ["column", "no type", "a", "b"], {"a": 1}]
)
def test_json_that_is_no_expression_is_refused(data: object) -> None:
    with pytest.raises(ValueError, match=r"not an expression|no type"):
        from_json(data)


def test_the_columns_of_an_expression_are_all_that_it_reads() -> None:
    checked = check(parse(PlainText("IF(flag, amount, fx.`fx rate` * 2)")), SCOPE, Scalar("in a test"))
    assert checked.expression is not None
    assert columns_of(checked.expression) == {(TABLE, "flag"), (TABLE, "amount"), (JOINED, "fx rate")}
    kinds = [type(node) for node in walk(checked.expression)]
    assert kinds[0] is Apply
    assert {Apply, Convert, ColumnValue, Constant} == set(kinds)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a+b*c", "t.a + (t.b * t.c)"),
        ("(a+b)*c", "(t.a + t.b) * t.c"),
        ("not a = 1 or b is not null", "(NOT(t.a = 1)) OR (NOT(t.b IS NULL))"),
        ("a in (1, b+1)", "t.a IN (1, t.b + 1)"),
        ('`odd name` = "say ""hi"""', 't.`odd name` = "say ""hi"""'),
        ("- - a", "-(-t.a)"),
        ("`in` = `x``y`", "t.`in` = t.`x``y`"),
        ("and(a = 1)", "AND(t.a = 1)"),
    ],
)
def test_the_text_of_an_expression_is_what_a_person_would_write(text: str, shown: str) -> None:
    columns = {"a": INTEGER, "b": INTEGER, "c": INTEGER, "odd name": STRING, "in": STRING, "x`y": STRING}
    checked = check(parse(PlainText(text)), Scope((Table("t", columns),)), Scalar("in a test"))
    assert checked.expression is not None
    assert text_of(checked.expression) == shown
