"""Names, types and values as Spark SQL text."""

from datetime import date, datetime
from decimal import Decimal

from clew.lang.typed import Value
from clew.lang.types import Kind, Type

_SIMPLE_TYPES = {
    Kind.STRING: "STRING",
    Kind.INTEGER: "BIGINT",
    Kind.DOUBLE: "DOUBLE",
    Kind.BOOLEAN: "BOOLEAN",
    Kind.DATE: "DATE",
    Kind.TIMESTAMP: "TIMESTAMP_NTZ",
    Kind.NULL: "VOID",
}


def spark_type(type_: Type) -> str:
    """The type of Spark that holds the values of a type of the language."""
    if type_.kind is Kind.DECIMAL:
        return f"DECIMAL({type_.precision},{type_.scale})"
    return _SIMPLE_TYPES[type_.kind]


def quoted(name: str) -> str:
    """A name that means itself, whatever characters it has."""
    return "`" + name.replace("`", "``") + "`"


def cast(sql: str, type_: Type) -> str:
    """The value as another type by the rules of Spark, which are those of the language for a few pairs only."""
    return f"CAST({sql} AS {spark_type(type_)})"


def text_literal(text: str) -> str:
    """A text in quotes. A dollar sign is escaped because Spark puts variables in place of ${...}, even inside texts."""
    return "'" + "".join(map(_escaped, text)) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character < " " or character in "$\x7f":
        return f"\\u{ord(character):04x}"
    return character


def literal(value: Value, type_: Type) -> str:
    """A value of a type, so that Spark sees exactly that type."""
    match value:
        case None:
            return "NULL" if type_.kind is Kind.NULL else cast("NULL", type_)
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return text_literal(value)
        case int():
            return _signed(f"{value}L")
        case Decimal():
            return _decimal_literal(value, type_)
        case float():
            return _double_literal(value)
        case datetime():
            return f"TIMESTAMP_NTZ '{value.isoformat(sep=' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"


def zero(type_: Type) -> str:
    """Zero as a number of a type; of another decimal type it could make Spark round what is compared with it."""
    return literal(Decimal(0), type_) if type_.kind is Kind.DECIMAL else {Kind.DOUBLE: "0D"}.get(type_.kind, "0L")


def _decimal_literal(value: Decimal, type_: Type) -> str:
    """Spark gives a literal the precision it is written with."""
    digits = f"{value:f}"
    written = value.as_tuple()
    scale = max(0, -int(written.exponent))
    if (max(len(written.digits), scale), scale) == (type_.precision, type_.scale):
        return _signed(f"{digits}BD")
    return cast(f"'{digits}'", type_)


def _double_literal(value: float) -> str:
    text = repr(value)
    return _signed(f"{text}D") if text[-1].isdigit() else f"CAST('{text}' AS DOUBLE)"


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number
