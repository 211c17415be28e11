"""What a question may cost: its deadline, its memory, and how it is stopped from outside."""

from clew.budgets.allowance import (
    Allowance,
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
from clew.budgets.interrupting import interruptibly, watched

__all__ = [
    "Allowance",
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
    "watched",
]
