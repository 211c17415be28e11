"""Delete: marks the rows that its selector matches as deleted. Later steps do not see them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from clew.plan import words
from clew.plan.lineage import LineageState
from clew.plan.operations.context import Context, PlannedOperation, reads
from clew.plan.steps import ChangingStepBase, Detail

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStep(ChangingStepBase):
    """Marks the rows that the selector matches as deleted."""

    type: Literal["delete"] = "delete"

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Deleting."""
        return ("cap.clew.delete.v1",)

    @property
    def summary(self) -> str:
        """Which rows it deletes."""
        return self.selector.text if self.selector else "every row"

    def details(self) -> Iterator[Detail]:
        """Its rows."""
        yield words.selected(self.selector)

    def lineage_after(self, state: LineageState) -> LineageState:
        """The selector decides which rows remain."""
        return state.deleting([self.selector.tree] if self.selector else [])

    @property
    def traced_as(self) -> Literal["update", "delete"]:
        """A deletion."""
        return "delete"


def plan_delete(context: Context, operation: "Delete") -> PlannedOperation[DeleteStep]:
    """The step of a delete. Without a selector it deletes every row."""
    selector = context.expressions.selector(operation.selector, context.scope()) if operation.selector else None
    if operation.selector and selector is None:
        return PlannedOperation(None, context.state)
    step = DeleteStep(
        **context.identity(operation),
        selector=selector,
        reads=reads([("selector", selector)]),
        adds=(),
    )
    return PlannedOperation(step, context.state.changed((), step.lineage_after(context.state.lineage)))
