"""What a question may cost: its deadline, its memory, and how it is stopped from outside."""

from clew.budgets.budget import (
    Budget,
    QuestionLimits,
    QuestionStopped,
    asking,
    begin_row,
    budgeted,
    check,
    current,
    hold,
    holding,
    under,
)
from clew.budgets.interrupting import interruptibly

__all__ = [
    "Budget",
    "QuestionLimits",
    "QuestionStopped",
    "asking",
    "begin_row",
    "budgeted",
    "check",
    "current",
    "hold",
    "holding",
    "interruptibly",
    "under",
]
