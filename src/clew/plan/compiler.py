"""The compiler: a project becomes a plan, in passes that each do one thing.

    expand      fragments replaced by their operations, operations in the order of seq
    label       breakpoints and their qualified names
    flow        operation by operation: expressions checked, columns and lineage carried on
    attach      postlude jobs, anchored to breakpoints; control totals
    conclude    digest, and the capabilities that an engine needs for the plan

Every pass reports everything it finds; there is a plan only if nothing was found.
"""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from clew.deferred import dataclass
from clew.definitions import Aggregate, Append, Delete, Operation, Output, Project, Update
from clew.diagnostics import Diagnostic, Problems, UserError
from clew.diagnostics.codes.project import DUPLICATE_BREAKPOINT, INVALID_LABEL, UNKNOWN_CAPABILITY
from clew.diagnostics.codes.workspace import DUPLICATE_ID
from clew.lang.typed import Constant
from clew.plan.catalogue import Catalogue
from clew.plan.check_planning import CheckPlanning
from clew.plan.columns import Schema
from clew.plan.control_planning import plan_controls
from clew.plan.datasets import DatasetUse
from clew.plan.expansion import MAIN, ExpandedProject, FragmentLibrary, PlacedOperation, expand
from clew.plan.expressions import Expressions
from clew.plan.json_form import digest_of
from clew.plan.lineage import LineageState
from clew.plan.names import is_label, qualified
from clew.plan.operations import (
    Context,
    DeleteStep,
    PlannedOperation,
    PlanningState,
    Step,
    plan_aggregate,
    plan_append,
    plan_delete,
    plan_output,
    plan_update,
)
from clew.plan.parameter_planning import planned_parameters
from clew.plan.plan import Breakpoint, Capability, Extensions, NamedSelector, Plan
from clew.plan.planned_checks import PlannedCheck
from clew.plan.planned_controls import PlannedControl
from clew.plan.planned_parameters import PlannedParameter
from clew.plan.postlude import PostludeJob
from clew.plan.postlude_planning import Anchors, SinkKnowledge, plan_jobs

DEBUG_CAPABILITY = "cap.rfc.0003.debug_capture_postlude.v1"
"""Breakpoints, captures and postlude jobs, under the name that their specification gives."""


def capabilities_of(
    steps: Sequence[Step], breakpoints: Sequence[Breakpoint], jobs: Sequence[PostludeJob]
) -> tuple[Capability, ...]:
    """Every capability that something in the plan needs, sorted by name, each with the steps that need it."""
    needed = dict[str, set[int]]()
    for step in steps:
        for name in step.capabilities:
            needed.setdefault(name, set()).add(step.seq)
    for seq in [*(point.seq for point in breakpoints), *(job.anchor_seq for job in jobs)]:
        needed.setdefault(DEBUG_CAPABILITY, set()).add(seq)
    return tuple(Capability(name, tuple(sorted(seqs))) for name, seqs in sorted(needed.items()))


def require_capabilities(plan: Plan, available: Iterable[str]) -> None:
    """Refuse a plan that needs something which this engine does not have."""
    have = frozenset(available)
    missing = [capability for capability in plan.capabilities if capability.name not in have]
    if missing:
        raise UserError(
            *(
                UNKNOWN_CAPABILITY.anywhere(
                    capability=capability.name,
                    hint=f"needed by step {', '.join(map(str, capability.needed_by))}",
                )
                for capability in missing
            )
        )


_OPERATION_IDS = uuid.UUID("5b0f9d5e-8f0c-5c54-9d7e-2f1f6a4c0b11")
"""Namespace for the generated ids of operations without an id."""

