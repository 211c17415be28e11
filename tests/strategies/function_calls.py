"""Calls of every function of the language, made from the examples of its declaration, and rows that try them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from itertools import islice

from clew.diagnostics import PlainText
from clew.lang import Expression, Grouped, Scalar, Type, Value, check, parse
from clew.lang.functions import FUNCTIONS, SHORTHANDS, AnyFunction, Shorthand, is_aggregate
from clew.lang.types import Kind
from tests.strategies.expressions import COLUMNS, JOINED, JOINED_COLUMNS, SCOPE, TABLE

ALL: Mapping[str, AnyFunction | Shorthand] = {**FUNCTIONS, **SHORTHANDS}
_MOST_CALLS = 16
"""Of one function."""
_ROWS = 18

_LITERAL = re.compile(r'DATE\("[^"]*"\)|"(?:[^"]|"")*"|\b\d+(?:\.\d+)?\b|\b(?:TRUE|FALSE)\b|(?<!IS )\bNULL\b')
_NUMBERS = ("i", "amount", "share", "wide", "j", "rate")


def _columns_like(literal: str) -> tuple[str, ...]:
    """The columns that may stand in place of a literal."""
    if literal.startswith("DATE"):
        return ("day", "at", "since")
    if literal.startswith('"'):
        return ("text", "größe", "currency")
    if literal in {"TRUE", "FALSE"}:
        return ("flag",)
    return _NUMBERS if literal != "NULL" else ("amount", "text", "flag", "day")


def calls(function: AnyFunction | Shorthand) -> list[Expression]:
    """Well-typed calls of a function: its examples, with columns in place of some of the constants, or of all."""
    texts = dict.fromkeys(text for example in function.examples for text in _variants(example.expression))
    context = Grouped(frozenset({"text"})) if is_aggregate(function.name) else Scalar("in a test")
    found = (check(parse(PlainText(text)), SCOPE, context).expression for text in texts)
    typed = [expression for expression in found if expression is not None]
    every = -(-len(typed) // _MOST_CALLS) or 1
    return list(islice(typed, 0, None, every))


def _variants(example: str) -> Iterator[str]:
    if not _LITERAL.search(example) or re.search(r"\b[xw]\b", example):
        for column in (*_NUMBERS, "text", "day", "at", "flag"):
            other = re.sub(r"\bday\b", "since" if column == "day" else "day", example)
            yield re.sub(r"\bx\b", column, re.sub(r"\bw\b", "rate", other))
        return
    literals = list(_LITERAL.finditer(example))[:4]
    for chosen in reversed(range(1 << len(literals))):
        for shift in range(6):
            text = example
            for number, literal in reversed(list(enumerate(literals))):
                if chosen >> number & 1:
                    columns = _columns_like(literal[0])
                    column = columns[(number + shift) % len(columns)]
                    text = f"{text[: literal.start()]}{column}{text[literal.end() :]}"
            yield text


def _extremes(type_: Type) -> Sequence[Value]:
    match type_.kind:
        case Kind.INTEGER:
            return [0, 1, -1, 2**63 - 1, 3, -(2**63), 12, None]
        case Kind.DECIMAL:
            largest = Decimal((0, (9,) * type_.precision, -type_.scale))
            unit = Decimal((0, (1,), -type_.scale))
            zero, half = Decimal((0, (0,), -type_.scale)), Decimal((0, (5, *(0,) * (type_.scale - 1)), -type_.scale))
            return [half, largest, zero, None, unit, largest.copy_negate(), half.copy_negate()]
        case Kind.DOUBLE:
            return [0.5, -0.0, 1e300, None, 5e-324, -2.5, 4503599627370496.5]
        case Kind.STRING:
            return [
                "EUR",
                "",
                "ß",
                " 12 ",
                "İstanbul ΟΔΟΣ",
                None,
                "2026-02-28",
                "e\u0301😀a",
                "-1.50",
                "a%_!b",
                "31-Jan-2026",
                "名前",
            ]
        case Kind.BOOLEAN:
            return [True, False, None]
        case Kind.DATE:
            return [
                date(2026, 1, 31),
                date(2024, 2, 29),
                date(9999, 12, 31),
                None,
                date(1, 1, 1),
                date(1900, 3, 1),
                date(1582, 10, 10),
            ]
        case Kind.TIMESTAMP:
            return [datetime(2024, 2, 29, 23, 59, 59, 999999), None, datetime(1, 1, 1), datetime(2026, 1, 31)]  # noqa: DTZ001
        case Kind.NULL:
            return [None]


def hard_rows() -> list[dict[str, dict[str, Value]]]:
    """Rows with NULL, values at the edges of their types, texts of many scripts; the last one is all NULL."""
    tables = {TABLE: COLUMNS, JOINED: JOINED_COLUMNS}
    found = list[dict[str, dict[str, Value]]]()
    for number in range(_ROWS):
        row = dict[str, dict[str, Value]]()
        for table, columns in tables.items():
            row[table] = {}
            for place, (name, type_) in enumerate(columns.items()):
                known = _extremes(type_)
                row[table][name] = known[(number * (1 + place % 3) + place) % len(known)]
        found.append(row)
    return [*found, {table: dict.fromkeys(columns) for table, columns in tables.items()}]
