"""Why a step or a run failed, as its history keeps it."""

from dataclasses import dataclass
from enum import StrEnum

from clew.diagnostics import ClewError, EngineBug, TransientFailure, UserError


class FailureCategory(StrEnum):
    """Who has to act."""

    USER = "USER"
    """The project or its data is wrong."""
    TRANSIENT = "TRANSIENT"
    """The surroundings failed; trying again may help."""
    ENGINE = "ENGINE"
    """Clew itself is wrong."""
    CANCELLED = "CANCELLED"
    """Somebody asked for it."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure in a form that fits a history: a code, a sentence, whether another attempt may help."""

    code: str
    message: str
    category: FailureCategory
    retryable: bool = False
    hint: str | None = None
    """What to do about it, where more is known than the code says; histories of older versions have none."""


_LONGEST_MESSAGE = 4000
"""History keeps the sentence, not the log: anything longer belongs into an artifact."""


def failure_of(error: ClewError) -> Failure:
    """The failure that an error of ours stands for."""
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
    """The failure that any other exception stands for: something in the engine broke its promise."""
    text = f"{type(error).__name__}: {error}"
    return Failure(code="EngineFailure", message=text[:_LONGEST_MESSAGE], category=FailureCategory.ENGINE)
