"""Operators and logical functions in Spark SQL."""

from collections.abc import Callable
from math import inf

from clew.engine.sql.call import Entries, SqlCall, SqlOf, calling, repeating
from clew.engine.sql.literals import cast, literal, zero
from clew.lang.types import (
    DOUBLE,
    MAX_PRECISION,
    STRING,
    Kind,
    Type,
    product_of_decimals,
    quotient_of_decimals,
    sum_of_decimals,
)

_QUOTIENT_ALWAYS_FITS = MAX_PRECISION - 6
"""So many integer digits a quotient can have without ever being too large for its type."""

_DIGITS_OF_NEGATION = 34

_INFINITY = literal(inf, DOUBLE)
_TOO_LARGE = "raise_error('a result does not fit double (64 bits)')"


def of_type(sql: str, natural: Type, wanted: Type) -> str:
    """A decimal for which Spark infers one type, as the type that it should have."""
    return sql if natural == wanted else cast(sql, wanted)


def finite(result: str, *sizes: str) -> str:
    """A double, and an error where it is infinite although the doubles of these sizes, which it is made of, are not."""
    infinite_for_no_reason = " AND ".join(
        [f"abs({result}) = {_INFINITY}", *(f"{each} < {_INFINITY}" for each in sizes)]
    )
    return f"IF({infinite_for_no_reason}, {_TOO_LARGE}, {result})"


def _arithmetic(operator: str, on_decimals: Callable[[Type, Type], Type]) -> SqlOf:
    def sql_of(call: SqlCall) -> str:
        a, b = call.arguments
        if call.type.kind is Kind.DOUBLE:
            return repeating(lambda a, b: finite(f"({a} {operator} {b})", f"abs({a})", f"abs({b})"), a, b)
        sql = f"({a} {operator} {b})"
        return of_type(sql, on_decimals(*call.types), call.type) if call.type.kind is Kind.DECIMAL else sql

    return sql_of


def _quotient(call: SqlCall) -> str:
    """NULL for a zero divisor. `try_divide` would hide a quotient that is too large; it is used where none can be."""
    a, b = call.arguments
    if call.type.kind is not Kind.DECIMAL:
        return repeating(lambda a, b: finite(f"try_divide({a}, {b})", f"abs({a})", f"abs({b})"), a, b)
    left, right = call.types
    if left.precision - left.scale + right.scale <= _QUOTIENT_ALWAYS_FITS:
        sql = f"try_divide({a}, {b})"
    else:
        divisor = repeating(lambda b: f"IF({b} = {zero(right)}, NULL, {b})", b)
        sql = f"({a} / {divisor})"
    return of_type(sql, quotient_of_decimals(left, right), call.type)


def is_wide(type_: Type) -> bool:
    """Whether Spark rounds numbers of this type when it changes their sign, because it does so with 34 digits."""
    return type_.kind is Kind.DECIMAL and type_.precision > _DIGITS_OF_NEGATION


def _negation(call: SqlCall) -> str:
    number = call.arguments[0]
    if not is_wide(call.type):
        return f"(-{number})"
    return cast(f"replace(concat('-', {cast(number, STRING)}), '--', '')", call.type)


def compared(a: str, operator: str, b: str, left: Type, right: Type) -> str:
    """A comparison of two values of the same kind."""
    if has_common_decimal(left, right):
        return f"({a} {operator} {b})"
    return repeating(lambda a, b: _compared_in_parts(a, operator, b), a, b)


def has_common_decimal(*types: Type) -> bool:
    """Whether a decimal type holds the values of all, so that Spark need not round before it compares."""
    integer_digits = max(type_.precision - type_.scale for type_ in types)
    return integer_digits + max(type_.scale for type_ in types) <= MAX_PRECISION


def _compared_in_parts(a: str, operator: str, b: str) -> str:
    return f"IF({a} IS NULL OR {b} IS NULL, NULL, {_parts(a)} {operator} {_parts(b)})"


def _parts(number: str) -> str:
    """The parts before and after the decimal point, which compare like the number itself."""
    before, behind = f"CAST(floor({number}) AS DECIMAL(38,0))", f"CAST(pmod({number}, 1BD) AS DECIMAL(38,38))"
    return f"named_struct('before', {before}, 'behind', {behind})"


def _comparison(operator: str) -> SqlOf:
    return lambda call: compared(call.arguments[0], operator, call.arguments[1], *call.types)


OPERATORS: Entries = {
    "+": _arithmetic("+", sum_of_decimals),
    "-": _arithmetic("-", sum_of_decimals),
    "*": _arithmetic("*", product_of_decimals),
    "/": _quotient,
    "NEGATE": _negation,
    **{operator: _comparison(operator) for operator in ("=", "<>", "<", "<=", ">", ">=")},
}


def _joined(operator: str) -> SqlOf:
    return lambda call: "(" + f" {operator} ".join(call.arguments) + ")"


def _in(call: SqlCall) -> str:
    if not has_common_decimal(*call.types):
        return repeating(lambda *arguments: _equal_to_one(call, *arguments), *call.arguments)
    value, *candidates = call.arguments
    if call.types[0].kind is Kind.DOUBLE:
        value, *candidates = (_without_negative_zero(argument) for argument in call.arguments)
    return f"({value} IN ({', '.join(candidates)}))"


def _equal_to_one(call: SqlCall, value: str, *candidates: str) -> str:
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
