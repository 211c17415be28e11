"""A plan: a compiled, checked, immutable project. What a run executes and a reviewer approves.

Column lineage between two steps of a plan. The plan itself keeps that of its end; an output may stand before it.
"""

from dataclasses import dataclass
from typing import assert_never

from clew.plan.columns import UNDERIVED_COLUMNS, Column
from clew.plan.datasets import DatasetUse
from clew.plan.lineage import ColumnLineage, LineageState, Origins
from clew.plan.postlude import PostludeJob
from clew.plan.steps import AggregateStep, AppendStep, DeleteStep, OutputStep, PlannedExpression, Step, UpdateStep

PLAN_FORMAT = 1
"""Version of the JSON form. A reader refuses plans with a higher one."""


@dataclass(frozen=True, slots=True)
class NamedSelector:
    """A named selector, verbatim as the project or the fragment has it."""

    name: str
    expression: str
    path: str
    """The instance path of its fragment, "main" for the project's own."""


@dataclass(frozen=True, slots=True)
class Breakpoint:
    """A labelled point behind a step, addressable by its qualified name whatever the engine does with the steps."""

    name: str
    """plan::instance path::label."""
    label: str
    path: str
    seq: int


@dataclass(frozen=True, slots=True)
class Capability:
    """Something that an engine must be able to do for this plan, and the steps because of which."""

    name: str
    needed_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Extensions:
    """What goes beyond the steps themselves."""

    postlude_jobs: tuple[PostludeJob, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A project with everything resolved that can be before a run: the same on every machine."""

    format: int = PLAN_FORMAT
    name: str
    """The project's id, or a name made from the digest where it has none."""
    title: str
    project_version: int | None
    input: DatasetUse
    selectors: tuple[NamedSelector, ...]
    steps: tuple[Step, ...]
    columns: tuple[Column, ...]
    """The data columns of the working dataset after the last step."""
    lineage: tuple[ColumnLineage, ...]
    breakpoints: tuple[Breakpoint, ...]
    capabilities: tuple[Capability, ...]
    extensions: Extensions
    digest: str
    """SHA-256 over all that decides results; places, descriptions and the version number do not count."""

    def columns_after(self, seq: int) -> tuple[Column, ...]:
        """The data columns of the working dataset after a step; those that were loaded for seq 0."""
        added = (column for step in self.steps if step.seq <= seq for column in step.adds)
        return self.input.schema().with_columns(added).columns


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
