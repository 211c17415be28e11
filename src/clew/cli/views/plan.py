"""A plan as a page that a reviewer can approve: input, steps, resulting columns and required capabilities."""

from collections.abc import Iterator
from typing import TypeAlias

from clew.cli.formatting import counted, enumerated
from clew.cli.views.page import grid, headed, heading, label, plain, spread, stacked
from clew.cli.views.page_parts import Indented, PagePart, Styled
from clew.plan import Plan, words
from clew.plan.datasets import DatasetColumn
from clew.plan.expansion import MAIN
from clew.plan.operations import Step
from clew.plan.postlude import PostludeJob
from clew.plan.steps import Read

Row: TypeAlias = tuple[Styled, PagePart]


def step_blocks(plan: Plan) -> Iterator[PagePart]:
    """Each step with an empty line before it."""
    width = max((len(str(step.seq)) for step in plan.steps), default=1)
    for step in plan.steps:
        title = Styled.assemble((step.type, _colour(step)), "  ", plain(step.name, "bold"))
        yield Styled()
        seq = Styled(f"{step.seq:>{width}}", style="bold")
        yield grid([(seq, stacked(title, grid(_rows(step, plan.input.table))))])


def _colour(step: Step) -> str:
    match step.type:
        case "update":
            return "blue"
        case "aggregate":
            return "magenta"
        case "append":
            return "green"
        case "delete":
            return "red"
        case "output":
            return "yellow"


def _rows(step: Step, table: str) -> Iterator[Row]:
    if step.description:
        yield label("why"), plain(step.description)
    if step.path != MAIN:
        yield label("from"), plain(f"fragment, used as {step.path}")
    for each in step.details():
        rows = [(plain(column, "bold"), plain(type_), plain(value)) for column, type_, value in each.table]
        lines = [plain(line) for line in each.lines]
        yield label(each.label), stacked(grid(rows, fixed=2), *lines) if rows else stacked(*lines)
    if step.reads:
        yield label("reads"), _reads(step.reads, table)
    if step.breakpoint:
        yield label("break"), plain(step.breakpoint)


def _reads(reads: tuple[Read, ...], table: str) -> PagePart:
    by_reason = dict[str, list[str]]()
    keys = {read.column for read in reads if read.because == "group key"}
    for read in reads:
        if read.because.startswith("column ") and read.column in keys:
            continue
        name = read.column if read.table == table else f"{read.table}.{read.column}"
        by_reason.setdefault(read.because, []).append(name)
    return grid((plain(enumerated(columns)), plain(f"for {because}")) for because, columns in by_reason.items())


_DIGITS_OF_DIGEST = 12


def plan_page(plan: Plan) -> Iterator[PagePart]:
    """The whole page."""
    yield _header(plan)
    yield from step_blocks(plan)
    yield from _section("After the last step", _columns(plan))
    if plan.extensions.postlude_jobs:
        yield from _section("After the run", stacked(*_jobs(plan)))
    if plan.capabilities:
        needs = grid((plain(each.name), plain(words.steps(each.needed_by))) for each in plan.capabilities)
        yield from _section("Required engine capabilities", needs)


def breakpoint_table(plan: Plan) -> PagePart:
    """The breakpoints with the steps that they follow."""
    names = {step.seq: step.name for step in plan.steps}
    rows = ((plain(each.name), plain(each.seq), plain(names[each.seq])) for each in plan.breakpoints)
    return headed(("breakpoint", "after step", ""), rows, fixed=2)


def _header(plan: Plan) -> PagePart:
    title = Styled.assemble(plain(plan.name, "bold"), "  ", plain(plan.title if plan.title != plan.name else ""))
    source = plan.input
    about: list[tuple[Styled, PagePart]] = [
        (label("version"), plain(f"{plan.project_version}, digest {plan.digest[:_DIGITS_OF_DIGEST]}")),
        (label("steps"), plain(f"{len(plan.steps)}, {counted(len(plan.breakpoints), 'breakpoint')}")),
        (label("input"), plain(words.dataset(source))),
        (label(""), plain(words.rows_of(source))),
        (label(""), plain(words.whereabouts(source))),
        (label("columns"), spread(_column(column) for column in source.columns)),
    ]
    if plan.extensions.parameters:
        shown = (_parameter(each.name, each.type, each.value) for each in plan.extensions.parameters)
        about.append((label("parameters"), spread(shown)))
    return stacked(title, grid(about))


def _parameter(name: str, type_: object, value: str | None) -> Styled:
    given = f" = {value}" if value is not None else " (each run gives it)"
    return Styled.assemble(plain(f"param.{name}"), " ", plain(type_, "dim"), plain(given))


def _column(column: DatasetColumn) -> Styled:
    privacy = (f" {column.privacy}", "red") if column.privacy else ""
    return Styled.assemble(plain(column.name), " ", plain(column.type, "dim"), privacy)


def _columns(plan: Plan) -> PagePart:
    types = {column.name: column.type for column in plan.columns}
    rows = (
        (
            plain(each.column, "bold"),
            plain(types[each.column]),
            Styled(words.sources(each.derives_from) or "constants"),
            Styled(words.sources(each.influenced_by)),
        )
        for each in plan.lineage_at_end
    )
    return headed(("column", "type", "derives from", "influenced by"), rows, fixed=2)


def _jobs(plan: Plan) -> Iterator[PagePart]:
    for job in plan.extensions.postlude_jobs:
        yield plain(job.name or job.id, "bold")
        yield grid(_job_rows(job))


def _job_rows(job: PostludeJob) -> Iterator[tuple[Styled, PagePart]]:
    yield label("reads"), plain(f"the rows at {job.anchor}, after step {job.anchor_seq}")
    if job.when is not None:
        yield label("when"), plain(job.when.text)
    yield label("limits"), plain(words.budget(job.budget))
    yield label("does"), stacked(*(plain(words.task(each)) for each in job.tasks))


def _section(title: str, content: PagePart) -> Iterator[PagePart]:
    yield Styled()
    yield heading(title)
    yield Indented(content)
