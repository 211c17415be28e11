"""Questions that a server answers for others: each has a budget from its arrival on, and can be stopped."""

from contextlib import AbstractContextManager

from clew.budgets import Allowance, QuestionLimits, under
from clew.diagnostics import ClewError


class Question:
    """One question. What is asked of the workspace in its block belongs to it and has its budget."""

    def __init__(self, limits: QuestionLimits) -> None:
        self._budget = Allowance(limits)

    @property
    def seconds_left(self) -> float:
        """How long it may still take."""
        return self._budget.seconds_left

    def stop(self, error: ClewError) -> None:
        """Stop it at its next step. Whoever asked gets this error. May be called from any thread."""
        self._budget.stop(error)

    def answering(self) -> AbstractContextManager[object]:
        """The block that answers it. Raises the error that stopped it."""
        return under(self._budget)
