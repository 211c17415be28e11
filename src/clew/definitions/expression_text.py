"""Expressions as users write them: text that knows the place of every character in its file.

Quotes, escapes, folded lines and indentation are taken into account, so that an error is shown where it is.
"""

import re
from dataclasses import field

from clew.deferred import dataclass
from clew.definitions.nodes import LINE_BREAK, NOWHERE, Node, ScalarNode
from clew.diagnostics import Span

_BLANKS = " \t"
_BREAKS = "\n\r\x85\u2028\u2029"
_KEPT_BREAKS = "\u2028\u2029"
"""These two are not turned into a plain line feed when lines are folded."""
_ESCAPE_DIGITS = {"x": 2, "u": 4, "U": 8}
_SPACES = re.compile(" *")


@dataclass(slots=True)
class Characters:
    """The decoded characters and, for each, the offsets in the source where its written form begins and ends."""

    decoded: list[str] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)

    def add(self, character: str, start: int, end: int) -> None:
        """Append a character that is written as source[start:end]."""
        self.decoded.append(character)
        self.starts.append(start)
        self.ends.append(end)

    def add_break(self, line_break: re.Match[str]) -> None:
        """Append a line break as the parser gives it."""
        character = line_break[0] if line_break[0] in _KEPT_BREAKS else "\n"
        self.add(character, line_break.start(), line_break.end())


def characters(node: ScalarNode) -> Characters | None:
    """The characters of a scalar with their places, or None if that is unknown."""
    text = node.source.text
    match node.style:
        case "|" | ">":
            found = _block(text, node)
        case "'" | '"':
            found = _flow(text, node.start + 1, node.end - 1, quote=node.style)
        case _:
            found = _flow(text, node.start, node.end, quote="")
    return found if "".join(found.decoded) == node.text else None


def _flow(text: str, position: int, end: int, *, quote: str) -> Characters:
    """A plain or quoted scalar, which may go over several lines."""
    found = Characters()
    while position < end:
        character = text[position]
        if character in _BLANKS or character in _BREAKS:
            position = _white_space(text, position, end, found)
        elif quote == "'" and character == "'":
            found.add("'", position, position + 2)
            position += 2
        elif quote == '"' and character == "\\":
            position = _escape(text, position, end, found)
        else:
            found.add(character, position, position + 1)
            position += 1
    return found


def _white_space(text: str, position: int, end: int, found: Characters) -> int:
    """Blanks within a line stay; the first line break becomes a space, or the further ones themselves."""
    after_blanks = _skip_blanks(text, position, end)
    first = LINE_BREAK.match(text, after_blanks, end)
    if first is None:
        for at in range(position, after_blanks):
            found.add(text[at], at, at + 1)
        return after_blanks
    further, position = _further_breaks(text, first.end(), end)
    if first[0] in _KEPT_BREAKS:
        found.add_break(first)
    elif not further:
        found.add(" ", first.start(), first.end())
    for line_break in further:
        found.add_break(line_break)
    return position


def _further_breaks(text: str, position: int, end: int) -> tuple[list[re.Match[str]], int]:
    breaks = []
    position = _skip_blanks(text, position, end)
    while (line_break := LINE_BREAK.match(text, position, end)) is not None:
        breaks.append(line_break)
        position = _skip_blanks(text, line_break.end(), end)
    return breaks, position


def _skip_blanks(text: str, position: int, end: int) -> int:
    while position < end and text[position] in _BLANKS:
        position += 1
    return position


def _escape(text: str, position: int, end: int, found: Characters) -> int:
    """An escape of a double-quoted scalar, among them the one that hides a line break."""
    line_break = LINE_BREAK.match(text, position + 1, end)
    if line_break is not None:
        further, after = _further_breaks(text, line_break.end(), end)
        for further_break in further:
            found.add_break(further_break)
        return after
    letter = text[position + 1 : position + 2]
    after = position + 2 + _ESCAPE_DIGITS.get(letter, 0)
    found.add(_unescaped(letter, text[position + 2 : after]), position, after)
    return after


_ESCAPES = dict(zip("0abt\tnvfreN_LP", "\0\x07\x08\t\t\n\x0b\x0c\r\x1b\x85\xa0\u2028\u2029", strict=True))


def _unescaped(letter: str, digits: str) -> str:
    return chr(int(digits, 16)) if digits else _ESCAPES.get(letter, letter)


def _block(text: str, node: ScalarNode) -> Characters:
    """A literal or folded block: lines without their indentation."""
    found = Characters()
    header = LINE_BREAK.search(text, node.start, node.end)
    if header is None:
        return found
    lines = _lines(text, header.end(), node.end)
    indent = _indentation(text, lines, node.text)
    pending: list[re.Match[str]] = []
    previous_is_text = False
    for start, line_break, line_end in lines:
        content = start + min(indent, len(_SPACES.match(text, start, line_end)[0]))  # type: ignore[index]
        if content < line_end:
            folds = node.style == ">" and previous_is_text and text[content] not in _BLANKS
            _join(pending, found, folds=folds)
            for at in range(content, line_end):
                found.add(text[at], at, at + 1)
            previous_is_text = text[content] not in _BLANKS
            pending = []
        if line_break is not None:
            pending.append(line_break)
    for line_break in pending[: len(node.text) - len(found.decoded)]:
        found.add_break(line_break)
    return found


def _join(pending: list[re.Match[str]], found: Characters, *, folds: bool) -> None:
    """The line breaks between two lines of a block: a folded one becomes a space, or vanishes before empty lines."""
    if folds and pending and pending[0][0] not in _KEPT_BREAKS:
        if len(pending) == 1:
            found.add(" ", pending[0].start(), pending[0].end())
        pending = pending[1:]
    for line_break in pending:
        found.add_break(line_break)


def _lines(text: str, position: int, end: int) -> list[tuple[int, re.Match[str] | None, int]]:
    """Start, line break and end of each line."""
    lines = []
    while position < end:
        line_break = LINE_BREAK.search(text, position, end)
        lines.append((position, line_break, line_break.start() if line_break else end))
        position = line_break.end() if line_break else end
    return lines


def _indentation(text: str, lines: list[tuple[int, re.Match[str] | None, int]], value: str) -> int:
    """How far a block is indented: what its first line with text has more than the value has there."""
    for start, _, end in lines:
        written = text[start:end]
        if written.strip(" "):
            first = next((line for line in LINE_BREAK.split(value) if line.strip(" ")), "")
            return (len(written) - len(written.lstrip(" "))) - (len(first) - len(first.lstrip(" ")))
    return 0


@dataclass(frozen=True, slots=True)
class ExpressionText:
    """The text of an expression. Two are equal when their text is, wherever it is."""

    value: str
    node: Node = field(default=NOWHERE, repr=False, compare=False)

    def __str__(self) -> str:
        return self.value

    def span(self, start: int, end: int) -> Span:
        """The place in the file of `value[start:end]`, as far as it lies in one line."""
        written = characters(self.node) if isinstance(self.node, ScalarNode) else None
        if written is None or not written.decoded:
            return self.node.span
        if start >= len(written.starts):
            return self.node.source.span(written.ends[-1], written.ends[-1])
        last = min(max(start, end - 1), len(written.ends) - 1)
        return self.node.source.span(written.starts[start], written.ends[last])
