"""Versions of datasets against the plans that read them: what a newer version has taken away."""

from collections.abc import Iterable, Iterator, Mapping

from clew.lang.types import Kind, Type, parse_type
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan
from clew.plan.steps import AggregateStep, AppendStep, OutputStep, UpdateStep


def datasets_read(plan: Plan) -> Iterator[DatasetUse]:
    """Every dataset that a plan reads, the input first; one that it reads twice comes twice."""
    yield plan.input
    for step in plan.steps:
        if isinstance(step, UpdateStep):
            yield from (join.dataset for join in step.joins)
        elif isinstance(step, AppendStep):
            yield step.source


def columns_that_matter(plan: Plan, use: DatasetUse) -> dict[str, Type]:
    """The columns of a dataset that some step reads or writes, with the types that the plan takes them to have."""
    named = {read.column for step in plan.steps for read in step.reads} | set(use.natural_key)
    for step in plan.steps:
        if isinstance(step, OutputStep):
            named.update(step.columns)
        elif isinstance(step, AppendStep):
            named.update(column.column for column in step.columns)
            named.update(step.group_by or ())
        elif isinstance(step, AggregateStep):
            named.update(step.group_by)
    return {column.name: column.type for column in use.columns if column.name in named}


def missing_and_retyped(needed: Mapping[str, Type], offered: Iterable[tuple[str, str]]) -> list[str]:
    """What is wrong with the columns that are offered, in words, column by column."""
    types = dict(offered)
    found = list[str]()
    for name, type_ in needed.items():
        if name not in types:
            found.append(f'has no column "{name}"')
        elif not _serves(parse_type(types[name]), type_):
            found.append(f'has "{name}" as {types[name]}, not {type_}')
    return found


def _serves(offered: Type, needed: Type) -> bool:
    """Whether files with a column of one type can be read as another: the same, or a decimal with room to spare."""
    if offered.kind is not Kind.DECIMAL or needed.kind is not Kind.DECIMAL:
        return offered == needed
    digits = needed.precision - needed.scale
    return offered.scale <= needed.scale and offered.precision - offered.scale <= digits
