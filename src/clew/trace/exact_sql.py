"""Values of expressions as SQL, as far as DuckDB certainly computes what the Python evaluator does: exact numbers.

Doubles and timestamps, functions of text and dates, and everything that rounds are left to the evaluator.
"""

from datetime import date

from clew.diagnostics import ClewError
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Apply, ColumnValue, Convert, Expression, columns_of
from clew.lang.types import MAX_PRECISION, Kind, Type
from clew.trace.prefilter import ColumnSql, bound, keeps_all, translated
from clew.trace.sql import Sql, joined, sql_type

_EXACT = frozenset({Kind.STRING, Kind.INTEGER, Kind.DECIMAL, Kind.DATE, Kind.BOOLEAN})


def exact_value(expression: Expression, column: ColumnSql, today: date) -> Sql | None:
    """SQL with the value that an expression has for a row; None if that is not certain.

    Where the evaluator would report a value that does not fit, the query fails.
    """
    if expression.type.kind not in _EXACT:
        return None
    if not columns_of(expression):
        return _constant(expression, today)
    match expression:
        case ColumnValue():
            return column(expression)
        case Convert(operand, type_):
            inner = exact_value(operand, column, today) if keeps_all(operand.type, type_) else None
            return None if inner is None else _cast(inner, type_)
        case Apply("IF", (condition, then, otherwise)):
            chosen = translated(condition, column, today)
            branches = _all([then, otherwise], column, today)
            if chosen is None or branches is None:
                return None
            return "(CASE WHEN " + chosen + " THEN " + branches[0] + " ELSE " + branches[1] + " END)"
        case Apply("COALESCE", arguments):
            values = _all(arguments, column, today)
            return None if values is None else "coalesce(" + joined(", ", values) + ")"
        case Apply("+" | "-" | "*" as name, (left, right), type_):
            operands = _all([left, right], column, today)
            return None if operands is None else _calculated(name, operands, (left.type, right.type), type_)
        case _:
            return None


def _constant(expression: Expression, today: date) -> Sql | None:
    """The value of an expression that reads no column."""
    try:
        value = evaluator(expression)(Row({}, today))
    except ClewError:
        return None
    return bound(value, expression.type)


def _all(expressions: "list[Expression] | tuple[Expression, ...]", column: ColumnSql, today: date) -> list[Sql] | None:
    found = [exact_value(each, column, today) for each in expressions]
    known = [sql for sql in found if sql is not None]
    return known if len(known) == len(found) else None


def _calculated(name: str, operands: list[Sql], types: tuple[Type, Type], result: Type) -> Sql | None:
    left, right = operands
    if result.kind is Kind.INTEGER:
        return "(" + left + f" {name} " + right + ")"
    if result.kind is not Kind.DECIMAL or any(type_.kind is not Kind.DECIMAL for type_ in types):
        return None
    if name == "*":
        is_exact = result.scale == sum(type_.scale for type_ in types)
        is_exact = is_exact and sum(type_.precision for type_ in types) <= MAX_PRECISION
        return _cast("(" + left + " * " + right + ")", result) if is_exact else None
    if result.scale != max(type_.scale for type_ in types) or result.precision >= MAX_PRECISION:
        return None
    return _cast("(" + _cast(left, result) + f" {name} " + _cast(right, result) + ")", result)


def _cast(value: Sql, type_: Type) -> Sql:
    return "CAST(" + value + f" AS {sql_type(type_)})"
