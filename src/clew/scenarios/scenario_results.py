"""How scenarios went."""

from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics import Diagnostic
from clew.scenarios.matching import Mismatch

ScenarioStatus = Literal["pass", "fail", "error"]


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """How a scenario went: pass, fail with mismatches, or an error that it did not expect."""

    name: str
    file: str
    status: ScenarioStatus
    seconds: float
    mismatches: tuple[Mismatch, ...] = ()
    error: Diagnostic | None = None
    quick: str | None = None
    """Whether quick does the same: "same", "differs", or why it cannot tell. None where that was not asked."""

    def to_json(self) -> dict[str, object]:
        """The form of `test --json`."""
        return {
            "name": self.name,
            "file": self.file,
            "status": self.status,
            "seconds": round(self.seconds, 3),
            "mismatches": [mismatch.to_json() for mismatch in self.mismatches],
            "error": self.error.to_json() if self.error else None,
            **({} if self.quick is None else {"quick": self.quick}),
        }
