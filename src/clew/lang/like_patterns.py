"""Patterns of LIKE: % stands for any text, _ for any one character, and an escape makes either of them itself.

Matching takes time in proportion to the text times the pattern, here and in Java: after each % the first place that
fits is taken, which is always as good as a later one.
"""

from functools import lru_cache

ESCAPE = "\\"
"""What takes the meaning from % and _ where nothing else is said."""

Piece = tuple[str | None, ...]
"""Characters; None for any one."""


@lru_cache(maxsize=256)
def pieces_of(pattern: str, escape: str = ESCAPE) -> tuple[Piece, ...]:
    """What stands between the % of a pattern. ValueError says what is wrong with the pattern."""
    if len(escape) != 1 or escape in "%_":
        raise ValueError('the escape must be one character, and neither "%" nor "_"')
    pieces: list[list[str | None]] = [[]]
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in {"%", "_", escape}:
                raise ValueError(f"after the escape {escape} there must be %, _ or {escape}")
            pieces[-1].append(escaped)
        elif character == "%":
            pieces.append([])
        else:
            pieces[-1].append(None if character == "_" else character)
    return tuple(map(tuple, pieces))


def is_like(text: str, pattern: str, escape: str = ESCAPE) -> bool:
    """Whether the whole text fits the pattern."""
    first, *middle = pieces_of(pattern, escape)
    if not middle:
        return len(text) == len(first) and _fits(first, text, 0)
    last = middle.pop()
    position, end = len(first), len(text) - len(last)
    if end < position or not _fits(first, text, 0) or not _fits(last, text, end):
        return False
    for piece in middle:
        places = range(position, end - len(piece) + 1)
        found = next((place for place in places if _fits(piece, text, place)), None)
        if found is None:
            return False
        position = found + len(piece)
    return True


def _fits(piece: Piece, text: str, place: int) -> bool:
    return all(wanted is None or text[place + offset] == wanted for offset, wanted in enumerate(piece))


def java_pattern(pattern: str, escape: str = ESCAPE) -> str:
    """A regular expression of Java that finds the same; atomic groups keep it from trying later places."""
    first, *middle = map(_written, pieces_of(pattern, escape))
    if not middle:
        return rf"(?s)\A{first}\z"
    last = middle.pop()
    found = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return rf"(?s)\A{first}{found}.*{last}\z"


def _written(piece: Piece) -> str:
    return "".join("." if character is None else _literal(character) for character in piece)


def _literal(character: str) -> str:
    return "\\" + character if character.isascii() and not character.isalnum() and character > " " else character
