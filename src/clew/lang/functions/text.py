"""Functions on strings. Positions and lengths count characters (code points), not bytes."""

from collections.abc import Callable
from functools import wraps

from clew import budgets
from clew.lang.arithmetic import out_of_range
from clew.lang.functions.declaration import Example, Family, Function, NullRule, Parameter
from clew.lang.functions.inference import Infer, fixed, repeated
from clew.lang.typed import Value
from clew.lang.types import BOOLEAN, INTEGER, STRING, Type

MOST_CHARACTERS = 1_000_000
"""The longest text that CONCAT and REPLACE give, in both evaluators: within each other they would otherwise make a
gigabyte out of a short expression."""
TEXT_TOO_LONG = f"a text of more than {MOST_CHARACTERS:,} characters"

_LARGE = 10_000
"""Texts of at least so many characters count against the memory of a question."""
_BYTES_PER_CHARACTER = 4

_TEXT = Parameter("text", "string")
_COUNT = Parameter("count", "integer")
_PART = Parameter("part", "string")


def text_function(
    name: str,
    parameters: tuple[Parameter, ...],
    returns: Type,
    sentence: str,
    apply: Callable[..., Value],
    *examples: tuple[str, str],
    infer: Infer | None = None,
) -> Function:
    """A function of texts and whole numbers that is NULL where an argument is."""
    types = tuple(STRING if parameter.takes.startswith("string") else INTEGER for parameter in parameters)
    made = counted(apply) if returns == STRING else apply
    return Function(
        name,
        Family.TEXT,
        parameters,
        str(returns),
        NullRule.PROPAGATES,
        sentence,
        tuple(Example(expression, result) for expression, result in examples),
        infer or fixed(*types, returns=returns),
        lambda _signature: made,
    )


def counted(apply: Callable[..., Value]) -> Callable[..., Value]:
    """A function that makes texts, whose long results count against the budget of the question at hand."""

    @wraps(apply)
    def counting(*arguments: Value) -> Value:
        made = apply(*arguments)
        if isinstance(made, str) and len(made) >= _LARGE and (budget := budgets.current()) is not None:
            budget.hold_for_row(len(made) * _BYTES_PER_CHARACTER)
        return made

    return counting


def _left(text: str, count: int) -> str:
    return text[: max(count, 0)]


def _right(text: str, count: int) -> str:
    return text[max(len(text) - count, 0) :] if count > 0 else ""


def _substring(text: str, start: int, count: int) -> str:
    """The characters at the positions start, start + 1, ... that exist; so a start before 1 eats into the count."""
    return text[max(start - 1, 0) : max(start - 1 + count, 0)]


def _concat(*texts: str) -> str:
    _require_short(sum(map(len, texts)))
    return "".join(texts)


def _replace(text: str, part: str, replacement: str) -> str:
    if not part:
        return text
    growth = len(replacement) - len(part)
    # Counting takes as long as replacing, so only texts that could grow too long are counted.
    if growth > 0 and len(text) * (1 + growth) > MOST_CHARACTERS:
        _require_short(len(text) + growth * text.count(part))
    return text.replace(part, replacement)


def _require_short(length: int) -> None:
    if length > MOST_CHARACTERS:
        raise out_of_range(TEXT_TOO_LONG, "shorten the texts that are joined or replaced")


PAIRS_OF_UNICODE_17 = {
    "\ua7ce": "\ua7cf",
    "\ua7d2": "\ua7d3",
    "\ua7d4": "\ua7d5",
    **{chr(0x16EA0 + index): chr(0x16EBB + index) for index in range(25)},
}
"""Upper and lower case of the letters that came last.

UPPER and LOWER follow Unicode 17 everywhere. The oldest Python that we run on has Unicode 14; Spark 4.0 and 4.1 have
16. What they lack is here, so that a run and its explanation agree, whichever Python and Spark they are on.
"""
_NEWER_PAIRS = {
    "\u1c89": "\u1c8a",
    "\ua7cb": "\u0264",
    "\ua7cc": "\ua7cd",
    "\ua7da": "\ua7db",
    "\ua7dc": "\u019b",
    **{chr(0x10D50 + index): chr(0x10D70 + index) for index in range(22)},
    **PAIRS_OF_UNICODE_17,
}

_TO_LOWER = str.maketrans(_NEWER_PAIRS)
_TO_UPPER = str.maketrans({lower: upper for upper, lower in _NEWER_PAIRS.items()})


def upper(text: str) -> str:
    """The text in upper case, which can be longer."""
    return text.upper() if text.isascii() else text.upper().translate(_TO_UPPER)


def lower(text: str) -> str:
    """The text in lower case, which can be longer."""
    return text.lower() if text.isascii() else text.lower().translate(_TO_LOWER)


TEXT = (
    text_function(
        "CONCAT",
        (Parameter("text", "string", repeats=True),),
        STRING,
        "The strings joined; NULL if one of them is NULL. An error beyond 1,000,000 characters.",
        _concat,
        ('CONCAT("a", "b", "c")', '"abc"'),
        ('CONCAT("a", NULL)', "NULL"),
        infer=repeated(STRING, returns=STRING),
    ),
    text_function("UPPER", (_TEXT,), STRING, "The string in upper case.", upper, ('UPPER("größe")', '"GRÖSSE"')),
    text_function("LOWER", (_TEXT,), STRING, "The string in lower case.", lower, ('LOWER("ÄB")', '"äb"')),
    text_function(
        "TRIM",
        (_TEXT,),
        STRING,
        "The string without spaces at its start and end; spaces inside stay.",
        lambda text: text.strip(" "),
        ('TRIM("  a b ")', '"a b"'),
    ),
    text_function("LEFT", (_TEXT, _COUNT), STRING, "The first characters.", _left, ('LEFT("ledger", 3)', '"led"')),
    text_function("RIGHT", (_TEXT, _COUNT), STRING, "The last characters.", _right, ('RIGHT("ledger", 3)', '"ger"')),
    text_function("LEN", (_TEXT,), INTEGER, "The number of characters in the string.", len, ('LEN("naïve")', "5")),
    text_function(
        "CONTAINS",
        (_TEXT, _PART),
        BOOLEAN,
        "Whether the string contains the part.",
        lambda text, part: part in text,
        ('CONTAINS("TEST posting", "TEST")', "TRUE"),
    ),
    text_function(
        "STARTSWITH",
        (_TEXT, _PART),
        BOOLEAN,
        "Whether the string starts with the part.",
        str.startswith,
        ('STARTSWITH("5210", "52")', "TRUE"),
    ),
    text_function(
        "ENDSWITH",
        (_TEXT, _PART),
        BOOLEAN,
        "Whether the string ends with the part.",
        str.endswith,
        ('ENDSWITH("5210", "52")', "FALSE"),
    ),
    text_function(
        "REPLACE",
        (_TEXT, _PART, Parameter("replacement", "string")),
        STRING,
        "The string with every occurrence of the part replaced. An error if it grows beyond 1,000,000 characters.",
        _replace,
        ('REPLACE("1-2-3", "-", "/")', '"1/2/3"'),
    ),
    text_function(
        "SUBSTRING",
        (_TEXT, Parameter("start", "integer"), _COUNT),
        STRING,
        "The given number of characters, starting at a position; the first character is at 1.",
        _substring,
        ('SUBSTRING("ledger", 2, 3)', '"edg"'),
    ),
)
