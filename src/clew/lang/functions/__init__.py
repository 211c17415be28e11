"""All functions of the language, by name."""

from collections.abc import Mapping

from clew.lang.functions.aggregates import AGGREGATES
from clew.lang.functions.conversions import CONVERSIONS
from clew.lang.functions.dates import DATES
from clew.lang.functions.declaration import (
    AggregateFunction,
    AnyFunction,
    Argument,
    Example,
    Family,
    Function,
    LazyFunction,
    NullRule,
    Parameter,
    RunFunction,
    Signature,
    SignatureProblem,
    arity,
    usage,
)
from clew.lang.functions.logic import LOGIC
from clew.lang.functions.numbers import NUMBERS
from clew.lang.functions.operators import OPERATORS
from clew.lang.functions.text import TEXT

_ALL: tuple[AnyFunction, ...] = (*OPERATORS, *LOGIC, *NUMBERS, *TEXT, *DATES, *CONVERSIONS, *AGGREGATES)

FUNCTIONS: Mapping[str, AnyFunction] = {function.name: function for function in _ALL}

__all__ = [
    "FUNCTIONS",
    "AggregateFunction",
    "AnyFunction",
    "Argument",
    "Example",
    "Family",
    "Function",
    "LazyFunction",
    "NullRule",
    "Parameter",
    "RunFunction",
    "Signature",
    "SignatureProblem",
    "arity",
    "usage",
]
