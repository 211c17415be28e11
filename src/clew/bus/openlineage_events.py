"""Events of a run as OpenLineage run events, with their datasets and column lineage.

Datasets are named by their ids in the workspace, so that an output of one project is the input of the next. Every event
and facet names Clew as its producer.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from uuid import NAMESPACE_URL, UUID, uuid5

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    DatasetFacet,
    InputDatasetFacet,
    RunFacet,
    dataset_version_dataset,
    datasource_dataset,
    documentation_job,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    schema_dataset,
    tags_run,
)
from openlineage.client.facet_v2 import column_lineage_dataset as facets

from clew.bus.openlineage_checks import ToldChecks
from clew.deferred import dataclass
from clew.events.artifacts import DATASET_KIND, OUTPUT_KIND
from clew.events.bodies import RunCancelled, RunCompleted, RunFailed, RunResumed, RunStarted, StepCompleted
from clew.events.codec import iso
from clew.events.envelope import StoredEvent
from clew.events.values import CheckResult
from clew.plan import Plan
from clew.plan.lineage import ColumnLineage, SourceColumn
from clew.plan.operations import OutputStep
from clew.plan.plan import lineage_after, state_after
from clew.runs.request import RunRecord


def producer() -> str:
    """This version of Clew as a URI."""
    return f"urn:clew:{version('clew')}"


_ASSERTIONS = "dataQualityAssertions"
_TESTS = "test"
_IDENTITY = ("DIRECT", "IDENTITY")
_COMPUTED = ("DIRECT", "TRANSFORMATION")
_DECIDES = ("INDIRECT", "CONDITIONAL")
_SELECTS = ("INDIRECT", "FILTER")


def column_lineage(plan: Plan, step: OutputStep, namespace: str) -> facets.ColumnLineageDatasetFacet:
    """The facet of what an output step writes."""
    written = set(step.columns)
    lineages = [lineage for lineage in lineage_after(plan, step.seq) if lineage.column in written]
    state = state_after(plan, step.seq)
    selection = state.selected_by(step.selector.tree if step.selector else None)
    if not step.include_deleted:
        selection |= state.deletions
    return facets.ColumnLineageDatasetFacet(
        fields={
            lineage.column: facets.Fields(_inputs(lineage, plan.input.dataset_id, namespace))
            for lineage in lineages
            if lineage.derives_from or lineage.influenced_by
        },
        dataset=_fields(_sorted(selection.influenced_by), _SELECTS, namespace),
        producer=producer(),
    )


def _inputs(lineage: ColumnLineage, input_dataset: str, namespace: str) -> list[facets.InputField]:
    itself = (SourceColumn(input_dataset, lineage.column),)
    is_untouched = lineage.derives_from == itself and not lineage.influenced_by
    direct = _fields(lineage.derives_from, _IDENTITY if is_untouched else _COMPUTED, namespace)
    return direct + _fields(lineage.influenced_by, _DECIDES, namespace)


def _fields(sources: Iterable[SourceColumn], kind: tuple[str, str], namespace: str) -> list[facets.InputField]:
    type_, subtype = kind
    how = facets.Transformation(type=type_, subtype=subtype, description="", masking=False)
    return [facets.InputField(namespace, source.dataset, source.column, transformations=[how]) for source in sources]


def _sorted(sources: Iterable[SourceColumn]) -> list[SourceColumn]:
    return sorted(sources, key=lambda source: (source.dataset, source.column))


def inputs_of(plan: Plan, namespace: str, checks: ToldChecks | None = None) -> list[InputDataset]:
    """Everything that a run of the plan reads, with what checks found in it."""
    asserted: Mapping[str, InputDatasetFacet] = checks.assertions() if checks is not None else {}
    return [
        InputDataset(
            namespace,
            use.dataset_id,
            facets={"schema": _schema((c.name, str(c.type)) for c in use.columns)},
            inputFacets={_ASSERTIONS: asserted[use.dataset_id]} if use.dataset_id in asserted else {},
        )
        for use in {use.dataset_id: use for use in plan.datasets_read}.values()
    ]


def outputs_of(plan: Plan, namespace: str) -> list[OutputDataset]:
    """Everything that a run of the plan writes, with the origin of each column."""
    return [output_of(plan, step, namespace) for step in plan.outputs]


def output_of(plan: Plan, step: OutputStep, namespace: str) -> OutputDataset:
    """What one output step writes."""
    types = {column.name: str(column.type) for column in plan.columns_after(step.seq)}
    facets: dict[str, DatasetFacet] = {
        "schema": _schema((name, types.get(name, "string")) for name in step.columns),
        "columnLineage": column_lineage(plan, step, namespace),
    }
    return OutputDataset(namespace, name_of(step), facets=facets)


def name_of(step: OutputStep) -> str:
    """The dataset that an output becomes, else where it goes."""
    if step.registers is not None:
        return step.registers
    place = step.destination
    parts = (place.datasource_id, place.table or place.path)
    return "/".join(part for part in parts if part) or f"step {step.seq}"


def _schema(columns: Iterable[tuple[str, str]]) -> schema_dataset.SchemaDatasetFacet:
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name, type=type_, ordinal_position=position)
        for position, (name, type_) in enumerate(columns, start=1)
    ]
    return schema_dataset.SchemaDatasetFacet(fields=fields, producer=producer())


@dataclass(frozen=True, slots=True)
class _Told:
    """What an event says in OpenLineage's terms."""

    state: RunState
    inputs: list[InputDataset]
    outputs: list[OutputDataset]
    error: str | None = None


