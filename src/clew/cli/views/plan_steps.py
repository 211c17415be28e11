"""The steps of a plan, one block each."""

from collections.abc import Iterable, Iterator
from typing import TypeAlias, assert_never

from rich.console import Group, RenderableType
from rich.text import Text

from clew.cli.views import plan_words as words
from clew.cli.views.page import grid, label, plain
from clew.cli.words import enumerated
from clew.plan import Plan
from clew.plan.expansion import MAIN
from clew.plan.steps import (
    AggregateStep,
    AppendStep,
    Assignment,
    DeleteStep,
    Join,
    OutputStep,
    Read,
    Step,
    UpdateStep,
)

Row: TypeAlias = tuple[Text, RenderableType]

_COLOURS = {"update": "blue", "aggregate": "magenta", "append": "green", "delete": "red", "output": "yellow"}


def step_blocks(plan: Plan) -> Iterator[RenderableType]:
    """Each step with an empty line before it."""
    width = max((len(str(step.seq)) for step in plan.steps), default=1)
    for step in plan.steps:
        title = Text.assemble((step.type, _COLOURS[step.type]), "  ", plain(step.name, "bold"))
        yield Text()
        seq = Text(f"{step.seq:>{width}}", style="bold")
        yield grid([(seq, Group(title, grid(_rows(step, plan.input.table))))])


def _rows(step: Step, table: str) -> Iterator[Row]:
    if step.description:
        yield label("why"), plain(step.description)
    if step.path != MAIN:
        yield label("from"), plain(f"fragment, used as {step.path}")
    match step:
        case UpdateStep():
            yield _selected(step)
            yield from _joins(step.joins)
            yield from _assigned(step.assignments)
        case AggregateStep():
            yield _selected(step)
            yield label("groups"), plain(enumerated(step.group_by) or "one, of all rows")
            yield from _assigned(step.aggregations)
        case AppendStep():
            yield from _appended(step)
        case DeleteStep():
            yield _selected(step)
        case OutputStep():
            yield _selected(step)
            yield from _written(step)
        case _:
            assert_never(step)
    if step.reads:
        yield label("reads"), _reads(step.reads, table)
    if step.breakpoint:
        yield label("break"), plain(step.breakpoint)


def _selected(step: Step) -> Row:
    return label("rows"), Group(*(plain(line) for line in words.selector(step.selector)))


def _joins(joins: Iterable[Join]) -> Iterator[Row]:
    for join in joins:
        condition = Text.assemble("on ", plain(join.on.text))
        found = plain(f"{words.rows_of(join.dataset)}; {words.whereabouts(join.dataset)}")
        yield label("joins"), Group(plain(f"{join.alias} = {words.dataset(join.dataset)}"), condition, found)


def _assigned(assignments: Iterable[Assignment]) -> Iterator[Row]:
    listed = list(assignments)
    for word, is_new in (("sets", False), ("adds", True)):
        rows = [
            (plain(each.column, "bold"), plain(each.value.tree.type), plain(each.value.text))
            for each in listed
            if each.adds_column is is_new
        ]
        if rows:
            yield label(word), grid(rows, fixed=2)


def _appended(step: AppendStep) -> Iterator[Row]:
    found = plain(f"{words.rows_of(step.source)}; {words.whereabouts(step.source)}")
    yield label("takes"), Group(plain(words.dataset(step.source)), found)
    if step.source_selector is not None:
        yield label("where"), Group(*(plain(line) for line in words.selector(step.source_selector)))
    if step.group_by is not None:
        yield label("groups"), plain(enumerated(step.group_by) or "one, of all rows")
    rows = [(plain(each.column, "bold"), plain(each.value.tree.type), plain(each.value.text)) for each in step.columns]
    yield label("fills"), Group(grid(rows, fixed=2), Text("all other columns are NULL"))


def _written(step: OutputStep) -> Iterator[Row]:
    mode = "in place of what is there" if step.mode == "overwrite" else "behind what is there"
    yield label("writes"), Group(plain(words.destination(step.destination)), Text(mode))
    yield (
        label("deleted"),
        Text("rows that were deleted are written too" if step.include_deleted else "rows stay behind"),
    )
    yield label("columns"), plain(enumerated(step.columns))
    if step.registers:
        yield label("becomes"), plain(f"the next version of the dataset {step.registers}")


def _reads(reads: tuple[Read, ...], table: str) -> RenderableType:
    by_reason = dict[str, list[str]]()
    keys = {read.column for read in reads if read.because == "group key"}
    for read in reads:
        if read.because.startswith("column ") and read.column in keys:
            continue
        name = read.column if read.table == table else f"{read.table}.{read.column}"
        by_reason.setdefault(read.because, []).append(name)
    return grid((plain(enumerated(columns)), plain(f"for {because}")) for because, columns in by_reason.items())
