"""The compiler: a project becomes a plan, in passes that each do one thing.

    expand      fragments in the place of their uses, operations in the order of seq
    label       breakpoints and their qualified names
    flow        operation by operation: expressions checked, columns and lineage carried on
    attach      postlude jobs, anchored to breakpoints
    conclude    capabilities and digest

Every pass reports all it finds; a plan comes out only when nothing was found.
"""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.project import DUPLICATE_BREAKPOINT, INVALID_LABEL
from clew.diagnostics.codes.workspace import DUPLICATE_ID
from clew.model import Aggregate, Fragment, Project, Update
from clew.plan.capabilities import capabilities_of
from clew.plan.catalogue import Catalogue
from clew.plan.datasets import DatasetUse
from clew.plan.digest import digest_of
from clew.plan.expansion import PlacedOperation, expand
from clew.plan.expressions import Expressions
from clew.plan.labels import is_label, qualified
from clew.plan.lineage import LineageState, Origins, SourceColumn
from clew.plan.operations import Context, State, plan_operation
from clew.plan.plan import Breakpoint, Extensions, NamedSelector, Plan
from clew.plan.postlude_jobs import Anchors, SinkKnowledge, plan_jobs
from clew.plan.problems import Problems
from clew.plan.selectors import Selectors
from clew.plan.steps import Step

_OPERATION_IDS = uuid.UUID("5b0f9d5e-8f0c-5c54-9d7e-2f1f6a4c0b11")
"""Namespace of the ids of operations that have none of their own."""

