"""The states of runs and steps."""

from enum import StrEnum


class RunStatus(StrEnum):
    """Where a run stands."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"

    @property
    def is_terminal(self) -> bool:
        """Whether the run has ended. A failed run can still be reopened by RETRY_STEP or SKIP_STEP."""
        return self in {RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED}

    @property
    def is_startable(self) -> bool:
        """Whether the run waits for its first worker."""
        return self in {RunStatus.PENDING, RunStatus.APPROVED}

    @property
    def is_under_way(self) -> bool:
        """Whether the run has started and not ended, so that no other run may touch its project and period."""
        return self in {RunStatus.RUNNING, RunStatus.PAUSED}


class StepStatus(StrEnum):
    """Where a step of a run stands."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCESS = "SUCCESS"
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"

    @property
    def is_terminal(self) -> bool:
        """Whether the step has an outcome."""
        return self in {StepStatus.SUCCESS, StepStatus.FAILED, StepStatus.SKIPPED}

    @property
    def is_done(self) -> bool:
        """Whether the run may go past the step."""
        return self in {StepStatus.SUCCESS, StepStatus.SKIPPED}
