"""What is wrong, as data: code, parameters, place and hint."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clew.diagnostics.span import Span


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
