"""Column lineage between two steps of a plan. The plan itself keeps that of its end; an output may stand before it."""

from typing import assert_never

from clew.plan.columns import UNDERIVED_COLUMNS
from clew.plan.lineage import ColumnLineage, LineageState, Origins
from clew.plan.plan import Plan
from clew.plan.steps import AggregateStep, AppendStep, DeleteStep, OutputStep, PlannedExpression, Step, UpdateStep


def lineage_after(plan: Plan, seq: int) -> tuple[ColumnLineage, ...]:
    """The lineage of the columns of the working dataset after a step; of those that were loaded for seq 0."""
    return state_after(plan, seq).summary(column.name for column in plan.columns_after(seq))


def state_after(plan: Plan, seq: int) -> LineageState:
    """The origins of all columns after a step, and what has decided by then which rows there are."""
    source = plan.input
    state = LineageState.loaded(source.dataset_id, source.table, [column.name for column in source.columns])
    for step in plan.steps:
        if step.seq <= seq:
            state = _after(state, step)
    return state


def selection_of(state: LineageState, selector: PlannedExpression | None) -> Origins:
    """What decides which rows a selector matches."""
    return state.of([selector.tree] if selector else []).as_influence()


def _after(state: LineageState, step: Step) -> LineageState:
    match step:
        case UpdateStep():
            return _after_update(state, step)
        case AggregateStep():
            return _after_aggregate(state, step)
        case AppendStep():
            return _after_append(state, step)
        case DeleteStep():
            return state.deleting([step.selector.tree] if step.selector else [])
        case OutputStep():
            return state
    assert_never(step)


def _after_update(state: LineageState, step: UpdateStep) -> LineageState:
    before = state.joining({join.alias: join.dataset.dataset_id for join in step.joins})
    influence = before.of(join.on.tree for join in step.joins).as_influence() | selection_of(before, step.selector)
    return state.changed({each.column: before.of([each.value.tree]) | influence for each in step.assignments})


def _after_aggregate(state: LineageState, step: AggregateStep) -> LineageState:
    influence = selection_of(state, step.selector) | state.deletions
    for name in step.group_by:
        influence |= state.working.get(name, Origins()).as_influence()
    return state.changed({each.column: state.of([each.value.tree]) | influence for each in step.aggregations})


def _after_append(state: LineageState, step: AppendStep) -> LineageState:
    source, keys = step.source, step.group_by or ()
    loaded = LineageState.loaded(source.dataset_id, source.table, [column.name for column in source.columns])
    chosen = selection_of(loaded, step.source_selector)
    grouped = chosen
    for name in keys:
        grouped |= loaded.working[name].as_influence()
    return state.changed(
        {
            each.column: loaded.of([each.value.tree]) | (chosen if each.column in keys else grouped)
            for each in step.columns
            if each.column not in UNDERIVED_COLUMNS
        }
    )
