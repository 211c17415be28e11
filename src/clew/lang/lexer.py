"""Characters to tokens."""

import re
from enum import StrEnum
from typing import NamedTuple

from clew.diagnostics import Text, UserError
from clew.diagnostics.codes.language import SYNTAX_ERROR


class TokenKind(StrEnum):
    """What a token is."""

    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    KEYWORD = "keyword"
    QUOTED_NAME = "quoted name"
    SELECTOR = "selector"
    SYMBOL = "symbol"
    END = "end"


class Token(NamedTuple):
    """A token and its place. `value` has quoting undone, and keywords in upper case."""

    kind: TokenKind
    value: str
    start: int
    end: int


KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE", "CASE", "WHEN"})
WORDS = frozenset({"THEN", "ELSE", "END", "BETWEEN", "LIKE", "ESCAPE"})
"""Words that mean something after an operand only, so that columns can have these names."""

MAX_CHARACTERS = 250_000
"""Of one expression. Long lists after IN reach some ten thousand; megabytes are a file in the wrong place."""

# The possessive quantifiers (*+, ++) keep an unclosed text from being tried again at each of its characters.
_TOKEN = re.compile(
    r"""
    \s*+
    (?:
      (?P<name>[^\W\d]\w*+)
    | (?P<symbol><>|<=|>=|[-+*/=<>(),.])
    | (?P<number>[0-9]++(?:\.[0-9]++)?)
    | (?P<string>"(?:[^"]++|"")*+")
    | (?P<quoted>`(?:[^`]++|``)++`)
    | (?P<selector>\{\{\s*+(?P<selector_name>[^\W\d][\w.-]*+)\s*+\}\})
    | (?P<end>\Z)
    )
    """,
    re.VERBOSE,
)
_NEVER = re.compile("[\x00\ud800-\udfff]")
"""Characters that no database, file or Java string keeps as they are: NUL and the halves of surrogate pairs."""

_COMMON_MISTAKES = (
    ('"', "this string has no closing quote", 'close it with ", and write "" for a quote inside'),
    ("`", "this name has no closing backquote", "close it with `"),
    ("'", "strings are written in double quotes", "write \"text\" instead of 'text'"),
    ("!=", "there is no operator !=", "write <> for not equal"),
    ("{{", "a selector reference is written {{NAME}}", "close it with }}"),
    ("&&", "there is no operator &&", "write AND"),
    ("||", "there is no operator ||", "write OR, or CONCAT for strings"),
    ("&", "there is no operator &", "write CONCAT(a, b) to join strings"),
    (";", "arguments are separated by commas", "write , instead of ;"),
    ("^", "there is no operator ^", "write POWER(base, exponent)"),
    ("%", "there is no operator %", "write MOD(a, b), or divide by 100"),
)


def tokenize(text: Text) -> list[Token]:
    """All tokens, with one END token last. A character that starts no token raises a SyntaxError diagnostic."""
    source = text.value
    _refuse_unreadable(text)
    position, tokens = 0, list[Token]()
    while True:
        match = _TOKEN.match(source, position)
        if match is None:
            raise _not_a_token(text, position)
        tokens.append(_token(match, text))
        if match.lastgroup == "end":
            return tokens
        position = match.end()


def _refuse_unreadable(text: Text) -> None:
    if len(text.value) > MAX_CHARACTERS:
        problem = f"the expression has more than {MAX_CHARACTERS:,} characters"
        hint = "move long lists of values into a dataset, and join it"
        raise UserError(SYNTAX_ERROR.at(text.span(0, 1), problem=problem, hint=hint))
    never = _NEVER.search(text.value)
    if never is not None:
        problem = f"the character {_shown(never[0])} is not allowed in an expression"
        raise UserError(SYNTAX_ERROR.at(text.span(never.start(), never.end()), problem=problem))


def _token(match: re.Match[str], text: Text) -> Token:
    group = match.lastgroup or "end"
    source = match[group]
    end = match.end()
    start = end - len(source)
    match group:
        case "name":
            return _name(source, start, end)
        case "symbol":
            return Token(TokenKind.SYMBOL, source, start, end)
        case "number":
            _refuse_letter_after_number(text, start, end)
            return Token(TokenKind.NUMBER, source, start, end)
        case "string":
            return Token(TokenKind.STRING, source[1:-1].replace('""', '"'), start, end)
        case "quoted":
            return Token(TokenKind.QUOTED_NAME, source[1:-1].replace("``", "`"), start, end)
        case "selector":
            return Token(TokenKind.SELECTOR, match["selector_name"], start, end)
        case _:
            return Token(TokenKind.END, "", start, end)


def _name(source: str, start: int, end: int) -> Token:
    """A keyword has ASCII letters only: a dotless i would become an I in upper case."""
    folded = source.upper()
    if folded in KEYWORDS and source.isascii():
        return Token(TokenKind.KEYWORD, folded, start, end)
    return Token(TokenKind.NAME, source, start, end)


def _refuse_letter_after_number(text: Text, start: int, end: int) -> None:
    following = text.value[end : end + 1]
    if following.isalnum() or following == "_":
        problem = f'"{text.value[start : end + 1]}" is neither a number nor a name'
        hint = "a name starts with a letter; put other names in backquotes"
        if following in "eE":
            hint = "write the number without an exponent; put a name that starts with a digit in backquotes"
        raise UserError(SYNTAX_ERROR.at(text.span(start, end + 1), problem=problem, hint=hint))


def _not_a_token(text: Text, position: int) -> UserError:
    source = text.value
    while source[position].isspace():
        position += 1
    for beginning, problem, hint in _COMMON_MISTAKES:
        if source.startswith(beginning, position):
            span = text.span(position, position + len(beginning))
            return UserError(SYNTAX_ERROR.at(span, problem=problem, hint=hint))
    character = source[position]
    remedy = "put the name in backquotes" if _continues_a_word(source, position) else None
    span = text.span(position, position + 1)
    return UserError(
        SYNTAX_ERROR.at(span, problem=f"the character {_shown(character)} is not allowed here", hint=remedy)
    )


def _continues_a_word(source: str, position: int) -> bool:
    """Whether a name continues with a character that plain names do not have, such as $, @ or a combining accent."""
    return position > 0 and (source[position - 1].isalnum() or source[position - 1] == "_")


def _shown(character: str) -> str:
    return f'"{character}"' if character.isprintable() and not character.isspace() else f"U+{ord(character):04X}"
