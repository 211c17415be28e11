"""What `clew doctor` found, about one thing after the other."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from clew.deferred import dataclass
from clew.diagnostics import ClewError


class Health(StrEnum):
    """How well something is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"
    """It does not matter here, or cannot be looked at before something else is well."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something that was looked at."""

    subject: str
    health: Health
    found: str
    remedy: str | None = None
    code: str | None = None
    """The code of the error that a run would end with."""

    def to_json(self) -> dict[str, str | None]:
        """As JSON."""
        return {
            "subject": self.subject,
            "health": self.health.value,
            "found": self.found,
            "remedy": self.remedy,
            "code": self.code,
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything that was looked at, in order."""

    workspace: str | None
    """None outside of a workspace."""
    environment: str | None
    findings: Sequence[Symptom]

    @property
    def is_well(self) -> bool:
        """Whether nothing has failed."""
        return not any(finding.health is Health.FAILED for finding in self.findings)

    def to_json(self) -> dict[str, object]:
        """As JSON."""
        return {
            "workspace": self.workspace,
            "environment": self.environment,
            "is_well": self.is_well,
            "findings": [finding.to_json() for finding in self.findings],
        }


def ok(subject: str, found: str) -> Symptom:
    """Something is as it should be."""
    return Symptom(subject, Health.OK, found)


def warning(subject: str, found: str, remedy: str) -> Symptom:
    """Something works, or may work, and should be looked at."""
    return Symptom(subject, Health.WARNING, found, remedy)


def failed(subject: str, found: str, remedy: str) -> Symptom:
    """Something will not work."""
    return Symptom(subject, Health.FAILED, found, remedy)


def skipped(subject: str, found: str) -> Symptom:
    """Something was not looked at."""
    return Symptom(subject, Health.SKIPPED, found)


def failures(subject: str, error: ClewError) -> Iterator[Symptom]:
    """What a run would end with."""
    for diagnostic in error.diagnostics:
        place = f"{diagnostic.span}: " if diagnostic.span is not None else ""
        yield Symptom(subject, Health.FAILED, f"{place}{diagnostic.message}", diagnostic.hint, diagnostic.code)
