"""A plan as text, for `print` in Python: input, steps with what each of them does, and where columns come from."""

from collections.abc import Iterator

from clew.plan import words
from clew.plan.operations import Step
from clew.plan.plan import Plan

_DIGITS_OF_DIGEST = 12


def plan_text(plan: Plan) -> str:
    """The whole plan in lines, without an end of line behind the last."""
    return "\n".join(map(_printable, _lines(plan)))


def _lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.name}  {plan.title}" if plan.title != plan.name else plan.name
    yield f"  version {plan.project_version}, digest {plan.digest[:_DIGITS_OF_DIGEST]}"
    yield f"  input   {words.dataset(plan.input)}, {words.rows_of(plan.input)}"
    for each in plan.extensions.parameters:
        given = f"= {each.value}" if each.value is not None else "(each run gives it)"
        yield f"  param.{each.name} {each.type} {given}"
    for step in plan.steps:
        yield from _step(step)
    yield "after the last step"
    types = {column.name: str(column.type) for column in plan.columns}
    for found in plan.lineage_at_end:
        origins = "; ".join(words.sources(found.derives_from).split("\n"))
        yield f"  {found.column} {types[found.column]}: {origins or 'constants'}"


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
