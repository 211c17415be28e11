"""What Airflow's OpenLineage provider says about a task that runs a project of Clew.

Datasets have the names that Clew's own OpenLineage events give them, so that both are the same in a catalogue.
"""

from airflow.providers.openlineage.extractors import OperatorLineage
from openlineage.client.event_v2 import OutputDataset
from openlineage.client.facet_v2 import RunFacet, output_statistics_output_dataset, tags_run

from clew.bus.openlineage_events import inputs_of, output_of, outputs_of, producer
from clew.deferred import dataclass
from clew.integrations.run_documents import RunData
from clew.plan import Plan


@dataclass(frozen=True, slots=True)
class ToldRun:
    """A run with what names its datasets."""

    namespace: str
    plan: Plan | None
    document: RunData


def lineage_before(plan: Plan | None, namespace: str, tags: dict[str, str]) -> OperatorLineage:
    """What a run is going to read and write, as far as its plan is known."""
    return OperatorLineage(
        inputs=inputs_of(plan, namespace) if plan else [],
        outputs=outputs_of(plan, namespace) if plan else [],
        run_facets=_facets(tags),
    )


def lineage_after(told: ToldRun, tags: dict[str, str]) -> OperatorLineage:
    """What a run has read and written, with the rows of each output."""
    rows = {output["seq"]: int(output["rows"]) for output in told.document.get("outputs", ())}
    plan = told.plan
    return OperatorLineage(
        inputs=inputs_of(plan, told.namespace) if plan else [],
        outputs=[_counted(output_of(plan, step, told.namespace), rows.get(step.seq)) for step in plan.outputs]
        if plan
        else [],
        run_facets=_facets({**tags, "clew.run_id": str(told.document["run_id"])}),
    )


def _counted(output: OutputDataset, rows: int | None) -> OutputDataset:
    if rows is None:
        return output
    counted = output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rowCount=rows, producer=producer())
    return OutputDataset(
        output.namespace, output.name, facets=output.facets, outputFacets={"outputStatistics": counted}
    )


def _facets(tags: dict[str, str]) -> dict[str, RunFacet]:
    listed = [tags_run.TagsRunFacetFields(key, value, source="CLEW") for key, value in tags.items()]
    return {"tags": tags_run.TagsRunFacet(tags=listed, producer=producer())}
