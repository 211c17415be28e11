"""What the table entries of functions are given, and how they write an argument more than once."""

from collections.abc import Callable, Mapping
from datetime import date

from clew.deferred import dataclass
from clew.lang.typed import Apply, Constant, Convert, Expression, Value
from clew.lang.types import Type

_LONGEST_WRITTEN_TWICE = 300
"""Characters of an argument that may stand at several places of its function. Without a limit, functions of this kind
within each other would double the text at every level."""


@dataclass(frozen=True, slots=True)
class SqlCall:
    """A call of a function of the language, whose arguments are Spark SQL already."""

    apply: Apply
    arguments: tuple[str, ...]
    today: date

    @property
    def type(self) -> Type:
        """The type that the result must have."""
        return self.apply.type

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the arguments."""
        return tuple(argument.type for argument in self.apply.arguments)


SqlOf = Callable[[SqlCall], str]
"""How a function is written in Spark SQL."""

Entries = Mapping[str, SqlOf]


def whole_constant(expression: Expression) -> int | None:
    """The value of a literal whole number, else None."""
    match expression:
        case Constant(int(value)):
            return value
        case Apply("NEGATE", (Constant(int(value)),)):
            return -value
        case _:
            return None


def literal_of(expression: Expression) -> Value:
    """The value of a literal, also where it is converted; None where it is NULL or no literal."""
    match expression:
        case Constant(value):
            return value
        case Convert(Constant(value)):
            return value
        case _:
            return whole_constant(expression)


def is_short(*arguments: str) -> bool:
    """Whether texts may stand at several places."""
    return all(len(argument) <= _LONGEST_WRITTEN_TWICE for argument in arguments)


def calling(function: str) -> SqlOf:
    """A function of Spark that does the same."""
    return lambda call: f"{function}({', '.join(call.arguments)})"


def repeating(body: Callable[..., str], *arguments: str) -> str:
    """A text in which arguments occur more than once.

    Long ones are calculated first, by a lambda over an array of one struct: it is the only binding that Spark SQL has
    inside an expression. The body sees nothing but its arguments, so that aggregates stay outside of the lambda.
    """
    return body(*arguments) if is_short(*arguments) else binding(body, *arguments)


def binding(body: Callable[..., str], *arguments: str) -> str:
    """A text in which arguments are calculated once, however often they occur."""
    fields = ", ".join(f"{argument} AS a{index}" for index, argument in enumerate(arguments))
    names = [f"v.a{index}" for index in range(len(arguments))]
    return f"transform(array(struct({fields})), v -> {body(*names)})[0]"
