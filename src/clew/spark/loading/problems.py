"""How loading says that data is not where it should be, or not as it should be."""

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SCHEMA_MISMATCH, SOURCE_UNAVAILABLE

NOT_UTF8 = "it is not UTF-8 text"
NO_JSON_OBJECT = "it is not one JSON object"
"""What can be wrong with a line as a whole."""

_LONGEST_VALUE = 80


def unavailable(problem: str, hint: str | None = None) -> UserError:
    """Data that cannot be had."""
    return UserError(SOURCE_UNAVAILABLE.anywhere(problem=problem, hint=hint))


def mismatch(problem: str, hint: str | None = None) -> UserError:
    """Data that is not as its dataset says."""
    return UserError(SCHEMA_MISMATCH.anywhere(problem=problem, hint=hint))


def shown(value: str) -> str:
    """A value as messages quote it."""
    return f'"{value}"' if len(value) <= _LONGEST_VALUE else f'"{value[: _LONGEST_VALUE - 1]}…"'


def place(file: str, line: int | None, unit: str = "line") -> str:
    """A line of a file in words."""
    return file if line is None else f"{file}, {unit} {line}"
