"""Functions on numbers in Spark SQL."""

from clew.engine.sql.call import Entries, SqlCall, SqlOf, literal_of, repeating, whole_constant
from clew.engine.sql.literals import cast, literal, zero
from clew.engine.sql.operators import is_wide
from clew.lang.arithmetic import HALF_UP
from clew.lang.typed import Constant
from clew.lang.types import INTEGER_AS_DECIMAL, STRING, Kind, Type, decimal

_ALL_WHOLE = "4503599627370496D"
"""Doubles from here on have no digits after the decimal point."""


def _round(call: SqlCall) -> str:
    digits = whole_constant(call.apply.arguments[1]) if len(call.arguments) > 1 else 0
    if call.type.kind is Kind.INTEGER and (digits or 0) >= 0:
        return call.arguments[0]
    mode = literal_of(call.apply.arguments[2]) if len(call.arguments) > 2 else HALF_UP
    if mode is None:
        return literal(None, call.type)
    if mode == HALF_UP or call.type.kind is Kind.DOUBLE:
        return f"round({call.arguments[0]}, {digits})"
    return cast(_rounded(call, str(mode), digits or 0), call.type)


def _rounded(call: SqlCall, mode: str, digits: int) -> str:
    """By another mode. Spark's functions for them take decimals only."""
    number, type_ = call.arguments[0], call.types[0]
    if type_.kind is Kind.INTEGER:
        number, type_ = cast(number, INTEGER_AS_DECIMAL), INTEGER_AS_DECIMAL
    if mode == "half_even":
        return f"bround({number}, {digits})"
    functions = {"floor": ("floor", "floor"), "ceiling": ("ceil", "ceil"), "up": ("floor", "ceil")}
    negative, positive = functions.get(mode, ("ceil", "floor"))
    if negative == positive:
        return f"{negative}({number}, {digits})"
    body = f"IF({{0}} < {zero(type_)}, {negative}({{0}}, {digits}), {positive}({{0}}, {digits}))"
    return repeating(body.format, number)


def _sign(call: SqlCall) -> str:
    """Spark's own is a double, and NaN for NaN."""
    nothing = zero(call.types[0])
    return repeating(
        lambda x: f"CASE WHEN {x} = {nothing} THEN 0L WHEN {x} < {nothing} THEN -1L WHEN {x} > {nothing} THEN 1L END",
        call.arguments[0],
    )


def _whole(function: str) -> SqlOf:
    def sql_of(call: SqlCall) -> str:
        number = call.arguments[0]
        match call.type.kind:
            case Kind.INTEGER:
                return number
            case Kind.DECIMAL:
                return cast(f"{function}({number})", call.type)
            case _:
                return repeating(lambda x: _whole_double(function, x), number)

    return sql_of


def _whole_double(function: str, x: str) -> str:
    """Spark gives a 64-bit integer, and for large doubles a wrong one."""
    return f"IF(abs({x}) < {_ALL_WHOLE}, CAST({function}({x}) AS DOUBLE), {x})"


def _mod(call: SqlCall) -> str:
    divisor = whole_constant(call.apply.arguments[1])
    if call.type.kind is Kind.INTEGER and divisor is not None and divisor > 0:
        return f"pmod({call.arguments[0]}, {call.arguments[1]})"
    return repeating(lambda a, b: _floor_remainder(call, a, b), *call.arguments)


def _floor_remainder(call: SqlCall, a: str, b: str) -> str:
    """Spark's remainder has the sign of a; adding b once gives the one that has the sign of b."""
    (left, right), remainder = call.types, f"({a} % {b})"
    nothing = zero(_type_of_remainder(left, right))
    above, kept = f"{remainder} + {b}", remainder
    if call.type.kind is Kind.DECIMAL:
        above, kept = cast(above, call.type), cast(kept, call.type)
    differs = f"{remainder} <> {nothing} AND ({a} < {zero(left)}) <> ({b} < {zero(right)})"
    return f"CASE WHEN {b} = {zero(right)} THEN NULL WHEN {differs} THEN {above} ELSE {kept} END"


def _type_of_remainder(left: Type, right: Type) -> Type:
    """The type that Spark gives it."""
    if left.kind is not Kind.DECIMAL:
        return left
    scale = max(left.scale, right.scale)
    return decimal(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)


def _abs(call: SqlCall) -> str:
    number = call.arguments[0]
    return cast(f"replace({cast(number, STRING)}, '-', '')", call.type) if is_wide(call.type) else f"abs({number})"


def _extreme(function: str) -> SqlOf:
    """Spark's functions skip NULL, so they are asked only where there is none."""

    def sql_of(call: SqlCall) -> str:
        if len(call.arguments) == 1:
            return call.arguments[0]
        can_be_null = [not isinstance(argument, Constant) for argument in call.apply.arguments]

        def body(*arguments: str) -> str:
            tests = [f"{sql} IS NULL" for sql, nullable in zip(arguments, can_be_null, strict=True) if nullable]
            extreme = f"{function}({', '.join(arguments)})"
            return f"IF({' OR '.join(tests)}, NULL, {extreme})" if tests else extreme

        return repeating(body, *call.arguments)

    return sql_of


NUMBERS: Entries = {
    "ABS": _abs,
    "ROUND": _round,
    "SIGN": _sign,
    "FLOOR": _whole("floor"),
    "CEIL": _whole("ceil"),
    "MOD": _mod,
    "MIN": _extreme("least"),
    "MAX": _extreme("greatest"),
}
