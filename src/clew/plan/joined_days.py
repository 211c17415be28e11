"""Joins to bitemporal datasets as of a day that each row says, in place of the first day of the run's period.

The day becomes a part of the condition, over the rows of all days. So whatever reads conditions (Spark, explanations,
verification) knows it without further ado.
"""

from dataclasses import replace
from typing import TYPE_CHECKING

from clew.diagnostics import Problems
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.lang import Scope
from clew.lang.text_form import name_text
from clew.lang.typed import Apply, ColumnValue
from clew.lang.types import BOOLEAN, DATE
from clew.plan.datasets import DatasetUse
from clew.plan.expressions import Expressions
from clew.plan.steps import PlannedExpression

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import RuntimeJoin
    from clew.definitions.checks import CheckedJoin

_FROM, _TO = "_period_from", "_period_to"


def read_on(use: DatasetUse | None, join: "RuntimeJoin | CheckedJoin", problems: Problems) -> DatasetUse | None:
    """A joined dataset with the rows of all days, where the join says which day counts; None if it cannot."""
    if use is None or join.as_of is None:
        return use
    types = {column.name: column.type for column in use.columns}
    if use.temporal_mode != "bitemporal":
        problem = f'as_of is for bitemporal datasets, and the mode of "{use.dataset_id}" is {use.temporal_mode}'
        hint = "remove it, or write the condition under `on`"
    elif {types.get(_FROM), types.get(_TO)} != {DATE}:
        problem = f'as_of needs days, and {_FROM} or {_TO} of "{use.dataset_id}" is a text'
        hint = "declare both columns as date, or leave them out, since they are dates by default"
    else:
        key = use.natural_key if not use.natural_key or _FROM in use.natural_key else (*use.natural_key, _FROM)
        return replace(use, all_days=True, natural_key=key)
    problems.report(INVALID_VALUE.at(join.place_of_key("as_of"), problem=problem, hint=hint))
    return None


def on_day(
    condition: PlannedExpression | None, join: "RuntimeJoin | CheckedJoin", scope: Scope, expressions: Expressions
) -> PlannedExpression | None:
    """The condition of a join, and that the joined row is in force on the day that `as_of` gives.

    `scope` is what the day can be made of: the row, and what was joined before.
    """
    if join.as_of is None:
        return condition
    day = expressions.value(join.as_of, scope, "in as_of", DATE)
    if condition is None or day is None:
        return None
    alias = name_text(join.alias)
    begun, ended = (ColumnValue(join.alias, name, DATE) for name in (_FROM, _TO))
    written = day.text if day.text.replace(".", "").replace("_", "").isalnum() else f"({day.text})"
    text = f"({condition.text}) AND {alias}.{_FROM} <= {written} AND "
    text += f"({alias}.{_TO} IS NULL OR {written} < {alias}.{_TO})"
    is_open = Apply("OR", (Apply("ISNULL", (ended,), BOOLEAN), Apply("<", (day.tree, ended), BOOLEAN)), BOOLEAN)
    has_begun = Apply("<=", (begun, day.tree), BOOLEAN)
    return PlannedExpression(text, Apply("AND", (condition.tree, has_begun, is_open), BOOLEAN))
