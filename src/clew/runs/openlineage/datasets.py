"""The datasets of a plan as OpenLineage names them: by their ids in the workspace, so that an output of one project is
recognised as the input of another."""

from collections.abc import Iterable

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import DatasetFacet, schema_dataset

from clew.plan import Plan
from clew.plan.datasets import DatasetUse
from clew.plan.steps import AppendStep, OutputStep, UpdateStep
from clew.runs.openlineage.column_lineage import column_lineage
from clew.runs.openlineage.producer import producer


def inputs_of(plan: Plan, namespace: str) -> list[InputDataset]:
    """Everything that a run of the plan reads."""
    return [
        InputDataset(namespace, use.dataset_id, facets={"schema": _schema((c.name, str(c.type)) for c in use.columns)})
        for use in {use.dataset_id: use for use in _uses(plan)}.values()
    ]


def outputs_of(plan: Plan, namespace: str) -> list[OutputDataset]:
    """Everything that a run of the plan writes, with the origin of each column."""
    return [output_of(plan, step, namespace) for step in plan.steps if isinstance(step, OutputStep)]


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


def _uses(plan: Plan) -> Iterable[DatasetUse]:
    yield plan.input
    for step in plan.steps:
        if isinstance(step, UpdateStep):
            yield from (join.dataset for join in step.joins)
        elif isinstance(step, AppendStep):
            yield step.source


def _schema(columns: Iterable[tuple[str, str]]) -> schema_dataset.SchemaDatasetFacet:
    fields = [
        schema_dataset.SchemaDatasetFacetFields(name, type=type_, ordinal_position=position)
        for position, (name, type_) in enumerate(columns, start=1)
    ]
    return schema_dataset.SchemaDatasetFacet(fields=fields, producer=producer())
