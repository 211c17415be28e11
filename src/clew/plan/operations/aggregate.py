"""Aggregate: adds one summary row for each group of the rows that its selector matches."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from clew.deferred import dataclass
from clew.lang import Scope
from clew.lang.typed import ColumnValue, Expression
from clew.lang.types import NULL, Type
from clew.plan import words
from clew.plan.columns import Column
from clew.plan.datasets import DatasetUse
from clew.plan.expressions import types_of
from clew.plan.lineage import LineageState, Origins
from clew.plan.operations.context import UNGROUPABLE, Context, PlannedOperation, PlanningState, grouping_columns, reads
from clew.plan.steps import Assignment, CreatingStepBase, Detail, PlannedExpression, Read

if TYPE_CHECKING:  # a plan that was kept is read without what users write
    from clew.definitions import Aggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateStep(CreatingStepBase):
    """Adds one summary row for each group of the rows that the selector matches."""

    type: Literal["aggregate"] = "aggregate"
    group_by: tuple[str, ...]
    aggregations: tuple[Assignment, ...]
    group_condition: PlannedExpression | None = None
    """Which groups get a summary row; None for all."""

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Aggregating, and choosing among groups."""
        return ("cap.clew.aggregate.v1", *(("cap.clew.aggregate_having.v1",) if self.group_condition else ()))

    @property
    def summary(self) -> str:
        """What it calculates, and by which keys."""
        by = f" by {', '.join(self.group_by)}" if self.group_by else ""
        having = f" having {self.group_condition.text}" if self.group_condition else ""
        return f"{', '.join(each.column for each in self.aggregations)}{by}{having}"

    def details(self) -> Iterator[Detail]:
        """Its rows, its groups and its aggregations."""
        yield words.selected(self.selector)
        yield words.groups(self.group_by)
        if self.group_condition is not None:
            yield Detail("having", (self.group_condition.text,))
        yield from words.assigned(self.aggregations)

    def lineage_after(self, state: LineageState) -> LineageState:
        """Values come from what the aggregations read; selector, keys and deletions decide."""
        values = {each.column: each.value for each in self.aggregations}
        return _lineage_after(state, (self.selector, self.group_condition), self.group_by, values)

    @property
    def columns_set(self) -> tuple[str, ...]:
        """The keys and the aggregations."""
        return (*self.group_by, *(each.column for each in self.aggregations))

    @property
    def columns_calculated(self) -> tuple[str, ...]:
        """The aggregations."""
        return tuple(each.column for each in self.aggregations)

    @property
    def columns_named(self) -> tuple[str, ...]:
        """The keys."""
        return self.group_by

    @property
    def row_names(self) -> tuple[tuple[str, ...], ...]:
        """A summary is named by the keys of its group."""
        return (self.group_by,)

    @property
    def made_from(self) -> DatasetUse | None:
        """The working dataset."""
        return None

    @property
    def condition(self) -> PlannedExpression | None:
        """The selector."""
        return self.selector

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that it groups by."""
        return self.group_by

    @property
    def filled(self) -> tuple[Assignment, ...]:
        """The aggregations."""
        return self.aggregations

    @property
    def having(self) -> PlannedExpression | None:
        """The condition on groups."""
        return self.group_condition

    def key_values(self, table: str, types: Mapping[str, Type]) -> dict[str, Expression]:
        """Keys are columns of the working dataset, as they are."""
        return {name: ColumnValue(table, name, types[name]) for name in self.group_by}


def plan_aggregate(context: Context, operation: "Aggregate") -> PlannedOperation[AggregateStep]:
    """The step of an aggregate."""
    arguments = operation.arguments
    scope = context.scope()
    selector = context.expressions.selector(operation.selector, scope) if operation.selector else None
    group_by = grouping_columns(arguments.group_by, scope, context.problems, UNGROUPABLE)
    has_all_keys = len(group_by) == len(arguments.group_by)
    usable = frozenset(group_by if has_all_keys else context.state.schema.types)
    values = _values(context, operation, scope, group_by, usable)
    having = context.expressions.group_condition(arguments.having, scope, usable) if arguments.having else None
    state = _state_after(context, (selector, having), group_by, values)
    is_wrong = (operation.selector and not selector) or (arguments.having and not having)
    if is_wrong or None in values.values() or not has_all_keys:
        return PlannedOperation(None, state)
    step = AggregateStep(
        **context.identity(operation),
        selector=selector,
        reads=(
            *(Read(context.state.table, name, "group key") for name in group_by),
            *reads(
                [
                    ("selector", selector),
                    *((f"aggregation {column}", value) for column, value in values.items()),
                    ("having", having),
                ]
            ),
        ),
        adds=context.added(state),
        group_by=group_by,
        aggregations=tuple(
            Assignment(column, value, adds_column=column not in context.state.schema.types)
            for column, value in values.items()
            if value is not None
        ),
        group_condition=having,
    )
    return PlannedOperation(step, state)


def _values(
    context: Context, operation: "Aggregate", scope: Scope, group_by: tuple[str, ...], usable: frozenset[str]
) -> dict[str, PlannedExpression | None]:
    values = dict[str, PlannedExpression | None]()
    for aggregation in operation.arguments.aggregations:
        column, span = context.own_name(aggregation.column), aggregation.place("column")
        can_be_set = context.can_be_set(column, span, (*group_by, *values))
        target = context.state.schema.types.get(column) if can_be_set else NULL
        value = context.expressions.aggregation(aggregation.expression, scope, usable, target)
        values[column] = value if can_be_set else None
    return values


def _state_after(
    context: Context,
    conditions: tuple[PlannedExpression | None, ...],
    group_by: tuple[str, ...],
    values: Mapping[str, PlannedExpression | None],
) -> PlanningState:
    right = {name: value for name, value in values.items() if value}
    added = (Column(name, type_) for name, type_ in types_of(values).items())
    return context.state.changed(added, _lineage_after(context.state.lineage, conditions, group_by, right))


def _lineage_after(
    state: LineageState,
    conditions: tuple[PlannedExpression | None, ...],
    group_by: tuple[str, ...],
    values: Mapping[str, PlannedExpression],
) -> LineageState:
    influence = state.deletions
    for condition in conditions:
        influence |= state.selected_by(condition.tree if condition else None)
    for name in group_by:
        influence |= state.working.get(name, Origins()).as_influence()
    return state.changed({name: state.of([value.tree]) | influence for name, value in values.items()})
