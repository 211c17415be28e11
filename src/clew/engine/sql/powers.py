"""Powers, exponentials and logarithms in Spark SQL: the steps of `clew.lang.elementary`, one by one.

Spark's own functions have other last digits. Arrays and lambdas are its only loops.
"""

from collections.abc import Iterable
from math import inf

from clew.engine.sql.call import Entries, SqlCall, binding
from clew.engine.sql.literals import literal
from clew.lang import elementary
from clew.lang.types import DOUBLE

_INFINITY = literal(inf, DOUBLE)
_TOO_LARGE = "raise_error('the result does not fit double (64 bits)')"
_TOO_OFTEN = f"raise_error('an exponent is larger than {elementary.MOST_MULTIPLIED}')"
_TINY, _RAISED = 2.0**-1022, 54
"""Doubles below the first have fewer digits; they are multiplied by two to the power of the second."""


def _double(value: float) -> str:
    return literal(value, DOUBLE)


def _series(terms: Iterable[float], x: str) -> str:
    value = "0D"
    for term in terms:
        value = f"({value} * {x} + {_double(term)})"
    return value


def _exponential(x: str) -> str:
    """e to the power of x; infinity where it does not fit."""
    high, low = _double(elementary.LN2_HIGH), _double(elementary.LN2_LOW)

    def scaled(value: str, k: str, half: str) -> str:
        return f"({value} * {_power_of_2(half)} * {_power_of_2(f'({k} - {half})')})"

    def summed(rest: str, k: str) -> str:
        return binding(scaled, _series(elementary.TERMS, rest), k, f"CAST(floor({k} / 2D) AS DOUBLE)")

    def reduced(x: str, k: str) -> str:
        return binding(summed, f"(({x} - {k} * {high}) - {k} * {low})", k)

    def body(x: str) -> str:
        k = f"CAST(floor({x} * {_double(elementary.PER_LN2)} + 0.5D) AS DOUBLE)"
        largest, smallest = _double(elementary.LARGEST_EXPONENT), _double(elementary.SMALLEST_EXPONENT)
        ends = f"WHEN isnan({x}) THEN {x} WHEN {x} > {largest} THEN {_INFINITY} WHEN {x} < {smallest} THEN 0D"
        return f"CASE WHEN {x} IS NULL THEN NULL {ends} ELSE {binding(reduced, x, k)} END"

    return binding(body, x)


def _power_of_2(k: str) -> str:
    """Exact: Java's power of two whole numbers is the whole number."""
    return f"IF({k} < 0D, 1D / pow(2D, -{k}), pow(2D, {k}))"


def _logarithm(x: str) -> str:
    """NULL where there is none."""
    steps = ", ".join(
        f"named_struct('p', {_double(float(p))}, 'up', {_double(2.0**p)}, 'down', {_double(2.0 ** (1 - p))})"
        for p in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1)
    )
    smaller = "named_struct('m', a.m / s.up, 'k', a.k + s.p)"
    larger = "named_struct('m', a.m * s.up, 'k', a.k - s.p)"
    step = f"CASE WHEN a.m >= s.up THEN {smaller} WHEN a.m < s.down THEN {larger} ELSE a END"
    half = f"a.m > {_double(elementary.ROOT_OF_2)}"
    settled = f"IF({half}, named_struct('m', a.m / 2D, 'k', a.k + 1D), a)"
    high, low = _double(elementary.LN2_HIGH), _double(elementary.LN2_LOW)

    def summed(s: str, square: str, k: str) -> str:
        return f"({k} * {high} + (2D * {s} * {_series(elementary.ODD_TERMS, square)} + {k} * {low}))"

    def squared(s: str, k: str) -> str:
        return binding(summed, s, f"({s} * {s})", k)

    def divided(found: str) -> str:
        return binding(squared, f"(({found}.m - 1D) / ({found}.m + 1D))", f"{found}.k")

    def body(x: str) -> str:
        raised = f"named_struct('m', {x} * {_double(2.0**_RAISED)}, 'k', {_double(float(-_RAISED))})"
        start = f"IF({x} < {_double(_TINY)}, {raised}, named_struct('m', {x}, 'k', 0D))"
        found = f"aggregate(array({steps}), {start}, (a, s) -> {step}, a -> {settled})"
        ends = f"WHEN {x} IS NULL OR {x} <= 0D THEN NULL WHEN isnan({x}) OR {x} = {_INFINITY} THEN {x}"
        return f"CASE {ends} ELSE {binding(divided, found)} END"

    return binding(body, x)


def _fitting(found: str, x: str) -> str:
    """An error where a result is infinite, and the argument is not."""
    return f"IF(abs({found}) = {_INFINITY} AND abs({x}) < {_INFINITY}, {_TOO_LARGE}, {found})"


def _exp(call: SqlCall) -> str:
    return binding(_fitting, _exponential(call.arguments[0]), call.arguments[0])


def _root(call: SqlCall) -> str:
    return binding(lambda x: f"IF({x} < 0D, NULL, sqrt({x}))", call.arguments[0])


def _power(call: SqlCall) -> str:
    return binding(_power_of_any, *call.arguments)


def _power_of_any(x: str, y: str) -> str:
    def parts(x: str, y: str, whole: str) -> str:
        return binding(_power_of_parts, x, y, whole, f"({y} - {whole})")

    whole = f"IF({y} < 0D, CAST(ceil({y}) AS DOUBLE), CAST(floor({y}) AS DOUBLE))"
    calculated = binding(parts, x, y, whole)
    ends = f"WHEN {x} IS NULL OR {y} IS NULL THEN NULL WHEN isnan({y}) THEN {y}"
    too_often = f"WHEN abs({y}) > {_double(float(elementary.MOST_MULTIPLIED))} THEN {_TOO_OFTEN}"
    return f"CASE {ends} {too_often} WHEN isnan({x}) THEN {x} ELSE {calculated} END"


def _power_of_parts(x: str, y: str, whole: str, rest: str) -> str:
    """Whole powers by multiplying, the rest by a root or a logarithm."""
    start = f"named_struct('v', 1D, 'f', {x}, 'n', CAST(abs({whole}) AS BIGINT))"
    step = "named_struct('v', IF(a.n % 2L = 1L, a.v * a.f, a.v), 'f', a.f * a.f, 'n', shiftright(a.n, 1))"
    multiplied = f"aggregate(sequence(1, 31), {start}, (a, i) -> {step}, a -> a.v)"
    value = f"IF({whole} < 0D, IF({multiplied} = 0D, {_INFINITY}, 1D / {multiplied}), {multiplied})"

    def finished(value: str, x: str, rest: str) -> str:
        logged = f"IF({x} = 0D, -{_INFINITY}, {_logarithm(x)})"
        other = f"({value} * {_exponential(f'({rest} * {logged})')})"
        rooted = f"IF({rest} > 0D, {value} * sqrt({x}), {value} / sqrt({x}))"
        return f"CASE WHEN {rest} = 0D THEN {value} WHEN abs({rest}) = 0.5D THEN {rooted} ELSE {other} END"

    none = f"({x} = 0D AND {y} < 0D) OR ({x} < 0D AND {rest} <> 0D)"
    return f"IF({none}, NULL, {binding(_fitting, binding(finished, value, x, rest), x)})"


POWERS: Entries = {
    "POWER": _power,
    "SQRT": _root,
    "EXP": _exp,
    "LN": lambda call: _logarithm(call.arguments[0]),
}
