"""Typed expressions as Spark SQL, for `pyspark.sql.functions.expr`."""

from collections.abc import Callable
from datetime import date

from clew.engine.sql.aggregates import AGGREGATES
from clew.engine.sql.call import Entries, SqlCall
from clew.engine.sql.choices import CHOICES
from clew.engine.sql.conversions import CONVERSIONS, converted
from clew.engine.sql.date_units import DATE_UNITS
from clew.engine.sql.dates import DATES
from clew.engine.sql.literals import literal
from clew.engine.sql.numbers import NUMBERS
from clew.engine.sql.operators import LOGIC, OPERATORS
from clew.engine.sql.ordered_aggregates import ORDERED_AGGREGATES
from clew.engine.sql.patterns import PATTERNS
from clew.engine.sql.powers import POWERS
from clew.engine.sql.text import TEXT
from clew.engine.sql.text_parts import TEXT_PARTS
from clew.lang.conversion import converter
from clew.lang.evaluation import constant_value
from clew.lang.typed import Apply, ColumnValue, Constant, Convert, Expression
from clew.lang.types import Kind

ENTRIES: Entries = {
    **OPERATORS,
    **LOGIC,
    **CHOICES,
    **NUMBERS,
    **POWERS,
    **TEXT,
    **TEXT_PARTS,
    **PATTERNS,
    **DATES,
    **DATE_UNITS,
    **CONVERSIONS,
    **AGGREGATES,
    **ORDERED_AGGREGATES,
}
"""Every function of the language."""

ColumnName = Callable[[str, str], str]
"""From a table and a column to the quoted name that the column has in the DataFrame."""


def sql_of(expression: Expression, column: ColumnName, today: date) -> str:
    """Spark SQL that has the value and the type of the expression, under the settings of `clew.engine.session`."""
    match expression:
        case Constant(value, type_):
            return literal(value, type_)
        case ColumnValue(table, name):
            return column(table, name)
        case Convert(Constant(None), target):
            return literal(None, target)
        case Convert(Constant(value, source), target):
            return literal(converter(source, target)(value), target)
        case Convert(operand, target):
            return converted(sql_of(operand, column, today), operand.type, target)
        case Apply(type=type_) if type_.kind is Kind.NULL:
            return "NULL"
        case Apply("DATE" | "NEGATE", arguments) if all(isinstance(each, Constant) for each in arguments):
            return literal(constant_value(expression), expression.type)
        case Apply(function, arguments):
            written = tuple(sql_of(argument, column, today) for argument in arguments)
            return ENTRIES[function](SqlCall(expression, written, today))
