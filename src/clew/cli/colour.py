"""Colours for terminals; all other output is plain text."""

import os
import sys
from collections.abc import Callable
from typing import TextIO

import click

from clew.diagnostics import Diagnostic, render


def has_colours(stream: TextIO) -> bool:
    """Whether to colour the output on a stream. Honours NO_COLOR and FORCE_COLOR."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def error_text(diagnostic: Diagnostic, source_of: Callable[[str], str | None], stream: TextIO) -> str:
    """A diagnostic as text for a stream."""
    text = render(diagnostic, source_of)
    if not has_colours(stream):
        return text
    headline, *rest = text.split("\n")
    place, error, message = headline.partition(f"error {diagnostic.code}: ")
    lines = [click.style(place, bold=True) + click.style(error, fg="red", bold=True) + message]
    if len(rest) == 2:
        excerpt, caret = rest
        gutter, bar, pointer = caret.partition("| ")
        number, _, line = excerpt.partition(" | ")
        lines.append(click.style(f"{number} |", fg="bright_black") + f" {line}")
        lines.append(click.style(gutter + bar, fg="bright_black") + click.style(pointer, fg="yellow"))
    else:
        lines += [click.style(hint, fg="yellow") for hint in rest]
    return "\n".join(lines)


def good(text: str) -> str:
    """A word for success, in green."""
    return click.style(text, fg="green", bold=True) if has_colours(sys.stdout) else text


def bad(text: str) -> str:
    """A word for failure, in red."""
    return click.style(text, fg="red", bold=True) if has_colours(sys.stdout) else text
