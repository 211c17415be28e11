"""Which columns hold what is not for everybody: those that are marked, and all that is made from them."""

from collections.abc import Iterator

from clew.lang.typed import columns_of
from clew.plan.datasets import DatasetUse, Privacy
from clew.plan.plan import Plan
from clew.plan.steps import AppendStep, UpdateStep

LABELS = "_labels"


def privacy_by_column(plan: Plan) -> dict[str, Privacy]:
    """Columns of the plan that derive from personal or secret ones; secret wins.

    What a column becomes in any step counts for all of them: nobody has to know at which step it turned personal.
    """
    sources = _marked_sources(plan)
    marked = dict[str, Privacy]()
    for lineage in plan.lineage:
        found = {sources.get((source.dataset, source.column)) for source in lineage.derives_from}
        if "secret" in found:
            marked[lineage.column] = "secret"
        elif "personal" in found:
            marked[lineage.column] = "personal"
    return marked


def privacy_of_labels(plan: Plan) -> Privacy | None:
    """Whether `_labels`, which has no lineage of its own, is ever set from a marked column."""
    sources, marked = _marked_sources(plan), privacy_by_column(plan)
    found = set[Privacy | None]()
    for step in plan.steps:
        if not isinstance(step, UpdateStep):
            continue
        joined = {join.alias: join.dataset.dataset_id for join in step.joins}
        for assignment in step.assignments:
            if assignment.column == LABELS:
                for table, column in columns_of(assignment.value.tree):
                    in_join = sources.get((joined[table], column)) if table in joined else None
                    found.add(in_join or (None if table in joined else marked.get(column)))
    return "secret" if "secret" in found else "personal" if "personal" in found else None


def _marked_sources(plan: Plan) -> dict[tuple[str, str], Privacy]:
    sources = dict[tuple[str, str], Privacy]()
    for use in _datasets_of(plan):
        for column in use.columns:
            if column.privacy is not None:
                sources[use.dataset_id, column.name] = column.privacy
    return sources


def _datasets_of(plan: Plan) -> Iterator[DatasetUse]:
    yield plan.input
    for step in plan.steps:
        if isinstance(step, UpdateStep):
            yield from (join.dataset for join in step.joins)
        elif isinstance(step, AppendStep):
            yield step.source
