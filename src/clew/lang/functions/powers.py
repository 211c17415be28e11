"""Powers, exponentials and logarithms. Their results are doubles, the same to the last bit in every engine."""

import math
from collections.abc import Callable

from clew.lang import elementary
from clew.lang.arithmetic import out_of_range
from clew.lang.functions.declaration import Example, Family, Function, NullRule, Parameter
from clew.lang.functions.inference import fixed
from clew.lang.typed import Value
from clew.lang.types import DOUBLE

_NUMBER = Parameter("number", "a number")


def _fitting(value: float | None, *arguments: float) -> float | None:
    """An error where a result is infinite, and no argument is."""
    if value is not None and math.isinf(value) and all(map(math.isfinite, arguments)):
        raise out_of_range("the result does not fit double (64 bits)")
    return value


def _exp(x: float) -> float | None:
    return _fitting(elementary.exponential(x), x)


def _power(x: float, y: float) -> float | None:
    if abs(y) > elementary.MOST_MULTIPLIED:
        raise out_of_range(f"the exponent {y} is larger than {elementary.MOST_MULTIPLIED:,}")
    return _fitting(elementary.power(x, y), x, y)


def _function(
    name: str, parameters: tuple[Parameter, ...], sentence: str, apply: Callable[..., Value], *examples: tuple[str, str]
) -> Function:
    return Function(
        name,
        Family.NUMBER,
        parameters,
        "double",
        NullRule.PROPAGATES,
        sentence,
        tuple(Example(expression, result) for expression, result in examples),
        fixed(*(DOUBLE for _ in parameters), returns=DOUBLE),
        lambda _signature: apply,
    )


POWERS = (
    _function(
        "POWER",
        (Parameter("base", "a number"), Parameter("exponent", "a number up to 2,147,483,647")),
        "The base to the power of the exponent; NULL where there is none, as for 0 to the power of -1.",
        _power,
        ("POWER(1.05, 2)", "1.1025"),
        ("POWER(2, -1)", "0.5"),
        ("POWER(0, -1)", "NULL"),
    ),
    _function(
        "SQRT",
        (_NUMBER,),
        "The square root; NULL for a negative number.",
        elementary.root,
        ("SQRT(2.25)", "1.5"),
        ("SQRT(-1)", "NULL"),
    ),
    _function("EXP", (_NUMBER,), "Euler's number to the power of the number.", _exp, ("EXP(0)", "1.0")),
    _function(
        "LN",
        (_NUMBER,),
        "The natural logarithm; NULL for zero and negative numbers.",
        elementary.logarithm,
        ("LN(1)", "0.0"),
        ("LN(0)", "NULL"),
    ),
)
