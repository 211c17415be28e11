"""What a function of the language is: one record that parser, checker, evaluators and reference page read."""

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import Any, Protocol

from clew.deferred import dataclass
from clew.lang.typed import Value
from clew.lang.types import Type


class NullRule(StrEnum):
    """What a function does with NULL."""

    PROPAGATES = "NULL if any argument is NULL"
    HANDLES = "depends on the function"
    SKIPS = "rows in which the argument is NULL are left out"


class Family(StrEnum):
    """The heading under which the reference page lists a function."""

    OPERATOR = "Operators"
    LOGIC = "Logic"
    NUMBER = "Numbers"
    TEXT = "Text"
    DATE = "Dates"
    CONVERSION = "Conversions"
    AGGREGATE = "Aggregates"
    WINDOW = "Windows"


@dataclass(frozen=True, slots=True)
class Argument:
    """What the checker knows of an argument: its type, and its value where that is a constant."""

    type: Type
    constant: Value = None
    is_constant: bool = False


@dataclass(frozen=True, slots=True)
class Signature:
    """The types that a call takes its arguments as, and the type of its result."""

    parameters: tuple[Type, ...]
    result: Type


class SignatureProblem(Exception):
    """Why the arguments do not fit. `argument` is the index of the culprit, None if it is the whole call."""

    def __init__(self, problem: str, argument: int | None = None, hint: str | None = None) -> None:
        super().__init__(problem)
        self.problem, self.argument, self.hint = problem, argument, hint


@dataclass(frozen=True, slots=True)
class Example:
    """An expression without columns, and the text of its result. Aggregates have `rows` for their argument."""

    expression: str
    result: str
    rows: tuple[Mapping[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter as the reference page shows it."""

    name: str
    takes: str
    """The types it takes, in words."""
    repeats: bool = False
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A scalar function or operator, whose value depends on its arguments alone."""

    name: str
    family: Family
    parameters: tuple[Parameter, ...]
    returns: str
    """The type of the result, in words."""
    nulls: NullRule
    sentence: str
    examples: tuple[Example, ...]
    infer: Callable[[Sequence[Argument]], Signature]
    bind: Callable[[Signature], Callable[..., Value]]
    """Gives the function on values for one signature. With NullRule.PROPAGATES it never sees None."""


@dataclass(frozen=True, slots=True)
class LazyFunction:
    """A function that looks at an argument only when it needs it, so that the rest may be out of range."""

    name: str
    family: Family
    parameters: tuple[Parameter, ...]
    returns: str
    nulls: NullRule
    sentence: str
    examples: tuple[Example, ...]
    infer: Callable[[Sequence[Argument]], Signature]
    choose: Callable[[Sequence[Callable[[Any], Value]], object], Value]
    """Its value, given functions from a row to the argument's value, and the row."""


@dataclass(frozen=True, slots=True)
class RunFunction:
    """A function whose value is fixed for a whole run."""

    name: str
    family: Family
    parameters: tuple[Parameter, ...]
    returns: str
    nulls: NullRule
    sentence: str
    examples: tuple[Example, ...]
    infer: Callable[[Sequence[Argument]], Signature]
    value: Callable[[date], Value]
    """Its value, given the date of the run's start."""


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """A function of all rows of a group."""

    name: str
    family: Family
    parameters: tuple[Parameter, ...]
    returns: str
    nulls: NullRule
    sentence: str
    examples: tuple[Example, ...]
    infer: Callable[[Sequence[Argument]], Signature]
    combine: Callable[[Sequence[Any], Signature], Value]
    """Its value over the argument's values that are not NULL (over one None per row where it takes no argument).

    A function of several arguments gets a tuple of their values for each row whose first one is not NULL.
    """


@dataclass(frozen=True, slots=True)
class Shorthand:
    """A call that stands for an expression of other functions, in whose place the checker puts it."""

    name: str
    family: Family
    parameters: tuple[Parameter, ...]
    returns: str
    nulls: NullRule
    sentence: str
    examples: tuple[Example, ...]
    stands_for: str
    """The expression, in which $1, $2, ... are the arguments."""
    defaults: tuple[str, ...] = ()
    """What stands for the last arguments where they are left out."""


AnyFunction = Function | LazyFunction | RunFunction | AggregateFunction


class Declared(Protocol):
    """Anything that can be called in an expression."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """What it takes."""
        ...


def arity(function: Declared) -> tuple[int, int | None]:
    """The fewest and the most arguments; None if there is no limit."""
    least = sum(not parameter.optional for parameter in function.parameters)
    unbounded = any(parameter.repeats for parameter in function.parameters)
    return least, None if unbounded else len(function.parameters)


def usage(function: Declared) -> str:
    """How a function is called, with parameters that may be left out in brackets."""

    def shown(parameter: Parameter) -> str:
        name = f"{parameter.name}, ..." if parameter.repeats else parameter.name
        return f"[{name}]" if parameter.optional else name

    return f"{function.name}({', '.join(map(shown, function.parameters))})"
