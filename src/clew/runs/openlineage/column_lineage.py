"""The origin of the columns of an output, as a plan knows it.

Values that go into a column are direct inputs of it. What decides on which rows it is set is an indirect one; what
decides which rows are written at all is an indirect input of the whole output.
"""

from collections.abc import Iterable

from openlineage.client.facet_v2 import column_lineage_dataset as facets

from clew.plan import Plan
from clew.plan.lineage import ColumnLineage, SourceColumn
from clew.plan.step_lineage import lineage_after, selection_of, state_after
from clew.plan.steps import OutputStep
from clew.runs.openlineage.producer import producer

_IDENTITY = ("DIRECT", "IDENTITY")
_COMPUTED = ("DIRECT", "TRANSFORMATION")
_DECIDES = ("INDIRECT", "CONDITIONAL")
_SELECTS = ("INDIRECT", "FILTER")


def column_lineage(plan: Plan, step: OutputStep, namespace: str) -> facets.ColumnLineageDatasetFacet:
    """The facet of what an output step writes."""
    written = set(step.columns)
    lineages = [lineage for lineage in lineage_after(plan, step.seq) if lineage.column in written]
    state = state_after(plan, step.seq)
    selection = (
        selection_of(state, step.selector)
        if step.include_deleted
        else (selection_of(state, step.selector) | state.deletions)
    )
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
