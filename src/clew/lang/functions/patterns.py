"""Functions that compare text with patterns, which are written in the expression itself and checked with it."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from clew.lang.arithmetic import out_of_range
from clew.lang.functions.declaration import (
    Argument,
    Example,
    Family,
    Function,
    NullRule,
    Parameter,
    Signature,
    SignatureProblem,
)
from clew.lang.functions.inference import Infer, fixed
from clew.lang.functions.text import counted
from clew.lang.like_patterns import ESCAPE, is_like, pieces_of
from clew.lang.regular_expressions import MOST_MATCHED, PatternProblem, RegularExpression, regular_expression
from clew.lang.typed import Value
from clew.lang.types import BOOLEAN, INTEGER, STRING

_TEXT = Parameter("text", "string")
_REGEX = Parameter("pattern", "a literal regular expression")
TOO_LONG_TO_SEARCH = f"a text of more than {MOST_MATCHED:,} characters is searched with a regular expression"


def literal_text(arguments: Sequence[Argument], index: int, what: str) -> str | None:
    """The text of an argument that must be a literal; None where it is NULL or left out."""
    if index >= len(arguments):
        return None
    argument = arguments[index]
    if argument.is_constant and (argument.constant is None or isinstance(argument.constant, str)):
        return argument.constant
    raise SignatureProblem(f"{what} must be a literal text", index, "write it in double quotes")


def _infer_like(arguments: Sequence[Argument]) -> Signature:
    pattern, escape = literal_text(arguments, 1, "the pattern"), literal_text(arguments, 2, "the escape")
    try:
        pieces_of(pattern or "", escape or ESCAPE)
    except ValueError as error:
        raise SignatureProblem(str(error), 1, 'for example "10\\%" or LIKE "10!%" ESCAPE "!"') from None
    return fixed(STRING, STRING, STRING, returns=BOOLEAN)(arguments)


def _regex(arguments: Sequence[Argument]) -> RegularExpression:
    pattern = literal_text(arguments, 1, "the pattern")
    try:
        return regular_expression(pattern or "")
    except PatternProblem as problem:
        raise SignatureProblem(str(problem), 1, problem.hint) from None


def _infer_match(arguments: Sequence[Argument]) -> Signature:
    _regex(arguments)
    return fixed(STRING, STRING, returns=BOOLEAN)(arguments)


def _infer_extract(arguments: Sequence[Argument]) -> Signature:
    expression = _regex(arguments)
    if len(arguments) > 2 and arguments[2].constant is not None:
        group = arguments[2].constant
        if not isinstance(group, int) or not 0 <= group <= expression.groups:
            problem = f"the pattern has {expression.groups} groups; 0 is all that it matches"
            raise SignatureProblem(problem, 2, "write the number of a group")
    return fixed(STRING, STRING, INTEGER, returns=STRING)(arguments)


def _infer_replace(arguments: Sequence[Argument]) -> Signature:
    expression = _regex(arguments)
    if expression.can_be_empty and arguments[1].constant is not None:
        raise SignatureProblem("the pattern can match nothing at all", 1, "write x+ instead of x*")
    replacement = literal_text(arguments, 2, "the replacement")
    try:
        parts_of_replacement(replacement or "", expression.groups)
    except ValueError as error:
        raise SignatureProblem(str(error), 2, "write $1 for the first group, $$ for a dollar") from None
    return fixed(STRING, STRING, STRING, returns=STRING)(arguments)


@lru_cache(maxsize=256)
def parts_of_replacement(replacement: str, groups: int) -> tuple[str | int, ...]:
    """Texts and numbers of groups. ValueError where a group does not exist."""
    parts = list[str | int]()
    for part in re.split(r"(\$.?)", replacement, flags=re.DOTALL):
        if part == "$$":
            parts.append("$")
        elif part.startswith("$"):
            if not part[1:].isascii() or not part[1:].isdigit() or not 0 <= int(part[1:]) <= groups:
                raise ValueError(f'"{part}" is not one of the {groups} groups of the pattern')
            parts.append(int(part[1:]))
        elif part:
            parts.append(part)
    return tuple(parts)


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(regular_expression(pattern).in_python)


def _searched(text: str) -> str:
    if len(text) > MOST_MATCHED:
        raise out_of_range(TOO_LONG_TO_SEARCH, "shorten it with LEFT")
    return text


def _match(text: str, pattern: str) -> bool:
    return _compiled(pattern).search(_searched(text)) is not None


def _extract(text: str, pattern: str, group: int | None = None) -> str | None:
    found = _compiled(pattern).search(_searched(text))
    if found is None:
        return None
    return found[default_group(pattern) if group is None else group] or ""


def default_group(pattern: str) -> int:
    """The group that is taken where none is named: the first, or all where there is none."""
    return min(1, regular_expression(pattern).groups)


def _replace(text: str, pattern: str, replacement: str) -> str:
    compiled = _compiled(pattern)
    parts = parts_of_replacement(replacement, compiled.groups)

    def replaced(found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in parts)

    return compiled.sub(replaced, _searched(text))


def _function(
    name: str,
    parameters: tuple[Parameter, ...],
    returns: str,
    sentence: str,
    infer: Infer,
    apply: Callable[..., Value],
    *examples: tuple[str, str],
) -> Function:
    shown = tuple(Example(expression, result) for expression, result in examples)
    made = counted(apply) if returns == str(STRING) else apply
    return Function(
        name, Family.TEXT, parameters, returns, NullRule.PROPAGATES, sentence, shown, infer, lambda _signature: made
    )


PATTERNS = (
    _function(
        "LIKE",
        (
            _TEXT,
            Parameter("pattern", "a literal string"),
            Parameter("escape", "a literal character; \\ by default", optional=True),
        ),
        "boolean",
        "Whether the whole text fits the pattern: % stands for any text, _ for any one character, and the escape "
        "before one of them makes it itself. Case counts. Also written text LIKE pattern [ESCAPE escape].",
        _infer_like,
        is_like,
        ('LIKE("Motor claim", "Motor%")', "TRUE"),
        ('"5210" LIKE "52__"', "TRUE"),
        ('"10%" LIKE "10!%" ESCAPE "!"', "TRUE"),
    ),
    _function(
        "REGEX_MATCH",
        (_TEXT, _REGEX),
        "boolean",
        "Whether the pattern is found somewhere in the text; ^ and $ are its start and end. See [patterns](#patterns).",
        _infer_match,
        _match,
        ('REGEX_MATCH("CLM-2026-17", "^[A-Z]+-[0-9]{4}-")', "TRUE"),
    ),
    _function(
        "REGEX_EXTRACT",
        (_TEXT, _REGEX, Parameter("group", "a literal whole number; the first group by default", optional=True)),
        "string",
        "What a group of the pattern matches, where it is found first; NULL if it is not found. Group 0 is all of it, "
        "which is also the default if there are no groups. See [patterns](#patterns).",
        _infer_extract,
        _extract,
        ('REGEX_EXTRACT("CLM-2026-17", "-([0-9]+)$")', '"17"'),
        ('REGEX_EXTRACT("none", "[0-9]+")', "NULL"),
    ),
    _function(
        "REGEX_REPLACE",
        (_TEXT, _REGEX, Parameter("replacement", "a literal string; $1 is what the first group matches")),
        "string",
        "The text with everything that the pattern matches replaced. See [patterns](#patterns).",
        _infer_replace,
        _replace,
        ('REGEX_REPLACE("DE89 3704", "[^0-9A-Z]", "")', '"DE893704"'),
        ('REGEX_REPLACE("31.01.2026", "([0-9]+)\\.([0-9]+)\\.([0-9]+)", "$3-$2-$1")', '"2026-01-31"'),
    ),
)
