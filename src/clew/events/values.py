"""The values that events carry: references to artifacts and plans, cursors, failures."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum

from clew.deferred import dataclass
from clew.diagnostics import ClewError, EngineBug, TransientFailure, UserError
from clew.diagnostics.file_system import file_system_failed

LOAD_STEP = "load"
"""The step that pins everything that a run reads. The others have the seq of their operation as their id."""


@dataclass(frozen=True, slots=True)
class ArtifactRef:
    """Where an artifact is, what it is, and how to verify that it is unchanged."""

    uri: str
    kind: str
    sha256: str | None = None
    size_bytes: int | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class PlanRef:
    """A plan by name. `plan_version` goes into every idempotency key."""

    plan_id: str
    plan_version: str
    digest: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as the run knows it: an id that never changes, the number and the name that users gave it."""

    step_id: str
    seq: int
    name: str
    type: str = ""


Range = tuple[int, int]
"""First and last position, both included."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Positions (from 0, in the order of the plan) of the steps that succeeded and that were skipped."""

    succeeded: tuple[Range, ...] = ()
    skipped: tuple[Range, ...] = ()

    def __contains__(self, position: int) -> bool:
        return any(first <= position <= last for first, last in (*self.succeeded, *self.skipped))


def ranges_of(positions: Iterable[int]) -> tuple[Range, ...]:
    """The shortest list of ranges that covers exactly these positions."""
    ranges: list[Range] = []
    for position in sorted(set(positions)):
        if ranges and ranges[-1][1] == position - 1:
            ranges[-1] = (ranges[-1][0], position)
        else:
            ranges.append((position, position))
    return tuple(ranges)


def positions_of(ranges: Iterable[Range]) -> set[int]:
    """All positions that the ranges cover."""
    return {position for first, last in ranges for position in range(first, last + 1)}


class FailureCategory(StrEnum):
    """Who has to act."""

    USER = "USER"
    """The project or its data is wrong."""
    TRANSIENT = "TRANSIENT"
    """A transient failure: a retry may help."""
    ENGINE = "ENGINE"
    """Clew itself is wrong."""
    CANCELLED = "CANCELLED"
    """A user asked for it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in a form that fits a history: a code, a sentence, whether another attempt may help."""

    code: str
    message: str
    category: FailureCategory
    retryable: bool = False
    hint: str | None = None
    """What to do about it, where more is known than the code says; histories of older versions have none."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a check found in a run: how many rows, never which values."""

    name: str
    kind: str
    severity: str
    at: int
    """It looked at the rows after this step; 0 is loading."""
    passed: bool
    failed_rows: int | None = None
    """How many rows fail; None where it is about all rows together."""
    checked_rows: int | None = None
    """How many rows were looked at; None where that was not counted."""
    message: str = ""
    """What is wrong, without values of columns that are personal or secret."""
    example: str | None = None
    """The id of the first row that fails, where no protected column decides it."""

    @property
    def stops(self) -> bool:
        """Whether the run must not publish what comes after it."""
        return not self.passed and self.severity == "fail"


@dataclass(frozen=True, slots=True)
class Reuse:
    """What a step of a rerun took over from the run that it repeats."""

    run_id: str | None = None
    """The run whose files it names; None where everything was computed."""
    reason: str | None = None
    """Why all of it, or some of it, was computed; None where everything was taken over."""


_LONGEST_MESSAGE = 4000
"""History keeps the sentence, not the log: anything longer belongs into an artifact."""


def failure_of(error: ClewError) -> Failure:
    """The failure that one of Clew's errors represents."""
    match error:
        case TransientFailure():
            category = FailureCategory.TRANSIENT
        case UserError():
            category = FailureCategory.USER
        case EngineBug():
            category = FailureCategory.ENGINE
        case _:
            category = FailureCategory.ENGINE
    return Failure(
        code=error.code,
        message=error.diagnostic.message[:_LONGEST_MESSAGE],
        category=category,
        retryable=isinstance(error, TransientFailure),
        hint=error.diagnostic.hint[:_LONGEST_MESSAGE] if error.diagnostic.hint else None,
    )


def failure_of_unknown(error: BaseException) -> Failure:
    """The failure that any other exception represents: the machine's where it says so, else a bug in the engine."""
    refused = file_system_failed(error)
    if refused is not None:
        return failure_of(refused)
    text = f"{type(error).__name__}: {error}"
    return Failure(code="EngineFailure", message=text[:_LONGEST_MESSAGE], category=FailureCategory.ENGINE)
