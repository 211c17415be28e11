"""Values as literals of the language."""

from datetime import date
from decimal import Decimal

from clew.lang.typed import Value


def text_of_value(value: Value) -> str:
    """A value as a literal of the language."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            return '"' + value.replace('"', '""') + '"'
        case Decimal():
            return f"{value:f}"
        case date():
            return f'DATE("{value.isoformat()}")'
        case _:
            return str(value)
