"""Events of a run as OpenLineage run events.

    RunStarted                       START       what the run reads and writes
    RunResumed                       RUNNING
    StepCompleted of an output       RUNNING     rows written, where, and the version of the dataset
    RunCompleted                     COMPLETE    what it has read and written, with the origin of every column
    RunFailed                        FAIL        why
    RunCancelled                     ABORT

An event gives the same document however often it is sent: its time is that of the event, and a tag has the event's id.
"""

from dataclasses import dataclass
from importlib.metadata import version
from uuid import NAMESPACE_URL, UUID, uuid5

from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import (
    RunFacet,
    dataset_version_dataset,
    datasource_dataset,
    documentation_job,
    error_message_run,
    job_type_job,
    output_statistics_output_dataset,
    processing_engine_run,
    tags_run,
)

from clew.plan import Plan
from clew.plan.steps import OutputStep
from clew.runs.events.bodies import RunCancelled, RunCompleted, RunFailed, RunResumed, RunStarted, StepCompleted
from clew.runs.events.codec import iso
from clew.runs.events.envelope import StoredEvent
from clew.runs.openlineage.datasets import inputs_of, output_of, outputs_of
from clew.runs.openlineage.producer import producer
from clew.runs.request import RunRecord

_OUTPUT, _VERSION = "output", "dataset-version"


@dataclass(frozen=True, slots=True)
class _Told:
    """What an event says in OpenLineage's terms."""

    state: RunState
    inputs: list[InputDataset]
    outputs: list[OutputDataset]
    error: str | None = None


def run_event(run: RunRecord, event: StoredEvent, plan: Plan | None, namespace: str) -> RunEvent | None:
    """The OpenLineage event, or None where OpenLineage has no word for what happened."""
    told = _told(event, plan, namespace)
    if told is None:
        return None
    return RunEvent(
        eventType=told.state,
        eventTime=iso(event.emitted_at),
        run=Run(runId=open_lineage_run_id(run.run_id), facets=_run_facets(run, event, told.error)),
        job=_job(run, plan, namespace),
        inputs=told.inputs,
        outputs=told.outputs,
        producer=producer(),
    )


def open_lineage_run_id(run_id: str) -> str:
    """The id of a run, which has to be a UUID in OpenLineage; one made from it where it is none."""
    try:
        return str(UUID(run_id))
    except ValueError:
        return str(uuid5(NAMESPACE_URL, f"clew:{run_id}"))


def _told(event: StoredEvent, plan: Plan | None, namespace: str) -> _Told | None:
    inputs = inputs_of(plan, namespace) if plan else []
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
    steps = [step for step in plan.steps if str(step.seq) == step_id] if plan else []
    if plan is None or not steps or not isinstance(steps[0], OutputStep):
        return None
    output = output_of(plan, steps[0], namespace)
    facets = output.facets if output.facets is not None else {}
    for artifact in done.artifacts:
        if artifact.kind == _OUTPUT:
            kind, _, place = artifact.uri.partition(":")
            facets["dataSource"] = datasource_dataset.DatasourceDatasetFacet(name=kind, uri=place, producer=producer())
        elif artifact.kind == _VERSION:
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
