"""A diagnostic as text: one line, the excerpt with a caret, the hint, and near names for "did you mean"."""

import unicodedata
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from clew.diagnostics.diagnostic import LINE_BREAK, Diagnostic, Span

_WIDEST_EXCERPT = 120
_CONTEXT_BEFORE = 40


def render(diagnostic: Diagnostic, source_of: Callable[[str], str | None]) -> str:
    """Text for a terminal. `source_of` returns the text of a file, or None if it cannot be read."""
    place = f"{diagnostic.span}: " if diagnostic.span else ""
    lines = [_printable(f"{place}error {diagnostic.code}: {diagnostic.message}")]
    excerpt = _excerpt(diagnostic, source_of) if diagnostic.span else None
    if excerpt is not None:
        lines += excerpt
    elif diagnostic.hint:
        lines.append(_printable(f"  {diagnostic.hint}"))
    return "\n".join(lines)


def _excerpt(diagnostic: Diagnostic, source_of: Callable[[str], str | None]) -> list[str] | None:
    span = diagnostic.span
    line = _line_of(span, source_of) if span else None
    if span is None or line is None or span.column > len(line) + 1:
        return None
    before, culprit, after = _window(line, span)
    number = f"{span.line:>5}"
    padding = "".join("\t" if ch == "\t" else " " * _width(ch) for ch in before)
    carets = "^" * max(1, sum(_width(ch) for ch in culprit))
    hint = _printable(f" {diagnostic.hint}") if diagnostic.hint else ""
    return [f"{number} | {before}{culprit}{after}", f"{' ' * len(number)} | {padding}{carets}{hint}"]


def _line_of(span: Span, source_of: Callable[[str], str | None]) -> str | None:
    text = source_of(span.file)
    if text is None:
        return None
    lines = LINE_BREAK.split(text)
    return lines[span.line - 1] if 1 <= span.line <= len(lines) else None


def _window(line: str, span: Span) -> tuple[str, str, str]:
    """The part of a line around the culprit that fits a terminal, control characters made visible."""
    start = span.column - 1
    end = min(start + max(1, span.length), len(line))
    if len(line) <= _WIDEST_EXCERPT:
        before, culprit, after = line[:start], line[start:end], line[end:]
    else:
        left = max(0, start - _CONTEXT_BEFORE)
        shown_end = min(end, left + _WIDEST_EXCERPT)
        before = ("… " if left else "") + line[left:start]
        culprit = line[start:shown_end]
        rest = line[shown_end : left + _WIDEST_EXCERPT]
        after = rest + (" …" if shown_end + len(rest) < len(line) else "")
    return _printable(before), _printable(culprit), _printable(after)


def _printable(text: str) -> str:
    return "".join(ch if ch == "\t" or ch.isprintable() else "�" for ch in text)


def _width(ch: str) -> int:
    """Terminal cells of a character, so that the caret stands under it."""
    if unicodedata.category(ch) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(ch) in {"W", "F"} else 1


_MOST_CANDIDATES = 2000
"""Comparing is quadratic in the length of the names; past this many a suggestion is not worth the wait."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that a user most likely meant, or None if none is near."""
    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    folded = name.casefold()
    if folded in by_folded:
        return by_folded[folded]
    if len(by_folded) > _MOST_CANDIDATES or len(name) > 100:
        return None
    matches = get_close_matches(folded, by_folded, n=1, cutoff=0.7)
    return by_folded[matches[0]] if matches else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A ready hint, or None if no candidate is near."""
    match = nearest(name, candidates)
    return f'did you mean "{match}"?' if match is not None else None
