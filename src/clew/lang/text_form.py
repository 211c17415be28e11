"""A typed expression as text again: what explanations, plans and generated tests show.

Parsing and checking the text gives the same typed tree.
"""

import re

from clew.lang.functions import FUNCTIONS, Family
from clew.lang.lexer import KEYWORDS
from clew.lang.literals import text_of_value
from clew.lang.typed import OVER, Apply, ColumnValue, Constant, Convert, Expression

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def text_of(expression: Expression) -> str:
    """The expression, fully parenthesised where operators meet, without implicit conversions."""
    match expression:
        case Constant(value, _, parameter):
            return parameter or text_of_value(value)
        case ColumnValue(table, column) if table == OVER:
            return column
        case ColumnValue(table, column):
            return f"{name_text(table)}.{name_text(column)}"
        case Convert(operand):
            return text_of(operand)
        case Apply("NEGATE", (operand,)):
            return f"-{_operand(operand)}"
        case Apply(function, (left, right)) if FUNCTIONS[function].family is Family.OPERATOR:
            return f"{_operand(left)} {function} {_operand(right)}"
        case Apply("AND" | "OR" as function, arguments) if len(arguments) > 1:
            return f" {function} ".join(_operand(argument) for argument in arguments)
        case Apply("IN", (value, *candidates)):
            return f"{_operand(value)} IN ({', '.join(text_of(candidate) for candidate in candidates)})"
        case Apply("ISNULL", (value,)):
            return f"{_operand(value)} IS NULL"
        case Apply("CASE", (*branches, otherwise)):
            whens = (f"WHEN {text_of(a)} THEN {text_of(b)}" for a, b in zip(branches[::2], branches[1::2], strict=True))
            return f"CASE {' '.join(whens)} ELSE {text_of(otherwise)} END"
        case Apply(function, arguments):
            return f"{function}({', '.join(text_of(argument) for argument in arguments)})"


def _operand(expression: Expression) -> str:
    inner = expression
    while isinstance(inner, Convert):
        inner = inner.operand
    text = text_of(inner)
    infix = isinstance(inner, Apply) and (
        FUNCTIONS[inner.function].family is Family.OPERATOR or inner.function in {"AND", "OR", "IN", "ISNULL", "NOT"}
    )
    negative = isinstance(inner, Constant) and text.startswith("-")
    return f"({text})" if infix or negative else text


def name_text(name: str) -> str:
    """A name as expressions write it."""
    if _PLAIN_NAME.fullmatch(name) and name.upper() not in KEYWORDS:
        return name
    return "`" + name.replace("`", "``") + "`"