_NAMELESS = "plan"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a project can refer to."""

    catalogue: Catalogue
    fragments: FragmentLibrary
    sinks: SinkKnowledge | None
    """None if clew.yaml has errors."""


@dataclass(frozen=True, slots=True)
class Compilation:
    """The plan, or None if something is wrong with the project or with what it needs."""

    plan: Plan | None
    diagnostics: tuple[Diagnostic, ...]


def compile_project(project: Project, surroundings: Surroundings, *, is_whole: bool = True) -> Compilation:
    """Compile one project. One that is not whole, because parts of it could not be read, is checked only."""
    problems = Problems()
    name = project.id or _NAMELESS
    source = surroundings.catalogue.use(project.input_dataset, problems)
    expansion = expand(project, surroundings.fragments, problems, is_whole=is_whole)
    parameters = planned_parameters(project.parameters, problems)
    compiled = _compile(name, source, project, expansion, surroundings, problems, parameters)
    lacks_something = expansion.missing_from is not None or len(compiled.steps) < len(expansion.operations)
    if problems or source is None or lacks_something:
        return Compilation(None, problems.in_order())
    plan = Plan(
        name=name,
        title=project.name or name,
        project_version=project.version,
        input=source,
        selectors=_selectors_of(expansion),
        steps=compiled.steps,
        columns=compiled.state.schema.columns,
        lineage=compiled.state.lineage.summary(column.name for column in compiled.state.schema.columns),
        breakpoints=compiled.breakpoints,
        capabilities=capabilities_of(compiled.steps, compiled.breakpoints, compiled.jobs),
        extensions=Extensions(compiled.jobs, compiled.controls, parameters, checks=compiled.checks),
        digest="",
    )
    if not project.id:
        return compile_project(replace(project, id=f"{_NAMELESS}_{digest_of(plan)[:12]}"), surroundings)
    return Compilation(replace(plan, digest=digest_of(plan)), ())


@dataclass(frozen=True, slots=True)
class _Compiled:
    steps: tuple[Step, ...]
    state: PlanningState
    breakpoints: tuple[Breakpoint, ...]
    jobs: tuple[PostludeJob, ...]
    controls: tuple[PlannedControl, ...]
    checks: tuple[PlannedCheck, ...]


def _compile(
    name: str,
    source: DatasetUse | None,
    project: Project,
    expansion: ExpandedProject,
    surroundings: Surroundings,
    problems: Problems,
    parameters: Sequence[PlannedParameter],
) -> _Compiled:
    constants = {each.name: each.constant for each in parameters}
    for selectors in expansion.selectors.values():
        selectors.check_all()
    breakpoints = _label(expansion.operations, name, problems)
    checks = CheckPlanning(
        project.checks,
        expansion.operations,
        surroundings.catalogue,
        name,
        Expressions(expansion.selectors[MAIN], problems, constants),
        problems,
    )
    flow = _flow(
        expansion,
        source,
        checks,
        state=_loaded(source),
        breakpoints=breakpoints,
        ids=_operation_ids(expansion.operations, name, problems),
        surroundings=surroundings,
        problems=problems,
        parameters=constants,
    )
    jobs = plan_jobs(
        expansion.operations,
        flow.states,
        anchors=Anchors(name, breakpoints),
        sinks=surroundings.sinks,
        expressions=Expressions(expansion.selectors[MAIN], problems, constants),
        problems=problems,
    )
    at_outputs = [state for seq, state in flow.states.items() if seq in _output_seqs(expansion.operations)]
    planned = plan_controls(
        project.controls, flow.final, at_outputs, Expressions(expansion.selectors[MAIN], problems, constants), problems
    )
    others = [use.use for step in flow.steps for use in step.datasets]
    checks.of_datasets([use for use in others if source is None or use.key != source.key], flow.final)
    checks.unmatched_aliases()
    return _Compiled(flow.steps, flow.final, breakpoints, jobs, planned, tuple(checks.found))


def _output_seqs(placed: Sequence[PlacedOperation]) -> frozenset[int]:
    return frozenset(each.seq for each in placed if isinstance(each.operation, Output))


def _selectors_of(expansion: ExpandedProject) -> tuple[NamedSelector, ...]:
    found = [
        NamedSelector(name, text.value, path)
        for path, selectors in expansion.selectors.items()
        for name, text in selectors.texts.items()
    ]
    return tuple(sorted(found, key=lambda each: (each.path, each.name)))


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
    """The ids of operations: their own, else one from plan, path and name, which reordering does not change.

    Two operations without ids may not share a name: which of them came first would decide which id each gets.
    """
    ids, first = list[str](), dict[tuple[str, str], PlacedOperation]()
    named = dict[tuple[str, str], PlacedOperation]()
    for each in placed:
        own, name = each.operation.id, each.operation.name
        if own is None:
            _refuse_second(each, named.setdefault((each.path, name), each), "name", name, problems)
            ids.append(str(uuid.uuid5(_OPERATION_IDS, f"{plan}/{each.path}/{name}#0")))
        else:
            _refuse_second(each, first.setdefault((each.path, own), each), "id", own, problems)
            ids.append(own if each.path == MAIN else f"{each.path}/{own}")
    return tuple(ids)


_SECOND = {"name": "give one of them another name or an `id`; without an `id`, an operation is known by its name"}


def _refuse_second(each: PlacedOperation, first: PlacedOperation, key: str, value: str, problems: Problems) -> None:
    """That an operation has the id, or without one the name, of another."""
    if first is not each:
        where, span = f"line {first.operation.span.line}", each.operation.place(key)
        problems.report(DUPLICATE_ID.at(span, kind="operation", id=value, first=where, hint=_SECOND.get(key)))


@dataclass(frozen=True, slots=True)
class _Flow:
    steps: tuple[Step, ...]
    states: Mapping[int, PlanningState]
    final: PlanningState


def _flow(
    expansion: ExpandedProject,
    source: DatasetUse | None,
    checks: CheckPlanning,
    *,
    state: PlanningState,
    breakpoints: Sequence[Breakpoint],
    ids: Sequence[str],
    surroundings: Surroundings,
    problems: Problems,
    parameters: Mapping[str, Constant],
) -> _Flow:
    placed, missing_from = expansion.operations, expansion.missing_from
    points = {point.seq: point.name for point in breakpoints}
    steps, states = list[Step](), dict[int, PlanningState]()
    rows_after = 0

    def quarantined(deletes: Sequence[DeleteStep], state: PlanningState) -> PlanningState:
        steps.extend(deletes)
        for step in deletes:
            state = state.changed((), step.lineage_after(state.lineage))
        return state

    loaded = checks.at_load(source, state)
    state = quarantined(loaded, state)
    rows_after = loaded[-1].seq if loaded else 0
    for index, (each, identity) in enumerate(zip(placed, ids, strict=True)):
        if missing_from is not None and each.seq >= missing_from:
            state = replace(state, is_opaque=True)
        deletes = checks.before(each, state, rows_after, last=max(rows_after, placed[index - 1].seq if index else 0))
        state, rows_after = quarantined(deletes, state), deletes[-1].seq if deletes else rows_after
        context = Context(
            seq=each.seq,
            path=each.path,
            id=identity,
            breakpoint=points.get(each.seq),
            state=state,
            catalogue=surroundings.catalogue,
            expressions=Expressions(each.selectors, problems, parameters),
            problems=problems,
            column_elsewhere=partial(_added_later, placed, index),
            table_elsewhere=partial(_joined_elsewhere, placed),
        )
        outcome = _planned(each.operation, context)
        state = outcome.state
        states[each.seq] = state
        if outcome.step is not None:
            steps.append(outcome.step)
        rows_after = rows_after if isinstance(each.operation, Output) else each.seq
        deletes = checks.after(each, state, rows_after)
        state, rows_after = quarantined(deletes, state), deletes[-1].seq if deletes else rows_after
    return _Flow(tuple(steps), states, state)


def _planned(operation: Operation, context: Context) -> PlannedOperation[Step]:
    """The step of an operation, and the working dataset after it."""
    match operation:
        case Update():
            return plan_update(context, operation)
        case Aggregate():
            return plan_aggregate(context, operation)
        case Append():
            return plan_append(context, operation)
        case Delete():
            return plan_delete(context, operation)
        case Output():
            return plan_output(context, operation)


def _loaded(source: DatasetUse | None) -> PlanningState:
    """The working dataset before the first step; one that may have any column where the input is not known."""
    if source is None:
        return PlanningState("", Schema(()), LineageState({}, ""), is_opaque=True)
    lineage = LineageState.loaded(source.dataset_id, source.table, [column.name for column in source.columns])
    return PlanningState(source.table, source.schema(), lineage)


def _added_later(placed: Sequence[PlacedOperation], index: int, column: str) -> str | None:
    """A hint for a column that some operation after this one sets."""
    for each in placed[index + 1 :]:
        if column in each.operation.columns_set:
            return f'it is added later, by step {each.seq} "{each.operation.name}"'
    return None


def _joined_elsewhere(placed: Sequence[PlacedOperation], alias: str) -> str | None:
    """A hint for an alias that another operation defines."""
    for each in placed:
        if alias in each.operation.aliases:
            return f'it is a join alias of step {each.seq} "{each.operation.name}" and is visible only there'
    return None
