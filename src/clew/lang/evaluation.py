"""Evaluation in plain Python, row by row: the reference for Spark's evaluation.

An expression is compiled once into nested functions, which are then called for every row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from datetime import date
from typing import Any

from clew import budgets
from clew.deferred import dataclass
from clew.diagnostics import EngineBug
from clew.diagnostics.codes.language import AGGREGATE_NOT_ALLOWED
from clew.lang.conversion import converter
from clew.lang.functions import (
    FUNCTIONS,
    AggregateFunction,
    Family,
    Function,
    LazyFunction,
    NullRule,
    RunFunction,
    Signature,
)
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression, Value, walk


@dataclass(frozen=True, slots=True)
class Row:
    """The values that an expression can see: for each table (the working one, the joined ones) its columns."""

    tables: Mapping[str, Mapping[str, Value]]
    today: date
    aggregates: Mapping[Apply, Value] = field(default_factory=dict)
    """In an aggregation: the values of its aggregate calls for the current group."""


Evaluator = Callable[[Row], Value]


def evaluator(expression: Expression) -> Evaluator:
    """A function from a row to the value of the expression."""
    evaluate = _evaluator(expression)
    if not _makes_text(expression):
        return evaluate

    def evaluate_row(row: Row) -> Value:
        budgets.begin_row()
        return evaluate(row)

    return evaluate_row


def _makes_text(expression: Expression) -> bool:
    return any(isinstance(node, Apply) and FUNCTIONS[node.function].family is Family.TEXT for node in walk(expression))


def _evaluator(expression: Expression) -> Evaluator:
    match expression:
        case Constant(value):
            return lambda _row: value
        case ColumnValue(table, column):
            return lambda row: row.tables[table][column]
        case Convert(operand, target):
            inner, convert = _evaluator(operand), converter(operand.type, target)
            return lambda row: None if (value := inner(row)) is None else convert(value)
        case Apply():
            return _application(expression)


def _application(expression: Apply) -> Evaluator:
    function = FUNCTIONS[expression.function]
    if isinstance(function, AggregateFunction):
        return lambda row: _value_in_group(expression, row)
    arguments = list[Evaluator]()
    for argument in expression.arguments:  # a comprehension would be one more call for each level
        arguments.append(_evaluator(argument))
    match function:
        case RunFunction():
            return lambda row: function.value(row.today)
        case LazyFunction():
            return lambda row: function.choose(arguments, row)
        case Function():
            return _strict(function, signature_of(expression), arguments)


def _strict(function: Function, signature: Signature, arguments: Sequence[Evaluator]) -> Evaluator:
    apply = function.bind(signature)
    if function.nulls is NullRule.HANDLES:
        return lambda row: apply(*[argument(row) for argument in arguments])
    match arguments:
        case [only]:
            return lambda row: None if (value := only(row)) is None else apply(value)
        case [left, right]:
            return _binary(apply, left, right)
        case _:
            return _propagating(apply, arguments)


def _binary(apply: Callable[..., Value], left: Evaluator, right: Evaluator) -> Evaluator:
    def evaluate(row: Row) -> Value:
        a, b = left(row), right(row)
        return None if a is None or b is None else apply(a, b)

    return evaluate


def _propagating(apply: Callable[..., Value], arguments: Sequence[Evaluator]) -> Evaluator:
    def evaluate(row: Row) -> Value:
        values = [argument(row) for argument in arguments]
        return None if None in values else apply(*values)

    return evaluate


def _value_in_group(expression: Apply, row: Row) -> Value:
    if expression not in row.aggregates:
        raise EngineBug(AGGREGATE_NOT_ALLOWED.anywhere(function=expression.function, place="outside a group"))
    return row.aggregates[expression]


def signature_of(expression: Apply) -> Signature:
    """The signature that a checked call has."""
    return Signature(tuple(argument.type for argument in expression.arguments), expression.type)


def group_evaluator(expression: Expression, today: date | None = None) -> Callable[[Sequence[Row]], Value]:
    """A function from the rows of a group to the value of an aggregation.

    A group has at least one row. Where there may be none, as for a total of all rows, `today` is needed.
    """
    calls = [(call, _aggregate_evaluator(call)) for call in _aggregate_calls(expression)]
    outer = evaluator(expression)

    def evaluate(rows: Sequence[Row]) -> Value:
        values = {call: combine(rows) for call, combine in calls}
        if rows or today is None:
            return outer(Row(rows[0].tables, rows[0].today, values))
        return outer(Row({}, today, values))

    return evaluate


def _aggregate_calls(expression: Expression) -> list[Apply]:
    match expression:
        case Apply(function) if isinstance(FUNCTIONS[function], AggregateFunction):
            return [expression]
        case Apply(_, arguments):
            return [call for argument in arguments for call in _aggregate_calls(argument)]
        case Convert(operand):
            return _aggregate_calls(operand)
        case Constant() | ColumnValue():
            return []


def _aggregate_evaluator(call: Apply) -> Callable[[Sequence[Row]], Value]:
    function = FUNCTIONS[call.function]
    assert isinstance(function, AggregateFunction)  # noqa: S101 - _aggregate_calls gives no other
    signature = signature_of(call)
    if not call.arguments:
        return lambda rows: function.combine([None] * len(rows), signature)
    contribution = contributing(call)

    def combine(rows: Sequence[Row]) -> Value:
        values = [contribution(row) for row in rows]
        return function.combine([value for value in values if value is not None], signature)

    return combine


def contributing(call: Apply) -> Callable[[Row], Any]:
    """A function from a row to what it brings into an aggregate call: the value of the argument, or all values where
    there are several arguments; None where the first is NULL."""
    first, *others = map(evaluator, call.arguments)
    if not others:
        return first
    return lambda row: None if (value := first(row)) is None else (value, *(other(row) for other in others))


def constant_value(expression: Expression) -> Value:
    """The value of an expression that reads no column and does not ask for the date."""
    return evaluator(expression)(Row({}, date.min))
