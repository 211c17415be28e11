"""Versions of datasets against the plans that read them: what a newer version no longer has."""

from collections.abc import Iterable, Mapping

from clew.lang.types import Kind, Type, parse_type
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan


def columns_that_matter(plan: Plan, use: DatasetUse) -> dict[str, Type]:
    """The columns of a dataset that some step reads or writes, with the types that the plan takes them to have."""
    named = {read.column for step in plan.steps for read in step.reads} | set(use.natural_key)
    named.update(column for step in plan.steps for column in step.columns_named)
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