def ends_run(event: StoredEvent) -> bool:
    """Whether a run has ended with it, so that it tells what checks have found."""
    return isinstance(event.body, RunCompleted | RunFailed | RunCancelled)


def run_event(
    run: RunRecord, event: StoredEvent, plan: Plan | None, namespace: str, results: Sequence[CheckResult] = ()
) -> RunEvent | None:
    """The OpenLineage event; None if OpenLineage has no event for what happened.

    `results` are what checks have found until then. The event that ends the run tells them.
    """
    checks = ToldChecks(plan, results, producer()) if plan is not None and ends_run(event) else None
    told = _told(event, plan, namespace, checks)
    if told is None:
        return None
    run_facets = _run_facets(run, event, told.error)
    tests = checks.tests() if checks is not None else None
    return RunEvent(
        eventType=told.state,
        eventTime=iso(event.emitted_at),
        run=Run(
            runId=open_lineage_run_id(run.run_id), facets=run_facets if tests is None else {**run_facets, _TESTS: tests}
        ),
        job=_job(run, plan, namespace),
        inputs=told.inputs,
        outputs=told.outputs,
        producer=producer(),
    )


def open_lineage_run_id(run_id: str) -> str:
    """The id of a run as a UUID, which OpenLineage requires; derived from the id if that is not one."""
    try:
        return str(UUID(run_id))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"clew:{run_id}"))


def _told(event: StoredEvent, plan: Plan | None, namespace: str, checks: ToldChecks | None) -> _Told | None:
    inputs = inputs_of(plan, namespace, checks) if plan else []
    outputs = outputs_of(plan, namespace) if plan else []
    match event.body:
        case RunStarted():
            return _Told(RunState.START, inputs, outputs)
        case RunResumed():
            return _Told(RunState.RUNNING, [], [])
        case StepCompleted() as done:
            output = _written(event.step_id, done, plan, namespace)
            return _Told(RunState.RUNNING, [], [output]) if output else None
        case RunCompleted():
            return _Told(RunState.COMPLETE, inputs, outputs)
        case RunFailed(error=error):
            return _Told(RunState.FAIL, inputs, outputs, f"{error.code}: {error.message}")
        case RunCancelled():
            return _Told(RunState.ABORT, inputs, outputs)
        case _:
            return None


def _written(step_id: str, done: StepCompleted, plan: Plan | None, namespace: str) -> OutputDataset | None:
    """What a step wrote, if it is an output: the dataset of the plan with what is known now that it is there."""
    steps = [step for step in plan.outputs if str(step.seq) == step_id] if plan else []
    if plan is None or not steps:
        return None
    output = output_of(plan, steps[0], namespace)
    facets = output.facets if output.facets is not None else {}
    for artifact in done.artifacts:
        if artifact.kind == OUTPUT_KIND:
            kind, _, place = artifact.uri.partition(":")
            facets["dataSource"] = datasource_dataset.DatasourceDatasetFacet(name=kind, uri=place, producer=producer())
        elif artifact.kind == DATASET_KIND:
            facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
                artifact.uri.rpartition("@")[2], producer=producer()
            )
    statistics = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(
        rowCount=done.counts.get("rows_written", 0), producer=producer()
    )
    return OutputDataset(output.namespace, output.name, facets=facets, outputFacets={"outputStatistics": statistics})


def _job(run: RunRecord, plan: Plan | None, namespace: str) -> Job:
    kind = job_type_job.JobTypeJobFacet("BATCH", "CLEW", jobType="PROJECT", producer=producer())
    if plan is None:
        return Job(namespace, run.request.project_id, facets={"jobType": kind})
    title = documentation_job.DocumentationJobFacet(plan.title, producer=producer())
    return Job(namespace, run.request.project_id, facets={"jobType": kind, "documentation": title})


def _run_facets(run: RunRecord, event: StoredEvent, error: str | None) -> dict[str, RunFacet]:
    request = run.request
    tags = {
        "clew.run_id": run.run_id,
        "clew.event_id": event.event_id,
        "clew.period": request.period,
        "clew.project_version": request.project_version,
        "clew.plan_digest": request.plan.digest,
        "clew.retry_of": request.retry_of,
    }
    facets: dict[str, RunFacet] = {
        "processing_engine": processing_engine_run.ProcessingEngineRunFacet(
            version("clew"), name="clew", producer=producer()
        ),
        "tags": tags_run.TagsRunFacet(
            tags=[tags_run.TagsRunFacetFields(key, value, source="CLEW") for key, value in tags.items() if value],
            producer=producer(),
        ),
    }
    if error is not None:
        facets["errorMessage"] = error_message_run.ErrorMessageRunFacet(error, "PYTHON", producer=producer())
    return facets
