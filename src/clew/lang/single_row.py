"""One expression on one row, for people at a prompt and for tests."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal

from clew.diagnostics import PlainText, UserError
from clew.diagnostics.codes.language import TYPE_MISMATCH
from clew.lang.arithmetic import fit_integer
from clew.lang.checker import Scalar, check
from clew.lang.evaluation import Row, evaluator
from clew.lang.parser import parse
from clew.lang.scope import Scope, Table
from clew.lang.typed import Value
from clew.lang.types import BOOLEAN, DATE, DOUBLE, INTEGER, NULL, STRING, TIMESTAMP, Type, decimal


def evaluate(expression: str, row: Mapping[str, object], *, today: date | None = None) -> object:
    """The value of an expression over a row of bare column names (a key `table.column` makes a joined table).

    Types are those of the Python values. What is wrong with the expression is raised as a UserError. `today` is what
    TODAY() gives; the present date in UTC if left out.
    """
    tables: dict[str, dict[str, Value]] = {"row": {}}
    for key, value in row.items():
        table, _, column = key.rpartition(".")
        tables.setdefault(table or "row", {})[column] = _as_value(key, value)
    scope = Scope(
        tuple(
            Table(name, {column: type_of(value) for column, value in cells.items()}) for name, cells in tables.items()
        )
    )
    checked = check(parse(PlainText(expression)), scope, Scalar("in this expression"))
    if checked.expression is None:
        raise UserError(*checked.diagnostics)
    return evaluator(checked.expression)(Row(tables, today or datetime.now(UTC).date()))


def type_of(value: Value) -> Type:
    """The narrowest type of a value."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return INTEGER
        case float():
            return DOUBLE
        case str():
            return STRING
        case Decimal():
            return _decimal_type_of(value)
        case datetime():
            return TIMESTAMP
        case date():
            return DATE


def _decimal_type_of(value: Decimal) -> Type:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise UserError(TYPE_MISMATCH.anywhere(problem=f"{value} is not a number"))
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    try:
        return decimal(precision, scale)
    except ValueError as error:
        raise UserError(TYPE_MISMATCH.anywhere(problem=f"{value}: {error}")) from None


def _as_value(key: str, value: object) -> Value:
    match value:
        case None | bool() | str() | float():
            return value
        case int():
            return fit_integer(value)
        case Decimal():
            return value or value.copy_abs()
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).replace(tzinfo=None)
        case date():
            return value
        case _:
            problem = f'the value of "{key}" is a {type(value).__name__}, which no column can hold'
            raise UserError(TYPE_MISMATCH.anywhere(problem=problem))
