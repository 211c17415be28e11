"""Expressions with the values of their columns in place."""

from collections.abc import Mapping
from dataclasses import dataclass

from clew.diagnostics import PlainText, UserError
from clew.lang.lexer import Token, TokenKind, tokenize

_NAMES = frozenset({TokenKind.NAME, TokenKind.QUOTED_NAME})


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of an expression; `column` is what stood where a value stands now."""

    text: str
    column: str | None = None


def with_values(expression: str, values: Mapping[str, str]) -> tuple[Piece, ...]:
    """An expression as pieces, values in place of the columns that have one. Nothing where it is none."""
    try:
        tokens = tokenize(PlainText(expression, "<expression>"))
    except UserError:
        return ()
    pieces, done = list[Piece](), 0
    for first, last, name in _references(tokens):
        value = values.get(name, values.get(name.rpartition(".")[2]))
        if value is not None:
            pieces += [Piece(expression[done : first.start]), Piece(value, name)]
            done = last.end
    pieces.append(Piece(expression[done:]))
    return tuple(piece for piece in pieces if piece.text) if len(pieces) > 1 else ()


def _references(tokens: list[Token]) -> list[tuple[Token, Token, str]]:
    """The columns that are named: first token, last token, name with its table where one is given."""
    found, index = list[tuple[Token, Token, str]](), 0
    while index < len(tokens):
        token = tokens[index]
        if token.kind not in _NAMES:
            index += 1
            continue
        following = [each.value for each in tokens[index + 1 : index + 3]]
        if following[:1] == ["."] and len(following) == 2:
            found.append((token, tokens[index + 2], f"{token.value}.{following[1]}"))
            index += 3
        else:
            if following[:1] != ["("]:
                found.append((token, token, token.value))
            index += 1
    return found
