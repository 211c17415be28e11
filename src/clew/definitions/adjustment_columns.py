"""The columns of adjustments, and what is said in them."""

from collections.abc import Mapping

ADJUSTMENT, ACTION, REASON, MADE_BY, APPROVED_BY = "adjustment", "action", "reason", "made_by", "approved_by"

ABOUT: Mapping[str, str] = {
    ADJUSTMENT: "what the adjustment is called",
    ACTION: "change or add",
    REASON: "why",
    MADE_BY: "who made it",
    APPROVED_BY: "who approved it",
}
"""The columns that every dataset of adjustments has, all of them texts."""

CHANGE, ADD = "change", "add"
"""What an adjustment does: it changes the row with its key, or adds a row."""

OLD = "old_"
"""What stands before the name of a column for the value that it must have before it is changed."""

ADJUSTED_BY = "adjusted_by"
"""The column of the working dataset that names the adjustment of a row."""
