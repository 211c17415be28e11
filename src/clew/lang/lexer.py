"""Characters to tokens."""

import re
from dataclasses import dataclass
from enum import StrEnum

from clew.diagnostics import Text, UserError
from clew.diagnostics.codes.language import SYNTAX_ERROR


class TokenKind(StrEnum):
    """What a token is."""

    NUMBER = "number"
    STRING = "string"
    NAME = "name"
    QUOTED_NAME = "quoted name"
    SELECTOR = "selector"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Token:
    """A token and its place. `value` has quoting undone; symbols and keywords compare by it."""

    kind: TokenKind
    value: str
    start: int
    end: int


KEYWORDS = frozenset({"AND", "OR", "NOT", "IN", "IS", "NULL", "TRUE", "FALSE"})

_TOKEN = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<number>\d+(?:\.\d+)?)
    | (?P<string>"(?:[^"]|"")*")
    | (?P<name>[^\W\d]\w*)
    | (?P<quoted>`(?:[^`]|``)+`)
    | (?P<selector>\{\{\s*(?P<selector_name>[^\W\d][\w.-]*)\s*\}\})
    | (?P<symbol><>|<=|>=|[-+*/=<>(),.])
    """,
    re.VERBOSE,
)

_COMMON_MISTAKES = (
    ('"', "this text has no closing quote", 'close it with ", and write "" for a quote inside'),
    ("`", "this name has no closing backquote", "close it with `"),
    ("'", "texts stand in double quotes", "write \"text\" instead of 'text'"),
    ("!=", "there is no operator !=", "write <> for not equal"),
    ("{{", "a selector reference is written {{NAME}}", "close it with }}"),
    ("&&", "there is no operator &&", "write AND"),
    ("||", "there is no operator ||", "write OR, or CONCAT for texts"),
    ("&", "there is no operator &", "write CONCAT(a, b) to join texts"),
    (";", "arguments are separated by commas", "write , instead of ;"),
    ("^", "there is no operator ^", "write the multiplication out"),
    ("%", "there is no operator %", "write MOD(a, b), or divide by 100"),
)


def tokenize(text: Text) -> list[Token]:
    """All tokens, with one END token last. A character that begins no token raises a SyntaxError diagnostic."""
    source, position, tokens = text.value, 0, list[Token]()
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None:
            raise _not_a_token(text, position)
        if match.lastgroup != "space":
            tokens.append(_token(match, text))
        position = match.end()
    tokens.append(Token(TokenKind.END, "", len(source), len(source)))
    return tokens


def _token(match: re.Match[str], text: Text) -> Token:
    start, end = match.span()
    source = match[0]
    if match["number"] is not None:
        following = text.value[end : end + 1]
        if following.isalpha() or following == "_":
            problem = f'"{source}{following}" is neither a number nor a name'
            raise UserError(
                SYNTAX_ERROR.at(text.span(start, end + 1), problem=problem, hint="a name starts with a letter")
            )
        return Token(TokenKind.NUMBER, source, start, end)
    if match["string"] is not None:
        return Token(TokenKind.STRING, source[1:-1].replace('""', '"'), start, end)
    if match["name"] is not None:
        return Token(TokenKind.NAME, source, start, end)
    if match["quoted"] is not None:
        return Token(TokenKind.QUOTED_NAME, source[1:-1].replace("``", "`"), start, end)
    if match["selector"] is not None:
        return Token(TokenKind.SELECTOR, match["selector_name"], start, end)
    return Token(TokenKind.SYMBOL, source, start, end)


def _not_a_token(text: Text, position: int) -> UserError:
    source = text.value
    for beginning, problem, hint in _COMMON_MISTAKES:
        if source.startswith(beginning, position):
            span = text.span(position, position + len(beginning))
            return UserError(SYNTAX_ERROR.at(span, problem=problem, hint=hint))
    character = source[position]
    shown = f'"{character}"' if character.isprintable() else f"U+{ord(character):04X}"
    span = text.span(position, position + 1)
    return UserError(SYNTAX_ERROR.at(span, problem=f"the character {shown} cannot stand here"))
