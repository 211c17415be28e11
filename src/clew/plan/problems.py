"""What the passes of the compiler find wrong, collected."""

from clew.diagnostics import Diagnostic, in_order


class Problems:
    """A list that passes add to, so that one compilation reports everything at once."""

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
