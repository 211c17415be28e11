"""What a scalar means: the core rules of YAML 1.2, so that `on` and `no` are text, with exact decimals and dates."""

import re
from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import TypeAlias

from clew.definitions.nodes import ListNode, MapNode, Node, ScalarNode
from clew.diagnostics import UserError
from clew.diagnostics.codes.workspace import INVALID_VALUE

Scalar: TypeAlias = str | int | Decimal | float | bool | date | None
"""A value of a cell or an option. Floats are infinity and not-a-number only; all other numbers are exact."""

Value: TypeAlias = "Scalar | tuple[Value, ...] | Mapping[str, Value]"
"""A value of any shape."""

_WORDS: Mapping[str, Scalar] = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}
_STARTS_OF_WORDS = frozenset("~nNtTfF")
_STARTS_OF_NUMBERS = frozenset("0123456789+-.")

_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_BASES = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?([0-9]+))?")
_DATE = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")

_MOST_DIGITS = 400
_LARGEST_EXPONENT = 400
"""Larger than any column type. Calculating with 1e999999999 would exhaust the memory."""


def scalar_value(node: ScalarNode) -> Scalar:
    """The value of a scalar. UserError if it looks like a date or a number but is not one."""
    text = node.text
    if node.style:
        return text
    if not text or text[0] in _STARTS_OF_WORDS:
        return _WORDS.get(text, text)
    if text[0] not in _STARTS_OF_NUMBERS:
        return text
    if _INTEGER.fullmatch(text):
        return _integer(node, text, 10)
    if (match := _DECIMAL.fullmatch(text)) is not None:
        return _decimal(node, text, match[1])
    if (match := _DATE.fullmatch(text)) is not None:
        return _date(node, match)
    if _OTHER_BASES.fullmatch(text):
        return _integer(node, text[2:], 8 if text[1] == "o" else 16)
    return _WORDS.get(text, text)


def value_of(node: Node) -> Value:
    """The value of a whole tree. UserError if a part of it has none."""
    match node:
        case ScalarNode():
            return scalar_value(node)
        case ListNode():
            return tuple(value_of(item) for item in node.items)
        case MapNode():
            return {key: value_of(entry.value) for key, entry in node.entries.items()}


def _integer(node: ScalarNode, digits: str, base: int) -> int:
    if len(digits) > _MOST_DIGITS:
        raise UserError(INVALID_VALUE.at(node.span, problem=f"a number of {len(digits)} digits is too long"))
    return int(digits, base)


def _decimal(node: ScalarNode, text: str, exponent: str | None) -> Decimal:
    if len(text) > _MOST_DIGITS or (exponent is not None and int(exponent) > _LARGEST_EXPONENT):
        raise UserError(INVALID_VALUE.at(node.span, problem="this number is too large or too long"))
    return Decimal(text)


def _date(node: ScalarNode, match: re.Match[str]) -> date:
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        problem = f"there is no date {match[0]}"
        raise UserError(
            INVALID_VALUE.at(node.span, problem=problem, hint="correct it, or put it in quotes to make it text")
        ) from None
