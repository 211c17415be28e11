"""What can stand where someone is typing an expression: columns, functions and words of the language."""

import re
from collections.abc import Mapping

from clew.deferred import dataclass
from clew.lang.functions import FUNCTIONS, SHORTHANDS, Family, usage
from clew.lang.lexer import KEYWORDS, WORDS
from clew.lang.text_form import name_text
from clew.lang.types import Type

_WORD = re.compile(r"[^\W\d]\w*$")
_CLOSED = re.compile(r'"[^"]*"|`[^`]*`')
_MOST = 8
_FAMILIES = frozenset({Family.OPERATOR, Family.AGGREGATE, Family.WINDOW})


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that can stand in the place of the word at the cursor, and what it is."""

    text: str
    about: str


@dataclass(frozen=True, slots=True)
class Completions:
    """What can stand in the place of the characters from `start` to the cursor, the best first."""

    start: int
    found: tuple[Completion, ...]

    def to_json(self) -> dict[str, object]:
        """The JSON form, for the page that asks while someone types."""
        return {"start": self.start, "found": [{"text": each.text, "about": each.about} for each in self.found]}


def completions(typed: str, columns: Mapping[str, Type]) -> Completions:
    """What can stand in the place of the last word of what was typed up to the cursor. Within a string, nothing."""
    rest = _CLOSED.sub("", typed)
    start = len(typed)
    if '"' in rest:
        return Completions(start, ())
    if "`" in rest:
        start = typed.rindex("`")
        begun = typed[start + 1 :]
        return Completions(start, tuple(_columns(begun, columns))[:_MOST]) if begun else Completions(start, ())
    word = _WORD.search(typed)
    if word is None:
        return Completions(start, ())
    begun = word[0]
    found = (*_columns(begun, columns), *_functions(begun), *_words(begun))
    others = tuple(each for each in found if each.text != begun)
    return Completions(word.start(), others[:_MOST])


def _columns(begun: str, columns: Mapping[str, Type]) -> list[Completion]:
    """Columns that begin with a word come before those that have it in them."""
    asked = begun.casefold()
    ranked = [(name.casefold().find(asked), name) for name in columns]
    found = sorted((place > 0, order, name) for order, (place, name) in enumerate(ranked) if place >= 0)
    return [Completion(name_text(name), str(columns[name])) for _, _, name in found]


def _functions(begun: str) -> list[Completion]:
    declared = {**FUNCTIONS, **SHORTHANDS}
    names = sorted(name for name in declared if name.startswith(begun.upper()) and name not in KEYWORDS)
    return [Completion(f"{name}(", usage(declared[name])) for name in names if declared[name].family not in _FAMILIES]


def _words(begun: str) -> list[Completion]:
    return [Completion(word, "") for word in sorted(KEYWORDS | WORDS) if word.startswith(begun.upper())]
