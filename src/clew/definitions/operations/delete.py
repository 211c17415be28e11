"""What users write for a delete."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Literal

from clew.definitions.expression_text import ExpressionText
from clew.definitions.operations.base import OperationBase
from clew.definitions.shapes import EXPRESSION, Choice, ConstantShape, ListOf, Located, Record, key, record
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE


class Keep(StrEnum):
    """Which of several rows with the same keys stays."""

    FIRST = "first"
    LAST = "last"


@record("the arguments of a delete")
class DeleteArguments(Located):
    """Which of the selected rows stay; without arguments none does."""

    keep: Keep | None = key(
        Choice(Keep), "Of the selected rows with the same keys, the first or the last in the order stays.", default=None
    )
    same: tuple[ExpressionText, ...] = key(
        ListOf(EXPRESSION, "columns"), "For keep: the columns in which rows are the same.", named="keys", default=()
    )
    order: tuple[ExpressionText, ...] = key(
        ListOf(EXPRESSION, "columns"),
        "For keep: the columns that put rows in order, each with desc behind it where it runs down; by default rows"
        " stand as they were loaded.",
        default=(),
    )

    def check(self) -> Iterator[Diagnostic]:
        """Keys belong to keep, and keep needs them."""
        if self.keep is not None and not self.same:
            hint = "list the columns in which rows are the same, such as keys: [claim_id]"
            yield INVALID_VALUE.at(self.place("keep"), problem="keep needs keys", hint=hint)
        for name, given in (("keys", self.same), ("order", self.order)):
            if self.keep is None and given:
                problem = f"{name} is for keep only"
                yield INVALID_VALUE.at(self.place_of_key(name), problem=problem, hint="add keep: first or keep: last")


@record("a delete operation")
class Delete(OperationBase):
    """Marks the selected rows as deleted, or all but one of those with the same keys."""

    type: Literal["delete"] = key(ConstantShape("delete"), "Marks the selected rows as deleted.")
    arguments: DeleteArguments = key(
        Record(DeleteArguments), "Which of the selected rows stay; by default none.", default_factory=DeleteArguments
    )
