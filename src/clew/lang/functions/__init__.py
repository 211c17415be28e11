"""All functions of the language, by name."""

from collections.abc import Mapping

from clew.lang.functions.aggregates import AGGREGATES
from clew.lang.functions.choices import CHOICES
from clew.lang.functions.conversions import CONVERSIONS
from clew.lang.functions.date_units import DATE_UNITS
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
    Shorthand,
    Signature,
    SignatureProblem,
    arity,
    usage,
)
from clew.lang.functions.logic import LOGIC
from clew.lang.functions.numbers import NUMBERS
from clew.lang.functions.operators import OPERATORS
from clew.lang.functions.ordered_aggregates import ORDERED_AGGREGATES
from clew.lang.functions.patterns import PATTERNS
from clew.lang.functions.powers import POWERS
from clew.lang.functions.run_period import HOLIDAYS, PERIOD_FUNCTIONS, PeriodFunction
from clew.lang.functions.shorthands import SHORTHANDS
from clew.lang.functions.text import TEXT
from clew.lang.functions.text_parts import TEXT_PARTS

_ALL: tuple[AnyFunction, ...] = (
    *OPERATORS,
    *LOGIC,
    *CHOICES,
    *NUMBERS,
    *POWERS,
    *TEXT,
    *TEXT_PARTS,
    *PATTERNS,
    *DATES,
    *DATE_UNITS,
    *CONVERSIONS,
    *AGGREGATES,
    *ORDERED_AGGREGATES,
)

FUNCTIONS: Mapping[str, AnyFunction] = {function.name: function for function in _ALL}
"""Those that are evaluated; SHORTHANDS stand for expressions of them."""


def is_aggregate(name: str) -> bool:
    """Whether a name is that of a function over the rows of a group."""
    found = FUNCTIONS.get(name) or SHORTHANDS.get(name)
    return found is not None and found.family is Family.AGGREGATE


__all__ = [
    "FUNCTIONS",
    "HOLIDAYS",
    "PERIOD_FUNCTIONS",
    "SHORTHANDS",
    "AggregateFunction",
    "AnyFunction",
    "Argument",
    "Example",
    "Family",
    "Function",
    "LazyFunction",
    "NullRule",
    "Parameter",
    "PeriodFunction",
    "RunFunction",
    "Shorthand",
    "Signature",
    "SignatureProblem",
    "arity",
    "is_aggregate",
    "usage",
]
