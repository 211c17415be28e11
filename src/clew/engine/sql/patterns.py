"""Functions that compare text with patterns in Spark SQL, by Java's regular expressions."""

from clew.engine.sql.call import Entries, SqlCall, literal_of, repeating
from clew.engine.sql.literals import literal, text_literal
from clew.lang.functions.patterns import TOO_LONG_TO_SEARCH, default_group, parts_of_replacement
from clew.lang.like_patterns import ESCAPE, java_pattern
from clew.lang.regular_expressions import MOST_MATCHED, regular_expression
from clew.lang.typed import Value

_TOO_LONG = f"raise_error('{TOO_LONG_TO_SEARCH}')"


def _constants(call: SqlCall) -> list[Value] | None:
    """The patterns of a call; None where one of them is NULL."""
    found = [literal_of(argument) for argument in call.apply.arguments[1:]]
    return None if None in found else found


def _like(call: SqlCall) -> str:
    patterns = _constants(call)
    if patterns is None:
        return literal(None, call.type)
    pattern, escape = (*map(str, patterns), ESCAPE)[:2]
    return f"({call.arguments[0]} RLIKE {text_literal(java_pattern(pattern, escape))})"


def _searched(text: str) -> str:
    """A text that is short enough to be searched."""
    return repeating(lambda text: f"IF(char_length({text}) > {MOST_MATCHED}, {_TOO_LONG}, {text})", text)


def _match(call: SqlCall) -> str:
    patterns = _constants(call)
    if patterns is None:
        return literal(None, call.type)
    regex = text_literal(regular_expression(str(patterns[0])).in_java)
    return f"({_searched(call.arguments[0])} RLIKE {regex})"


def _extract(call: SqlCall) -> str:
    patterns = _constants(call)
    if patterns is None:
        return literal(None, call.type)
    pattern = str(patterns[0])
    group = patterns[1] if len(patterns) > 1 else default_group(pattern)
    regex = text_literal(regular_expression(pattern).in_java)
    return repeating(
        lambda text: f"IF({text} RLIKE {regex}, regexp_extract({text}, {regex}, {group}), NULL)",
        _searched(call.arguments[0]),
    )


def _replace(call: SqlCall) -> str:
    patterns = _constants(call)
    if patterns is None:
        return literal(None, call.type)
    expression = regular_expression(str(patterns[0]))
    parts = parts_of_replacement(str(patterns[1]), expression.groups)
    replacement = text_literal("".join(map(_written, parts)))
    return f"regexp_replace({_searched(call.arguments[0])}, {text_literal(expression.in_java)}, {replacement})"


def _written(part: str | int) -> str:
    """A part of a replacement as Java reads it. A digit is escaped, since it could belong to the group before it."""
    if isinstance(part, int):
        return f"${part}"
    return "".join("\\" + each if each in "\\$" or (each.isascii() and each.isdigit()) else each for each in part)


PATTERNS: Entries = {
    "LIKE": _like,
    "REGEX_MATCH": _match,
    "REGEX_EXTRACT": _extract,
    "REGEX_REPLACE": _replace,
}
