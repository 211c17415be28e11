"""The privacy class of columns: those marked as personal or secret, and all columns that give something of them away.

A column of the working dataset has the class of the strictest column that

- its values *derive* from, or
- a selector or join condition read that *chose* its value: `risk = "high"` where `diagnosis = ...` tells the diagnosis.

Group keys and deletions decide only which rows go into a summary. They are influences too, but do not count: otherwise
every total by customer would be personal. ADR 23 gives the reasons.
"""

from collections.abc import Iterable, Mapping

from clew.deferred import dataclass
from clew.definitions.privacy import InfluencedColumns
from clew.plan.datasets import DatasetUse, PrivacyName
from clew.plan.lineage import Origins
from clew.plan.plan import Plan, state_after

LABELS = "_labels"

Marks = Mapping[tuple[str, str], PrivacyName]
"""The classes that dataset and column were given, in files or in a plan."""


@dataclass(frozen=True, slots=True)
class ColumnClasses:
    """Why columns are not public."""

    derived: Mapping[str, PrivacyName]
    """By what their values derive from."""
    chosen: Mapping[str, PrivacyName]
    """By what selectors and join conditions read that chose their values."""

    def all(self) -> dict[str, PrivacyName]:
        """The class of each column that is not public, for both reasons."""
        both = (
            (name, strictest((self.derived.get(name), self.chosen.get(name))))
            for name in {**self.derived, **self.chosen}
        )
        return {name: privacy for name, privacy in both if privacy is not None}

    def merely_chosen(self) -> frozenset[str]:
        """Columns whose values tell little, and the choice of them more: even that one is missing tells something."""
        return frozenset(name for name, privacy in self.all().items() if self.derived.get(name) != privacy)


def classes_of(
    plan: Plan, *, marks: Marks | None = None, influenced: InfluencedColumns = InfluencedColumns.SAME
) -> ColumnClasses:
    """The classes of the columns of the working dataset, `_labels` among them.

    What a column becomes in any step counts for all of them: callers need not know at which step it became personal.
    `marks` are classes that are known beside those of the plan; the stricter one counts.
    """
    sources = _marked_sources(plan, marks or {})
    derived, chosen = dict[str, PrivacyName](), dict[str, PrivacyName]()
    for column, origins in _origins(plan).items():
        choosing = origins.chosen_by if influenced is InfluencedColumns.SAME else ()
        for classes, counting in ((derived, origins.derives_from), (chosen, choosing)):
            found = strictest(sources.get((source.dataset, source.column)) for source in counting)
            if found is not None:
                classes[column] = found
    labels = strictest((derived.get(LABELS), plan.input.labels_privacy))
    if labels is not None:
        derived[LABELS] = labels
    return ColumnClasses(derived, chosen)


def privacy_by_column(plan: Plan) -> dict[str, PrivacyName]:
    """The class of each column of the working dataset that is not public; secret wins."""
    return classes_of(plan).all()


def privacy_of_dataset(use: DatasetUse, marks: Marks | None = None) -> dict[str, PrivacyName]:
    """The class of each column of a dataset as a plan reads it, without public ones."""
    found = {
        column.name: strictest((column.privacy, (marks or {}).get((use.dataset_id, column.name))))
        for column in use.columns
    }
    return {name: privacy for name, privacy in found.items() if privacy is not None}


def strictest(classes: Iterable[PrivacyName | None]) -> PrivacyName | None:
    """The class of something that has to do with several columns; None for public."""
    found = set(classes)
    if "secret" in found:
        return "secret"
    return "personal" if "personal" in found else None


def set_by_steps(plan: Plan) -> frozenset[str]:
    """Columns whose values need not be those that were loaded: steps have set them, or added them."""
    loaded = {column.name for column in plan.input.columns}
    found = {lineage.column for lineage in plan.lineage if lineage.column not in loaded} | {LABELS}
    for step in plan.steps:
        found |= set(step.columns_calculated)
    return frozenset(found)


def _origins(plan: Plan) -> dict[str, Origins]:
    """Where the columns come from, `_labels` among them, after the last step."""
    end = max((step.seq for step in plan.steps), default=0)
    found = {LABELS: Origins(), **state_after(plan, end).working}
    for lineage in plan.lineage:
        found[lineage.column] = found.get(lineage.column, Origins()) | Origins(frozenset(lineage.derives_from))
    return found


def _marked_sources(plan: Plan, marks: Marks) -> dict[tuple[str, str], PrivacyName]:
    sources = dict[tuple[str, str], PrivacyName]()
    for use in plan.datasets_read:
        for name, privacy in privacy_of_dataset(use, marks).items():
            sources[use.dataset_id, name] = privacy
    return sources
