"""Conditions as SQL, as far as DuckDB and the Python evaluator certainly agree.

The translated condition keeps every row for which the condition is true, and perhaps more; the Python evaluator then
decides. Doubles, timestamps, and values that a column's type cannot hold exactly are left to it entirely.
"""

from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

from clew.diagnostics import ClewError
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression, Value, columns_of
from clew.lang.types import INTEGER_MAX, INTEGER_MIN, Kind, Type
from clew.trace.sql import Sql, joined, sql_type

ColumnSql = Callable[[ColumnValue], Sql | None]
"""The SQL of a column as its declared type; None if the translation may not use it."""

_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_TEXT_TESTS = {"CONTAINS": "contains", "STARTSWITH": "starts_with", "ENDSWITH": "ends_with"}
_ORDERED = frozenset({Kind.STRING, Kind.INTEGER, Kind.DECIMAL, Kind.DATE})
_COMPARED = _ORDERED | {Kind.BOOLEAN}


def conjuncts(condition: Expression) -> Iterator[Expression]:
    """The conditions that must all be true for the whole to be."""
    if isinstance(condition, Apply) and condition.function == "AND":
        for argument in condition.arguments:
            yield from conjuncts(argument)
    else:
        yield condition


def translated(condition: Expression, column: ColumnSql, today: date) -> Sql | None:
    """SQL that is TRUE, FALSE or NULL exactly where the condition is; None if that is not certain."""
    return _Translation(column, today).condition(condition)


class _Translation:
    def __init__(self, column: ColumnSql, today: date) -> None:
        self._column = column
        self._today = today

    def condition(self, expression: Expression) -> Sql | None:
        match expression:
            case Convert(operand, type_) if type_.kind is Kind.BOOLEAN:
                return self.condition(operand)
            case ColumnValue(type=type_) if type_.kind is Kind.BOOLEAN:
                return self._column(expression)
            case Constant(value) if value is None or isinstance(value, bool):
                return Sql("CAST(? AS BOOLEAN)", (value,))
            case Apply("AND" | "OR" as name, arguments) if arguments:
                parts = self._all(arguments)
                return None if parts is None else "(" + joined(f" {name} ", parts) + ")"
            case Apply("NOT", (operand,)):
                inner = self.condition(operand)
                return None if inner is None else "(NOT " + inner + ")"
            case Apply("ISNULL", (operand,)):
                column = self._lossless(operand)
                return None if column is None else "(" + column[0] + " IS NULL)"
            case Apply("IN", (value, *candidates)):
                return self._any_of(value, candidates)
            case Apply("BETWEEN", (value, low, high)):
                return self._within(value, low, high)
            case Apply(name, (left, right)) if name in _COMPARISONS:
                return self._comparison(name, left, right)
            case Apply(name, (left, right)) if name in _TEXT_TESTS:
                return self._text_test(_TEXT_TESTS[name], left, right)
            case _:
                return None

    def _all(self, expressions: Sequence[Expression]) -> list[Sql] | None:
        parts = [self.condition(each) for each in expressions]
        known = [part for part in parts if part is not None]
        return known if len(known) == len(parts) else None

    def _any_of(self, value: Expression, candidates: Sequence[Expression]) -> Sql | None:
        parts = [self._comparison("=", value, candidate) for candidate in candidates]
        known = [part for part in parts if part is not None]
        return "(" + joined(" OR ", known) + ")" if known and len(known) == len(parts) else None

    def _within(self, value: Expression, low: Expression, high: Expression) -> Sql | None:
        bounds = [self._comparison(">=", value, low), self._comparison("<=", value, high)]
        known = [bound for bound in bounds if bound is not None]
        return "(" + joined(" AND ", known) + ")" if len(known) == len(bounds) else None

    def _comparison(self, name: str, left: Expression, right: Expression) -> Sql | None:
        if not columns_of(left):
            left, right, name = right, left, _MIRRORED.get(name, name)
        column = self._lossless(left)
        if column is None or columns_of(right):
            return None
        sql, type_ = column
        if type_.kind not in (_COMPARED if name in {"=", "<>"} else _ORDERED):
            return None
        constant = self._constant(right, type_)
        return None if constant is None else "(" + sql + f" {name} " + constant + ")"

    def _text_test(self, name: str, left: Expression, right: Expression) -> Sql | None:
        column = self._lossless(left)
        if column is None or columns_of(right) or column[1].kind is not Kind.STRING:
            return None
        constant = self._constant(right, column[1])
        return None if constant is None else f"{name}(" + column[0] + ", " + constant + ")"

    def _lossless(self, expression: Expression) -> tuple[Sql, Type] | None:
        """A column, perhaps converted to a type that holds all its values and keeps their order."""
        source = expression.operand if isinstance(expression, Convert) else expression
        if not isinstance(source, ColumnValue) or not keeps_all(source.type, expression.type):
            return None
        sql = self._column(source)
        return None if sql is None else (sql, source.type)

    def _constant(self, expression: Expression, type_: Type) -> Sql | None:
        try:
            value = evaluator(expression)(Row({}, self._today))
        except ClewError:
            return None
        return bound(value, type_)


def keeps_all(source: Type, target: Type) -> bool:
    """Whether a type holds all values of another as they are, and keeps their order."""
    if source == target:
        return True
    if target.kind is not Kind.DECIMAL:
        return False
    whole = target.precision - target.scale
    if source.kind is Kind.INTEGER:
        return whole >= 19
    return source.kind is Kind.DECIMAL and target.scale >= source.scale and whole >= source.precision - source.scale


def bound(value: Value, type_: Type) -> Sql | None:
    """A value as a parameter of a column's type; None if the type cannot hold it exactly."""
    if value is None:
        return Sql(f"CAST(NULL AS {sql_type(type_)})")
    match type_.kind:
        case Kind.INTEGER if isinstance(value, int | Decimal) and value == int(value):
            fits = INTEGER_MIN <= value <= INTEGER_MAX
            return Sql("CAST(? AS BIGINT)", (int(value),)) if fits else None
        case Kind.DECIMAL if isinstance(value, int | Decimal):
            return _bound_decimal(Decimal(value), type_)
        case Kind.STRING if isinstance(value, str) and _is_storable(value):
            return Sql("?", (value,))
        case Kind.BOOLEAN if isinstance(value, bool):
            return Sql("CAST(? AS BOOLEAN)", (value,))
        case Kind.DATE if isinstance(value, date) and not isinstance(value, datetime):
            return Sql("CAST(? AS DATE)", (value,))
        case _:
            return None


def _bound_decimal(value: Decimal, type_: Type) -> Sql | None:
    units = Fraction(value) * 10**type_.scale
    if units.denominator != 1 or abs(units) >= 10**type_.precision:
        return None
    return Sql(f"CAST(? AS {sql_type(type_)})", (f"{value:f}",))


def _is_storable(text: str) -> bool:
    """Whether a file can hold the text: one with half a surrogate pair equals nothing that is stored."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
