"""Which columns are restricted: those marked as personal or secret, and all columns made from them."""

from collections.abc import Iterable, Iterator

from clew.plan.datasets import PrivacyName
from clew.plan.lineage import Origins, SourceColumn
from clew.plan.plan import Plan, state_after

LABELS = "_labels"


def privacy_by_column(plan: Plan) -> dict[str, PrivacyName]:
    """Columns of the plan that derive from personal or secret ones, `_labels` among them; secret wins.

    What a column becomes in any step counts for all of them: callers need not know at which step it became personal.
    """
    sources = _marked_sources(plan)
    marked = dict[str, PrivacyName]()
    for column, derives_from in _derivations(plan):
        found = {sources.get((source.dataset, source.column)) for source in derives_from}
        if "secret" in found:
            marked[column] = "secret"
        elif "personal" in found:
            marked[column] = "personal"
    if plan.input.labels_privacy is not None and marked.get(LABELS) != "secret":
        marked[LABELS] = plan.input.labels_privacy
    return marked


def set_by_steps(plan: Plan) -> frozenset[str]:
    """Columns whose values need not be those that were loaded: steps have set them, or added them."""
    loaded = {column.name for column in plan.input.columns}
    found = {lineage.column for lineage in plan.lineage if lineage.column not in loaded} | {LABELS}
    for step in plan.steps:
        found |= set(step.columns_calculated)
    return frozenset(found)


def _derivations(plan: Plan) -> Iterator[tuple[str, Iterable[SourceColumn]]]:
    for lineage in plan.lineage:
        yield lineage.column, lineage.derives_from
    end = max((step.seq for step in plan.steps), default=0)
    yield LABELS, state_after(plan, end).working.get(LABELS, Origins()).derives_from


def _marked_sources(plan: Plan) -> dict[tuple[str, str], PrivacyName]:
    sources = dict[tuple[str, str], PrivacyName]()
    for use in plan.datasets_read:
        for column in use.columns:
            if column.privacy is not None:
                sources[use.dataset_id, column.name] = column.privacy
    return sources
