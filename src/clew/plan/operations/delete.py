"""Delete: marks rows as deleted: all that its selector matches, or all but one of those with the same keys.

Later steps do not see them.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from clew.deferred import dataclass
from clew.lang.typed import ColumnValue, Expression
from clew.lang.types import NULL
from clew.plan import words
from clew.plan.keeping import Keeping
from clew.plan.lineage import LineageState
from clew.plan.operations.context import UNGROUPABLE, Context, PlannedOperation, grouping_columns, reads, sort_keys
from clew.plan.steps import ChangingStepBase, Detail, Read

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import Delete


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStep(ChangingStepBase):
    """Marks the rows that the selector matches as deleted."""

    type: Literal["delete"] = "delete"
    keeping: Keeping | None = None
    """Which of them stay; None where all are deleted."""
    reason: str | None = None
    """Why rows are deleted, where a check quarantines them."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Deleting, and telling which row stays."""
        return ("cap.clew.delete.v1", *(("cap.clew.delete_duplicates.v1",) if self.keeping else ()))

    @property
    def summary(self) -> str:
        """Which rows it deletes, and why where it says so."""
        if self.reason is not None:
            return self.reason
        rows = self.selector.text if self.selector else "every row"
        if self.keeping is None:
            return rows
        return f"{rows}, all but the {self.keeping.which} by {words.enumerated(self.keeping.keys)}"

    def details(self) -> Iterator[Detail]:
        """Its rows, and which of them stay."""
        yield words.selected(self.selector)
        if self.keeping is not None:
            yield Detail("keeps", (self.keeping.text,))
        if self.reason is not None:
            yield Detail("reason", (self.reason,))

    def lineage_after(self, state: LineageState) -> LineageState:
        """The selector decides which rows remain, and so do the columns by which one of several stays."""
        deciding = [self.selector.tree] if self.selector else []
        return _deleting(state, deciding, self.keeping)

    @property
    def traced_as(self) -> Literal["update", "delete"]:
        """A deletion."""
        return "delete"

    @property
    def columns_named(self) -> tuple[str, ...]:
        """The columns by which one of several rows stays."""
        return self.keeping.columns if self.keeping is not None else ()

    @property
    def is_wide(self) -> bool:
        """Whether one of several rows stays."""
        return self.keeping is not None

    @property
    def keeps(self) -> Keeping | None:
        """Which of the selected rows stay."""
        return self.keeping


def plan_delete(context: Context, operation: "Delete") -> PlannedOperation[DeleteStep]:
    """The step of a delete. Without a selector it is for every row."""
    scope, arguments = context.scope(), operation.arguments
    selector = context.expressions.selector(operation.selector, scope) if operation.selector else None
    keys = grouping_columns(arguments.same, scope, context.problems, UNGROUPABLE)
    order = sort_keys(arguments.order, scope, context.problems)
    is_complete = len(keys) == len(arguments.same) and len(order) == len(arguments.order)
    if (operation.selector and selector is None) or not is_complete:
        return PlannedOperation(None, context.state)
    keeping = None if arguments.keep is None else Keeping(arguments.keep.value, keys, order)
    table = context.state.table
    step = DeleteStep(
        **context.identity(operation),
        selector=selector,
        reads=(
            *(Read(table, name, "key of the row that stays") for name in keys),
            *(Read(table, key.column, "order of the row that stays") for key in order),
            *reads([("selector", selector)]),
        ),
        adds=(),
        keeping=keeping,
    )
    return PlannedOperation(step, context.state.changed((), step.lineage_after(context.state.lineage)))


def _deleting(state: LineageState, deciding: list[Expression], keeping: Keeping | None) -> LineageState:
    columns = keeping.columns if keeping is not None else ()
    table = state.working_table
    return state.deleting([*deciding, *(ColumnValue(table, name, NULL) for name in columns)])