_NAMELESS = "plan"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a project can refer to."""

    catalogue: Catalogue
    fragments: Mapping[str, Fragment]
    broken_fragments: frozenset[str]
    sinks: SinkKnowledge


@dataclass(frozen=True, slots=True)
class Compilation:
    """The plan, or None where something is wrong."""

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...]


def compile_project(project: Project, surroundings: Surroundings) -> Compilation:
    """Compile one project."""
    problems = Problems()
    placed = expand(project, surroundings.fragments, surroundings.broken_fragments, problems)
    name = project.id or _NAMELESS
    breakpoints = _label(placed, name, problems)
    source = surroundings.catalogue.use(project.input_dataset, problems)
    if source is None:
        return Compilation(None, problems.in_order())
    flow = _flow(
        placed,
        source=source,
        breakpoints=breakpoints,
        ids=_operation_ids(placed, name, problems),
        surroundings=surroundings,
        problems=problems,
    )
    named = Selectors(project.selectors, problems)
    named.check_all()
    jobs = plan_jobs(
        placed,
        flow.states,
        anchors=Anchors(name, breakpoints),
        sinks=surroundings.sinks,
        expressions=Expressions(named, problems),
        problems=problems,
    )
    if problems:
        return Compilation(None, problems.in_order())
    final = flow.states[placed[-1].seq] if placed else _loaded(source)
    plan = Plan(
        name=name,
        title=project.name or name,
        project_version=project.version,
        input=source,
        selectors=tuple(NamedSelector(key, text.value) for key, text in sorted(project.selectors.items())),
        steps=flow.steps,
        columns=final.schema.columns,
        lineage=final.lineage.summary(column.name for column in final.schema.columns),
        breakpoints=breakpoints,
        capabilities=capabilities_of(flow.steps, breakpoints, jobs),
        extensions=Extensions(jobs),
        digest="",
    )
    if not project.id:
        return compile_project(replace(project, id=f"{_NAMELESS}_{digest_of(plan)[:12]}"), surroundings)
    return Compilation(replace(plan, digest=digest_of(plan)), ())


def _label(placed: Sequence[PlacedOperation], plan: str, problems: Problems) -> tuple[Breakpoint, ...]:
    points = dict[str, Breakpoint]()
    for each in placed:
        label = each.operation.assign
        if label is None:
            continue
        span = each.operation.place("assign")
        if not is_label(label):
            problems.report(INVALID_LABEL.at(span, label=label, what="breakpoint label"))
            continue
        point = Breakpoint(qualified(plan, each.path, label), label, each.path, each.seq)
        first = points.setdefault(point.name, point)
        if first is not point:
            problems.report(DUPLICATE_BREAKPOINT.at(span, name=point.name, first_seq=first.seq))
    return tuple(points.values())


def _operation_ids(placed: Sequence[PlacedOperation], plan: str, problems: Problems) -> tuple[str, ...]:
    """The ids of operations: their own, else one from plan, path and name, which reordering does not change."""
    ids, seen = list[str](), dict[str, PlacedOperation]()
    for each in placed:
        own = each.operation.id
        if own is not None:
            identity = own if each.use is None else f"{each.path}/{own}"
            if identity in seen:
                first = f"line {seen[identity].operation.span.line}"
                span = each.operation.place("id")
                problems.report(DUPLICATE_ID.at(span, kind="operation", id=own, first=first))
            seen.setdefault(identity, each)
        else:
            key = f"{plan}/{each.path}/{each.operation.name}"
            count = sum(1 for other in seen if other.startswith(f"{key}#"))
            seen[f"{key}#{count}"] = each
            identity = str(uuid.uuid5(_OPERATION_IDS, f"{key}#{count}"))
        ids.append(identity)
    return tuple(ids)


@dataclass(frozen=True, slots=True)
class _Flow:
    steps: tuple[Step, ...]
    states: Mapping[int, State]


def _flow(
    placed: Sequence[PlacedOperation],
    *,
    source: DatasetUse,
    breakpoints: Sequence[Breakpoint],
    ids: Sequence[str],
    surroundings: Surroundings,
    problems: Problems,
) -> _Flow:
    state = _loaded(source)
    points = {point.seq: point.name for point in breakpoints}
    steps, states = list[Step](), dict[int, State]()
    readers = dict[int, Expressions]()
    for index, (each, identity) in enumerate(zip(placed, ids, strict=True)):
        if id(each.selectors) not in readers:
            readers[id(each.selectors)] = Expressions(Selectors(each.selectors, problems), problems)
        context = Context(
            placed=each,
            id=identity,
            breakpoint=points.get(each.seq),
            state=state,
            catalogue=surroundings.catalogue,
            expressions=readers[id(each.selectors)],
            problems=problems,
            column_elsewhere=partial(_added_later, placed, index),
            table_elsewhere=partial(_joined_elsewhere, placed),
        )
        outcome = plan_operation(context)
        state = outcome.state
        states[each.seq] = state
        if outcome.step is not None:
            steps.append(outcome.step)
    return _Flow(tuple(steps), states)


def _loaded(source: DatasetUse) -> State:
    origins = {
        column.name: Origins(frozenset({SourceColumn(source.dataset_id, column.name)})) for column in source.columns
    }
    return State(source.table, source.schema(), LineageState(origins, source.table))


def _added_later(placed: Sequence[PlacedOperation], index: int, column: str) -> str | None:
    """A hint for a column that some operation after this one sets."""
    for each in placed[index + 1 :]:
        if column in _columns_set(each):
            return f'it is added later, by step {each.seq} "{each.operation.name}"'
    return None


def _columns_set(placed: PlacedOperation) -> list[str]:
    match placed.operation:
        case Update(arguments=update):
            return [assignment.column for assignment in update.assignments]
        case Aggregate(arguments=aggregate):
            return [aggregation.column for aggregation in aggregate.aggregations]
        case _:
            return []


def _joined_elsewhere(placed: Sequence[PlacedOperation], alias: str) -> str | None:
    """A hint for an alias that another operation defines."""
    for each in placed:
        if isinstance(each.operation, Update) and any(join.alias == alias for join in each.operation.arguments.joins):
            return f'it is a join alias of step {each.seq} "{each.operation.name}" and can be seen there only'
    return None
