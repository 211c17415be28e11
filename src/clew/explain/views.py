"""Explanations as text for a terminal, as JSON, and as a self-contained HTML page without scripts."""

import dataclasses
import re
import unicodedata
from collections.abc import Iterator, Mapping
from html import escape

from clew.explain.outline import Item, outline, why_not_outline
from clew.explain.tree import CutOff, Explanation, Parents, Recomputed, StepRef
from clew.explain.why_not import Elsewhere, NeverLoaded, RuleOutcome, WhyNot
from clew.trace.json_values import json_value
from clew.trace.records import Source

_LEAST_ROOM = 30
"""The fewest columns of a line, however deep it is in the tree."""

_INDENT = 4
"""How far the continuation of a long line is indented."""


def as_text(answer: Explanation | WhyNot, width: int | None = None) -> str:
    """An answer as lines of text with a tree in front of them, wrapped where a width is given."""
    item = outline(answer) if isinstance(answer, Explanation) else why_not_outline(answer)
    return "\n".join(_lines(item, width)) + "\n"


def _lines(item: Item, width: int | None, first: str = "", rest: str = "") -> Iterator[str]:
    text = _printable(item.text)
    room = None if width is None else max(width - len(rest) - _INDENT, _LEAST_ROOM)
    begin, *others = [text] if room is None else _wrapped(text, room)
    yield first + begin
    for other in others:
        yield rest + ("|" if item.children else "").ljust(_INDENT) + other
    for child in item.children:
        is_last = child is item.children[-1]
        yield from _lines(child, width, rest + ("'- " if is_last else "|- "), rest + ("   " if is_last else "|  "))


def _wrapped(text: str, room: int) -> Iterator[str]:
    """A text in lines that are not wider than some columns, broken at spaces where it has any."""
    line, used = list[str](), 0
    for word in text.split(" "):
        taken = _columns(word) + (1 if line else 0)
        if line and used + taken > room:
            yield " ".join(line)
            line, used, taken = [], 0, _columns(word)
        line.append(word)
        used += taken
    yield " ".join(line)


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    wide = sum(unicodedata.east_asian_width(ch) in "WF" for ch in text)
    return len(text) + wide - sum(unicodedata.combining(ch) > 0 for ch in text)


def _printable(text: str) -> str:
    """On one line, without characters that would do something to a terminal."""
    return "".join(ch if ch.isprintable() else "�" for ch in " ".join(text.split("\n")))


_IN_ONE_ROLE = (
    *(Explanation, StepRef, Source, Recomputed, Parents, CutOff),
    *(WhyNot, NeverLoaded, RuleOutcome, Elsewhere),
)
"""Records that have one role only and need no kind."""


_ONLY_WHERE_GIVEN = frozenset({"windows"})
"""Fields that are left out where they are empty."""


def as_json(answer: Explanation | WhyNot) -> dict[str, object]:
    """An answer as plain data for `json.dumps`."""
    data = _plain(answer)
    assert isinstance(data, dict)  # noqa: S101 - a record is an object
    return data


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {} if isinstance(value, _IN_ONE_ROLE) else {"kind": _snake(type(value).__name__)}
        named = {
            field.name: getattr(value, field.name)
            for field in dataclasses.fields(value)
            if field.name not in _ONLY_WHERE_GIVEN or getattr(value, field.name)
        }
        if named.get("cut", value) is None:
            del named["cut"]
        return kind | {name: _plain(each) for name, each in named.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return json_value(value)  # type: ignore[arg-type]


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.2rem; } footer { margin-top: 2rem; opacity: .7; font-size: .85rem; }
details, .leaf { margin-left: 1.2rem; padding: .1rem 0; } .leaf { padding-left: 1rem; }
summary { cursor: pointer; } code { font-family: ui-monospace, monospace; overflow-wrap: anywhere; }
"""


def as_html(answer: Explanation | WhyNot) -> str:
    """An answer as a page."""
    if isinstance(answer, Explanation):
        item, title = outline(answer), f"Why {answer.column} of {answer.label or answer.row_id}"
        about = f"run {answer.run_id}, row {answer.row_id}, after step {answer.at}"
    else:
        item, title = why_not_outline(answer), f"Why not: {answer.where}"
        about = f"run {answer.run_id}, period {answer.period}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n"
        f"<body><h1>{escape(title)}</h1>\n{fragment(item)}\n<footer>{escape(about)}</footer></body></html>\n"
    )


def fragment(item: Item) -> str:
    """An outline as nested parts that open and close; the first two levels are open."""
    return _part(item, depth=0)


def _part(item: Item, depth: int) -> str:
    text = f"<code>{escape(item.text)}</code>"
    if not item.children:
        return f'<div class="leaf">{text}</div>'
    inner = "".join(_part(child, depth + 1) for child in item.children)
    return f"<details{' open' if depth < 2 else ''}><summary>{text}</summary>{inner}</details>"
