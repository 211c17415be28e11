"""Which expressions may have no value for a row, not even NULL."""

from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression, walk
from clew.lang.types import Kind

_NOTHING_LOST = {(Kind.INTEGER, Kind.DECIMAL), (Kind.DATE, Kind.TIMESTAMP)}
"""Conversions under which different values stay different."""

_NEVER_FAILING = frozenset(
    {"=", "<>", "<", "<=", ">", ">=", "AND", "OR", "NOT", "IN", "ISNULL", "IF", "COALESCE", "MIN", "MAX", "TODAY"}
    | {"CASE", "SWITCH", "BETWEEN", "NULLIF", "GREATEST", "LEAST", "LIKE", "SIGN", "SQRT", "LN", "FIND", "SPLIT"}
    | {"PROPER", "HASH", "UUID5", "WEEKDAY", "DATE_TRUNC", "TRY_TO_INTEGER", "TRY_TO_DECIMAL", "TRY_TO_DATE"}
    | {"LEN", "UPPER", "LOWER", "TRIM", "CONTAINS", "STARTSWITH", "ENDSWITH", "YEAR", "MONTH", "DAY"}
)
"""Functions that have a value for every value."""


def can_fail(expression: Expression) -> bool:
    """Whether there may be rows for which an expression has no value, not even NULL."""
    for node in walk(expression):
        if isinstance(node, Apply) and node.function not in _NEVER_FAILING:
            return True
        if isinstance(node, Convert) and not isinstance(node.operand, Constant) and plain_column(node) is None:
            return True
    return False


def plain_column(value: Expression) -> ColumnValue | None:
    """The column of a value that is nothing else, or its conversion to a type that keeps all values apart."""
    if isinstance(value, Convert) and isinstance(value.operand, ColumnValue):
        types = (value.operand.type.kind, value.type.kind)
        return value.operand if types in _NOTHING_LOST or _widens(value) else None
    return value if isinstance(value, ColumnValue) else None


def _widens(value: Convert) -> bool:
    source, target = value.operand.type, value.type
    return source.kind is Kind.DECIMAL and target.kind is Kind.DECIMAL and target.scale >= source.scale
