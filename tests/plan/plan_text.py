"""A plan as a page that a reviewer reads: one line for each step, column and job."""

from collections.abc import Iterable, Iterator

from clew.lang import text_of
from clew.plan import Plan
from clew.plan.lineage import SourceColumn
from clew.plan.operations import AggregateStep, AppendStep, DeleteStep, OutputStep, Step, UpdateStep
from clew.plan.steps import PlannedExpression


def page_of(plan: Plan) -> str:
    return "\n".join(_lines(plan)) + "\n"


def _lines(plan: Plan) -> Iterator[str]:
    yield f"plan {plan.name}: {plan.title}, version {plan.project_version}"
    source = plan.input
    yield f"input {source.dataset_id} as {source.table}, {source.temporal_mode}, {source.resolver_source}"
    for selector in plan.selectors:
        yield f"selector {selector.path} {selector.name}: {selector.expression}"
    for step in plan.steps:
        yield ""
        yield f"{step.seq} {step.type} {step.path}: {step.name}" + (f"  [{step.breakpoint}]" if step.breakpoint else "")
        yield from (f"    {line}" for line in _details(step))
    yield ""
    for lineage in plan.lineage:
        yield f"{lineage.column} from {_sources(lineage.derives_from)} if {_sources(lineage.influenced_by)}"
    yield ""
    for job in plan.extensions.postlude_jobs:
        yield f"job {job.name} at {job.anchor}: {', '.join(task.task for task in job.tasks)} -> {', '.join(job.sinks)}"
    for capability in plan.capabilities:
        yield f"needs {capability.name} for {', '.join(map(str, capability.needed_by))}"


def _details(step: Step) -> Iterator[str]:
    if step.selector is not None:
        yield f"where {_expression(step.selector)}"
    match step:
        case UpdateStep():
            for join in step.joins:
                yield f"join {join.dataset.dataset_id} as {join.alias} on {_expression(join.on)}"
            yield from (f"set {each.column} = {_expression(each.value)}" for each in step.assignments)
        case AggregateStep():
            yield f"by {', '.join(step.group_by)}"
            if step.having is not None:
                yield f"having {_expression(step.having)}"
            yield from (f"make {each.column} = {_expression(each.value)}" for each in step.aggregations)
        case AppendStep():
            yield f"source {step.source.dataset_id}"
            if step.source_selector is not None:
                yield f"where {_expression(step.source_selector)}"
            if step.group_by is not None:
                yield f"by {', '.join(step.group_by)}"
            yield from (f"fill {each.column} = {_expression(each.value)}" for each in step.columns)
        case OutputStep():
            to = step.destination
            yield f"to {to.datasource_id} {to.table or to.path} {to.format}, {step.mode}, registers {step.registers}"
            yield f"columns {', '.join(step.columns)}"
        case DeleteStep():
            if step.keeping is not None:
                yield f"keep {step.keeping.text}"
    reads = sorted({f"{read.table}.{read.column}" for read in step.reads})
    if reads:
        yield f"reads {', '.join(reads)}"
    if step.adds:
        yield f"adds {', '.join(f'{column.name} {column.type}' for column in step.adds)}"


def _expression(planned: PlannedExpression) -> str:
    return text_of(planned.tree)


def _sources(sources: Iterable[SourceColumn]) -> str:
    return ", ".join(f"{source.dataset}.{source.column}" for source in sources) or "-"
