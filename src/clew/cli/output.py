"""Standard output: where the answer of a command goes."""

import io
import json
import os
import shutil
import sys
from pathlib import Path

from clew.diagnostics import UserError
from clew.diagnostics.codes.commands import UNWRITABLE_OUTPUT


def write(text: str) -> None:
    """Write a part of the answer at once, so that a place which takes no more is noticed here and not at the exit."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(UNWRITABLE_OUTPUT.anywhere(reason=error.strerror or error)) from error


def say(line: str = "") -> None:
    """Write a line of the answer."""
    write(line + "\n")


def write_json(document: object) -> None:
    """Write the one document that a command with `--json` gives."""
    is_utf8 = (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"
    write(json.dumps(document, indent=2, ensure_ascii=not is_utf8) + "\n")


def write_file(path: Path, text: str) -> None:
    """Write a file that a command was asked for."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{path}: {error.strerror or error}"
        raise UserError(UNWRITABLE_OUTPUT.anywhere(reason=reason, hint="name another file")) from error


def terminal_width() -> int | None:
    """How many columns the terminal has; None where the output is none, and lines may be as long as they are."""
    is_measured = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if is_measured else None


def tolerate_any_text() -> None:
    """Let characters that the terminal cannot show appear as their code instead of stopping the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def abandon() -> None:
    """Let what could not be written go, so that Python does not try again and complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
