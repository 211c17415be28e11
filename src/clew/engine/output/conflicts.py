"""Outputs that cannot be written to their destination, as users are told."""

from collections.abc import Iterator
from contextlib import contextmanager

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.diagnostics.file_system import OutOfReach, unavailable
from clew.plan.operations import OutputStep


def conflict(step: OutputStep, problem: str, hint: str | None = None) -> UserError:
    """The error that names a step and what keeps it from writing."""
    return UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint))


@contextmanager
def told_as_conflict(step: OutputStep, shown: str) -> Iterator[None]:
    """Blame the destination of a step for what the system says, and a store for what is wrong with that."""
    try:
        yield
    except OutOfReach as error:
        raise unavailable(error) from error
    except OSError as error:
        raise conflict(step, f"cannot write {shown}: {error.strerror or error}") from error
