"""Functions that choose among several values."""

from collections.abc import Callable, Sequence

from clew.lang import doubles
from clew.lang.functions.declaration import (
    Argument,
    Example,
    Family,
    Function,
    LazyFunction,
    NullRule,
    Parameter,
    Signature,
    SignatureProblem,
)
from clew.lang.functions.inference import comparable, require, same_type
from clew.lang.functions.logic import Arguments
from clew.lang.typed import Value
from clew.lang.types import BOOLEAN, Kind

_VALUES = (Parameter("value", "numbers, strings or dates, all the same", repeats=True),)


def _infer_case(arguments: Sequence[Argument]) -> Signature:
    conditions = range(0, len(arguments) - 1, 2)
    for index in conditions:
        condition = arguments[index].type
        require(arguments[index], index, condition.kind in {Kind.BOOLEAN, Kind.NULL}, "a condition")
    values = [*range(1, len(arguments) - 1, 2), len(arguments) - 1]
    return _with_results(arguments, values, dict.fromkeys(conditions, BOOLEAN))


def _infer_switch(arguments: Sequence[Argument]) -> Signature:
    if len(arguments) < 3:
        problem = "SWITCH takes a value, and a result for each candidate"
        raise SignatureProblem(problem, hint="write SWITCH(value, candidate, result, ..., otherwise)")
    last = len(arguments) - 1 if len(arguments) % 2 == 0 else len(arguments)
    compared = [0, *range(1, last, 2)]
    try:
        types = comparable([arguments[index] for index in compared]).parameters
    except SignatureProblem as problem:
        culprit = None if problem.argument is None else compared[problem.argument]
        raise SignatureProblem(problem.problem, culprit, problem.hint) from None
    results = [*range(2, last, 2), *([last] if last < len(arguments) else [])]
    return _with_results(arguments, results, dict(zip(compared, types, strict=True)))


def _with_results(arguments: Sequence[Argument], results: Sequence[int], others: dict[int, object]) -> Signature:
    """All results have one type; the other arguments have those that are given."""
    try:
        result = same_type([arguments[index] for index in results])
    except SignatureProblem as problem:
        raise SignatureProblem(problem.problem, results[problem.argument or 0], problem.hint) from None
    types = {**others, **dict.fromkeys(results, result)}
    return Signature(tuple(types[index] for index in range(len(arguments))), result)  # type: ignore[misc]


def _case(arguments: Arguments, row: object) -> Value:
    for index in range(0, len(arguments) - 1, 2):
        if arguments[index](row):
            return arguments[index + 1](row)
    return arguments[-1](row)


def _switch(arguments: Arguments, row: object) -> Value:
    value = arguments[0](row)
    for index in range(1, len(arguments) - 1, 2):
        candidate = arguments[index](row)
        if value is not None and candidate is not None and _equal(value, candidate):
            return arguments[index + 1](row)
    return arguments[-1](row) if len(arguments) % 2 == 0 else None


def _equal(a: Value, b: Value) -> bool:
    return a == b or (a != a and b != b)  # noqa: PLR0124 - NaN equals NaN


def _between(arguments: Arguments, row: object) -> Value:
    """Three-valued: a value below a known bound is outside, whatever the other bound is."""
    value, low = (_ordered(argument(row)) for argument in arguments[:2])
    above = None if value is None or low is None else value >= low  # type: ignore[operator]
    if above is False:
        return False
    high = _ordered(arguments[2](row))
    below = None if value is None or high is None else value <= high  # type: ignore[operator]
    return False if below is False else None if above is None or below is None else True


def _ordered(value: Value) -> object:
    return doubles.order(value) if isinstance(value, float) else value


def _infer_same(arguments: Sequence[Argument]) -> Signature:
    result = same_type(arguments)
    return Signature((result,) * len(arguments), result)


def _infer_ordered(arguments: Sequence[Argument]) -> Signature:
    result = same_type(arguments)
    require(arguments[0], 0, result != BOOLEAN, "numbers, strings or dates")
    return Signature((result,) * len(arguments), result)


def _null_if(a: Value, b: Value) -> Value:
    return None if a is None or (b is not None and _equal(a, b)) else a


def _extreme(pick: Callable[..., Value]) -> Callable[[Signature], Callable[..., Value]]:
    def bind(_signature: Signature) -> Callable[..., Value]:
        return lambda *values: pick((value for value in values if value is not None), key=_ordered, default=None)

    return bind


CHOICES = (
    LazyFunction(
        "CASE",
        Family.LOGIC,
        (
            Parameter("condition", "boolean"),
            Parameter("value", "any type"),
            Parameter("otherwise", "after more of both, a value for all else", repeats=True),
        ),
        "the type of the values",
        NullRule.HANDLES,
        "The value after the first condition that is TRUE, or the one after ELSE; NULL if there is none. "
        "Written CASE WHEN a THEN b WHEN c THEN d ELSE e END.",
        (
            Example('CASE WHEN 2 > 3 THEN "a" WHEN 2 > 1 THEN "b" ELSE "c" END', '"b"'),
            Example("CASE WHEN NULL THEN 1 END", "NULL"),
        ),
        _infer_case,
        _case,
    ),
    LazyFunction(
        "SWITCH",
        Family.LOGIC,
        (
            Parameter("value", "any type"),
            Parameter("candidate", "a type comparable with it"),
            Parameter("result", "any type"),
            Parameter(
                "otherwise", "after more candidates and results, a value for all else", optional=True, repeats=True
            ),
        ),
        "the type of the results",
        NullRule.HANDLES,
        "The result after the first candidate that equals the value, or the last argument; NULL if there is none. "
        "NULL equals nothing. Also written CASE value WHEN a THEN b ELSE c END.",
        (
            Example('SWITCH(2, 1, "one", 2, "two", "many")', '"two"'),
            Example('SWITCH(5, 1, "one")', "NULL"),
        ),
        _infer_switch,
        _switch,
    ),
    LazyFunction(
        "BETWEEN",
        Family.LOGIC,
        (
            Parameter("value", "any type"),
            Parameter("low", "a type comparable with it"),
            Parameter("high", "a type comparable with it"),
        ),
        "boolean",
        NullRule.HANDLES,
        "Whether low <= value AND value <= high. Also written value BETWEEN low AND high.",
        (Example("2 BETWEEN 1 AND 2", "TRUE"), Example("5 BETWEEN NULL AND 2", "FALSE")),
        comparable,
        _between,
    ),
    Function(
        "NULLIF",
        Family.LOGIC,
        (Parameter("value", "any type"), Parameter("other", "the same type")),
        "the type of both values",
        NullRule.HANDLES,
        "NULL if both values are equal, else the first.",
        (Example("NULLIF(0, 0)", "NULL"), Example('NULLIF("a", "n/a")', '"a"')),
        _infer_same,
        lambda _signature: _null_if,
    ),
    Function(
        "GREATEST",
        Family.LOGIC,
        _VALUES,
        "the type of the values",
        NullRule.HANDLES,
        "The largest of the values in one row that are not NULL; MAX gives NULL if one is NULL.",
        (Example("GREATEST(3, NULL, 5)", "5"),),
        _infer_ordered,
        _extreme(max),
    ),
    Function(
        "LEAST",
        Family.LOGIC,
        _VALUES,
        "the type of the values",
        NullRule.HANDLES,
        "The smallest of the values in one row that are not NULL; MIN gives NULL if one is NULL.",
        (Example("LEAST(3, NULL, 5)", "3"),),
        _infer_ordered,
        _extreme(min),
    ),
)
