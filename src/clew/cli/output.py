"""What commands write: text and JSON on standard output, coloured on terminals, and files that users asked for."""

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import TextIO

import click

from clew.diagnostics import Diagnostic, UserError, render
from clew.diagnostics.codes.commands import UNWRITABLE_OUTPUT

_GOES_ON_UNREAD = Event()


@contextmanager
def going_on_unread() -> Iterator[None]:
    """Within this block a reader that goes away, as `head` does, ends the output but not what the command is doing."""
    _GOES_ON_UNREAD.set()
    try:
        yield
    finally:
        _GOES_ON_UNREAD.clear()


def write(text: str) -> None:
    """Write part of the result and flush it, so that a full disk or closed pipe is noticed here and not at exit."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        if not _GOES_ON_UNREAD.is_set():
            raise
        abandon()
    except OSError as error:
        raise UserError(UNWRITABLE_OUTPUT.anywhere(reason=error.strerror or error)) from error


def say(line: str = "") -> None:
    """Write a line of the result."""
    write(line + "\n")


def write_json(document: object) -> None:
    """Write the JSON document of a command with `--json`."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    write(json.dumps(document, indent=2, ensure_ascii=not is_utf8) + "\n")


def write_file(path: Path, text: str) -> None:
    """Write a file that the user requested."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file that the user requested, as a whole or not at all where that can be known."""
    try:
        path.write_bytes(content)
    except OSError as error:
        reason = f"{path}: {error.strerror or error}"
        raise UserError(UNWRITABLE_OUTPUT.anywhere(reason=reason, hint="name another file")) from error


def terminal_width() -> int | None:
    """The width of the terminal; None if the output is not a terminal and lines may have any length."""
    is_measured = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if is_measured else None


def tolerate_any_text() -> None:
    """Print characters that the terminal cannot show as escape codes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def abandon() -> None:
    """Discard unwritten output, so that Python does not try to flush it again at exit and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
