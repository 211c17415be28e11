"""A plan as text, for `print` in Python: input, steps with what each of them does, and where columns come from."""

from collections.abc import Iterable, Iterator

from clew.plan import words
from clew.plan.columns import Column
from clew.plan.datasets import DatasetUse
from clew.plan.lineage import ColumnLineage
from clew.plan.operations import Step
from clew.plan.planned_parameters import PlannedParameter


def plan_text(
    heading: Iterable[str],
    read: DatasetUse,
    parameters: Iterable[PlannedParameter],
    steps: Iterable[Step],
    columns: Iterable[Column],
    lineage: Iterable[ColumnLineage],
) -> str:
    """The whole plan in lines, without an end of line behind the last. It takes the parts: a plan calls it."""
    lines = [*heading, f"  input   {words.dataset(read)}, {words.rows_of(read)}"]
    for each in parameters:
        given = f"= {each.value}" if each.value is not None else "(each run gives it)"
        lines.append(f"  param.{each.name} {each.type} {given}")
    for step in steps:
        lines += _step(step)
    lines.append("after the last step")
    types = {column.name: str(column.type) for column in columns}
    for found in lineage:
        origins = "; ".join(words.sources(found.derives_from).split("\n"))
        lines.append(f"  {found.column} {types[found.column]}: {origins or 'constants'}")
    return "\n".join(map(_printable, lines))


def _step(step: Step) -> Iterator[str]:
    yield f'{step.seq} {step.type} "{step.name}"'
    if step.description:
        yield f"  why     {step.description}"
    for each in step.details():
        told = [*(f"{column} {type_} = {value}" for column, type_, value in each.table), *each.lines]
        for index, line in enumerate(told):
            yield f"  {each.label if index == 0 else '':<7} {line}"
    if step.breakpoint:
        yield f"  break   {step.breakpoint}"


def _printable(line: str) -> str:
    """On one line, without characters that would do something to a terminal."""
    return "".join(ch if ch.isprintable() else "\ufffd" for ch in " ".join(line.split("\n")))
