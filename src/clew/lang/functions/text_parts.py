"""Functions that find, cut, fill up and identify text."""

import hashlib
import uuid
from collections.abc import Sequence

from clew.lang.arithmetic import out_of_range
from clew.lang.functions.declaration import (
    Argument,
    Parameter,
    Signature,
    SignatureProblem,
)
from clew.lang.functions.inference import fixed
from clew.lang.functions.patterns import literal_text
from clew.lang.functions.text import MOST_CHARACTERS, TEXT_TOO_LONG, lower, text_function, upper
from clew.lang.types import INTEGER, STRING

_TEXT = Parameter("text", "string")
_LENGTH = Parameter("length", "integer")
_FILL = Parameter("fill", "string; a space by default", optional=True)
NO_LETTERS = "".join(character for character in map(chr, range(1, 128)) if not character.isalpha()) + "\u00a0"
"""After these characters PROPER begins a new word. Others are part of one, whatever alphabet they are of."""


def _find(text: str, part: str, start: int = 1) -> int:
    return text.find(part, max(start, 1) - 1) + 1 if max(start, 1) <= len(text) + 1 else 0


def _split(text: str, separator: str, number: int) -> str | None:
    parts = text.split(separator) if separator else [text]
    index = number - 1 if number > 0 else len(parts) + number
    return parts[index] if number and 0 <= index < len(parts) else None


def _padding(text: str, length: int, fill: str) -> str | None:
    """What is missing; None where nothing is."""
    if length > MOST_CHARACTERS:
        raise out_of_range(TEXT_TOO_LONG, "give a smaller length")
    missing = length - len(text)
    return (fill * (missing // len(fill) + 1))[:missing] if missing > 0 and fill else None


def _lpad(text: str, length: int, fill: str = " ") -> str:
    padding = _padding(text, length, fill)
    return text[: max(length, 0)] if padding is None else padding + text


def _rpad(text: str, length: int, fill: str = " ") -> str:
    padding = _padding(text, length, fill)
    return text[: max(length, 0)] if padding is None else text + padding


def _proper(text: str) -> str:
    made, begins = list[str](), True
    for character in lower(text):
        made.append(upper(character) if begins else character)
        begins = character in NO_LETTERS
    return "".join(made)


def _repeat(text: str, count: int) -> str:
    if len(text) * max(count, 0) > MOST_CHARACTERS:
        raise out_of_range(TEXT_TOO_LONG, "repeat it less often")
    return text * max(count, 0)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _infer_uuid(arguments: Sequence[Argument]) -> Signature:
    namespace = literal_text(arguments, 0, "the namespace")
    if namespace is not None and namespace_of(namespace) is None:
        problem = f'"{namespace}" is not a UUID'
        hint = 'write for example "6ba7b811-9dad-11d1-80b4-00c04fd430c8", the one for URLs'
        raise SignatureProblem(problem, 0, hint)
    return fixed(STRING, STRING, returns=STRING)(arguments)


def namespace_of(text: str) -> uuid.UUID | None:
    """The UUID that a text is; None if it is none."""
    try:
        found = uuid.UUID(text)
    except ValueError:
        return None
    return found if str(found) == text.lower() else None


def _uuid5(namespace: str, name: str) -> str:
    return str(uuid.uuid5(uuid.UUID(namespace), name))


TEXT_PARTS = (
    text_function(
        "FIND",
        (_TEXT, Parameter("part", "string"), Parameter("start", "integer; 1 by default", optional=True)),
        INTEGER,
        "The position of the first occurrence of the part, from a position on; 0 if there is none.",
        _find,
        ('FIND("ledger", "e")', "2"),
        ('FIND("ledger", "e", 3)', "5"),
        ('FIND("ledger", "x")', "0"),
    ),
    text_function(
        "SPLIT",
        (_TEXT, Parameter("separator", "string"), Parameter("number", "integer")),
        STRING,
        "The part with this number of a text that separators divide; negative numbers count from the end. NULL if "
        "there is no such part.",
        _split,
        ('SPLIT("DE-BY-80331", "-", 2)', '"BY"'),
        ('SPLIT("DE-BY-80331", "-", -1)', '"80331"'),
        ('SPLIT("DE", "-", 2)', "NULL"),
    ),
    text_function(
        "LPAD",
        (_TEXT, _LENGTH, _FILL),
        STRING,
        "The text, filled up from the left to a length, or cut to it. An error beyond 1,000,000 characters.",
        _lpad,
        ('LPAD("42", 6, "0")', '"000042"'),
        ('LPAD("ledger", 3)', '"led"'),
    ),
    text_function(
        "RPAD",
        (_TEXT, _LENGTH, _FILL),
        STRING,
        "The text, filled up from the right to a length, or cut to it. An error beyond 1,000,000 characters.",
        _rpad,
        ('RPAD("EUR", 5, ".")', '"EUR.."'),
    ),
    text_function(
        "PROPER",
        (_TEXT,),
        STRING,
        "The text in lower case, each word with a capital. A word begins at the start, and after each ASCII character "
        "that is not a letter.",
        _proper,
        ('PROPER("MARY-ANN O\'NEILL")', '"Mary-Ann O\'Neill"'),
    ),
    text_function(
        "REPEAT",
        (_TEXT, Parameter("count", "integer")),
        STRING,
        "The text so many times; an empty text if the count is not positive. An error beyond 1,000,000 characters.",
        _repeat,
        ('REPEAT("ab", 3)', '"ababab"'),
    ),
    text_function(
        "HASH",
        (_TEXT,),
        STRING,
        "The SHA-256 digest of the text in UTF-8, as 64 hexadecimal digits in lower case.",
        _hash,
        ('HASH("abc")', '"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"'),
    ),
    text_function(
        "UUID5",
        (Parameter("namespace", "string, a literal UUID"), Parameter("name", "string")),
        STRING,
        "The UUID of a name in a namespace (version 5, RFC 9562): the same name always has the same one.",
        _uuid5,
        (
            'UUID5("6ba7b811-9dad-11d1-80b4-00c04fd430c8", "https://example.org")',
            f'"{_uuid5("6ba7b811-9dad-11d1-80b4-00c04fd430c8", "https://example.org")}"',
        ),
        infer=_infer_uuid,
    ),
)
