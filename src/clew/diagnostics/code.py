"""One kind of thing that can be wrong: its stable name, its wording and what to do about it."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from clew.diagnostics.diagnostic import Diagnostic
from clew.diagnostics.span import Span

_LONGEST_IN_MESSAGE = 500
"""Characters of one parameter that a message shows; names in a broken file can be megabytes long."""


class Nature(StrEnum):
    """What a code says about the request, which decides the exit code of a command and the status of a response."""

    WRONG = "wrong"
    """The thing itself is wrong or failed."""
    USAGE = "usage"
    """The command or the request was put wrongly."""
    NOT_FOUND = "not found"
    """What was asked for does not exist."""


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
