"""What is wrong, as data: places, codes, diagnostics, and the error tree that carries them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from clew.deferred import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A run of characters in one line of one file.

    `file` is the path relative to the workspace, with forward slashes, so that a message is the same on every
    machine. Lines and columns count from 1, columns in characters.
    """

    file: str
    line: int
    column: int
    length: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line wherever Clew counts lines: the breaks of YAML, so that its parser and we agree on every number."""


class Text(Protocol):
    """A piece of text from somewhere. Offsets count characters of `value`."""

    @property
    def value(self) -> str:
        """The text as its reader sees it, with the quoting of the file undone."""
        ...

    def span(self, start: int, end: int) -> Span:
        """The place in the file of `value[start:end]`."""
        ...


@dataclass(frozen=True, slots=True)
class PlainText:
    """Text that was not read from a file: typed on the command line or passed to a function."""

    value: str
    name: str = "<expression>"

    def span(self, start: int, end: int) -> Span:
        """The place within the text itself."""
        breaks = [match.end() for match in LINE_BREAK.finditer(self.value, 0, start)]
        line_start = breaks[-1] if breaks else 0
        return Span(self.name, len(breaks) + 1, start - line_start + 1, max(1, end - start))


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing that is wrong. Made by `Code.at`, printed by `render`, sent by `to_json`."""

    code: str
    message: str
    params: Mapping[str, object] = field(default_factory=dict, hash=False)
    span: Span | None = None
    hint: str | None = None

    def to_json(self) -> dict[str, object]:
        """The form that `--json` and the HTTP API give."""
        return {
            "code": self.code,
            "message": self.message,
            "file": self.span.file if self.span else None,
            "line": self.span.line if self.span else None,
            "column": self.span.column if self.span else None,
            "hint": self.hint,
        }


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted as a reader meets them, without repetitions: files by name, then lines; placeless ones first."""

    def key(diagnostic: Diagnostic) -> tuple[str, int, int, str, str]:
        span = diagnostic.span
        place = (span.file, span.line, span.column) if span else ("", 0, 0)
        return (*place, diagnostic.code, diagnostic.message)

    return tuple({key(d): d for d in sorted(diagnostics, key=key)}.values())


_LONGEST_IN_MESSAGE = 500
"""Characters of one parameter that a message shows; names in a broken file can be megabytes long."""


class Nature(StrEnum):
    """What a code says about the request, which decides the exit code of a command and the status of a response."""

    WRONG = "wrong"
    """The thing itself is wrong or failed."""
    USAGE = "usage"
    """The command or the request is invalid."""
    NOT_FOUND = "not found"
    """What was requested does not exist."""


@dataclass(frozen=True, slots=True)
class Code:
    """An entry of the catalogue. `name` is stable: tools match on it."""

    name: str
    message: str
    """A `str.format` template over the parameters of the diagnostic."""
    meaning: str
    """When this is reported, for the reference page."""
    remedy: str
    """What to do about it; shown as the hint where the place itself offers none."""
    nature: Nature = Nature.WRONG

    def at(self, span: Span | None, *, hint: str | None = None, **params: object) -> Diagnostic:
        """Report this at a place."""
        return Diagnostic(
            code=self.name,
            message=self.message.format(**_shortened(params)),
            params=params,
            span=span,
            hint=hint if hint is not None else self.remedy,
        )

    def anywhere(self, *, hint: str | None = None, **params: object) -> Diagnostic:
        """Report this where no file is to blame."""
        return self.at(None, hint=hint, **params)


def _shortened(params: Mapping[str, object]) -> dict[str, object]:
    return {name: _cut(value) if isinstance(value, str) else value for name, value in params.items()}


def _cut(value: str) -> str:
    return value if len(value) <= _LONGEST_IN_MESSAGE else value[:_LONGEST_IN_MESSAGE] + "…"


class ClewError(Exception):
    """Root of all errors that Clew raises. Carries diagnostics, at least one."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        if not diagnostics:
            raise ValueError("an error needs a diagnostic")
        self.diagnostics = diagnostics
        super().__init__("; ".join(f"{d.code}: {d.message}" for d in diagnostics[:3]))

    @property
    def diagnostic(self) -> Diagnostic:
        """The first and usually only diagnostic."""
        return self.diagnostics[0]

    @property
    def code(self) -> str:
        """The code of the first diagnostic."""
        return self.diagnostics[0].code

    def to_json(self) -> dict[str, object]:
        """The error as every command and every route reports it."""
        body = self.diagnostic.to_json()
        if len(self.diagnostics) > 1:
            body["diagnostics"] = [d.to_json() for d in self.diagnostics]
        return {"error": body}


class UserError(ClewError):
    """The user's input is wrong, or what they requested does not exist. A retry does not help."""


class TransientFailure(ClewError):
    """Something outside Clew failed (an unavailable database, a lost connection). A retry may help."""


class EngineBug(ClewError):
    """Clew itself is wrong: a promise between its parts was broken."""


def raise_if_any(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise one `UserError` with all of them, in order, or return if there are none."""
    found = in_order(diagnostics)
    if found:
        raise UserError(*found)


class Problems:
    """Diagnostics that the passes of the compiler add to, so that one compilation reports everything at once."""

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def report(self, *diagnostics: Diagnostic) -> None:
        """Add what was found."""
        self._found.extend(diagnostics)

    def __bool__(self) -> bool:
        return bool(self._found)

    def in_order(self) -> tuple[Diagnostic, ...]:
        """Everything found, as a reader of the files meets it."""
        return in_order(self._found)
