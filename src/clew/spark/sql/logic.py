"""Functions that decide, in Spark SQL.

Spark evaluates IF, AND, OR, COALESCE and IN from left to right and no further than needed, as the language does.
"""

from clew.lang.types import Kind
from clew.spark.sql.call import Call, Entries, SqlOf, calling, repeating
from clew.spark.sql.operators import compared, has_common_decimal


def _joined(operator: str) -> SqlOf:
    return lambda call: "(" + f" {operator} ".join(call.arguments) + ")"


def _in(call: Call) -> str:
    if not has_common_decimal(*call.types):
        return repeating(lambda *arguments: _equal_to_one(call, *arguments), *call.arguments)
    value, *candidates = call.arguments
    if call.types[0].kind is Kind.DOUBLE:
        value, *candidates = (_without_negative_zero(argument) for argument in call.arguments)
    return f"({value} IN ({', '.join(candidates)}))"


def _equal_to_one(call: Call, value: str, *candidates: str) -> str:
    type_, *types = call.types
    pairs = zip(candidates, types, strict=True)
    return "(" + " OR ".join(compared(value, "=", candidate, type_, other) for candidate, other in pairs) + ")"


def _without_negative_zero(double: str) -> str:
    """A list of constants becomes a hash set, to which the two zeros are different."""
    return f"({double} + 0D)"


LOGIC: Entries = {
    "IF": calling("IF"),
    "AND": _joined("AND"),
    "OR": _joined("OR"),
    "NOT": lambda call: f"(NOT {call.arguments[0]})",
    "ISNULL": lambda call: f"({call.arguments[0]} IS NULL)",
    "COALESCE": calling("coalesce"),
    "IN": _in,
}
