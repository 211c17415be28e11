"""The error tree. Everything that Clew raises on purpose is a `ClewError`."""

from collections.abc import Iterable

from clew.diagnostics.diagnostic import Diagnostic, in_order


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
    """What the user gave is wrong, or what they asked for is not there. Trying again does not help."""


class TransientFailure(ClewError):
    """The surroundings failed (a database that went away, a lost connection). Trying again may help."""


class EngineBug(ClewError):
    """Clew itself is wrong: a promise between its parts was broken."""


def raise_if_any(diagnostics: Iterable[Diagnostic]) -> None:
    """Raise one `UserError` with all of them, in order, or return if there are none."""
    found = in_order(diagnostics)
    if found:
        raise UserError(*found)
