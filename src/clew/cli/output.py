"""Standard output, where commands write their result."""

import io
import json
import os
import shutil
import sys
from pathlib import Path

from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import UNWRITABLE_OUTPUT


def write(text: str) -> None:
    """Write part of the result and flush it, so that a full disk or closed pipe is noticed here and not at exit."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
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
    try:
        path.write_text(text, encoding="utf-8")
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
