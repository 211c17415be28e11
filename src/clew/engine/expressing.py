"""Expressions of a plan as SQL: over the working dataset, and over a dataset that is read by itself."""

from datetime import date

from clew.deferred import dataclass
from clew.engine.names import own_columns, working_columns
from clew.engine.sql import sql_of
from clew.lang.failing import can_fail
from clew.lang.typed import Expression
from clew.plan.steps import PlannedExpression
from clew.storage.parts import ORDINAL


@dataclass(frozen=True, slots=True)
class Expressing:
    """What turns expressions of a plan into SQL: the run, the working table's name, and what TODAY() means."""

    run_id: str
    table: str
    today: date

    def sql(self, tree: Expression) -> str:
        """The SQL of an expression over the working dataset and the joins of a step."""
        return sql_of(tree, working_columns(self.run_id, self.table), self.today)

    def selected(self, selector: PlannedExpression | None) -> str:
        """SQL that is TRUE for the rows that a step with this selector acts on and FALSE for all others."""
        if selector is None:
            return "NOT `_deleted`"
        return f"(NOT `_deleted` AND coalesce({self.sql(selector.tree)}, FALSE))"

    def filter(self, selector: PlannedExpression | None) -> str:
        """The same as a condition for `where`.

        Spark takes the parts of a condition to where each can be decided first. So where a selector can fail, it must
        not come apart, or it would fail on rows that were deleted because it fails on them.
        """
        if selector is None or not can_fail(selector.tree):
            return self.selected(selector)
        return f"CASE WHEN NOT `_deleted` THEN coalesce({self.sql(selector.tree)}, FALSE) ELSE {ORDINAL} < 0L END"

    def source_sql(self, tree: Expression) -> str:
        """The SQL of an expression over the rows of a dataset that is read by itself."""
        return sql_of(tree, own_columns, self.today)
