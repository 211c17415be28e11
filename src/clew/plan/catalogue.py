"""The datasets that projects can name: those that files define, and those that other projects register."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Literal

from clew.deferred import dataclass
from clew.definitions import Dataset, DatasetRef, Project, Status, TableDefinition
from clew.definitions.checks import Check
from clew.diagnostics import Diagnostic, Problems, Span, did_you_mean
from clew.diagnostics.codes.workspace import DATASET_INACTIVE, UNKNOWN_DATASET, UNKNOWN_RESOLVER
from clew.lang.conversion import assignable
from clew.lang.types import STRING
from clew.plan.columns import Column
from clew.plan.datasets import DatasetColumn, DatasetUse, PrivacyName
from clew.plan.expansion import ExpandedProject, PlacedOperation
from clew.plan.names import names_of_registered
from clew.plan.plan import Plan
from clew.plan.privacy import LABELS, privacy_by_column


class Unknowable:
    """Placeholder for a dataset whose definition has errors; its users get no further errors."""


UNKNOWABLE = Unknowable()

Registered = Callable[[str], DatasetUse | Unknowable | Diagnostic | None]
"""Finds a dataset that a project registers, says why it cannot be used, or None if no project registers it."""


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What dataset names mean for one project."""

    datasets: Mapping[str, Dataset]
    """By id and by name."""
    inline: Mapping[str, DatasetUse]
    """Datasets that a scenario brings along, which hide others of the same name."""
    default_resolver: str | None
    overrides: Mapping[str, str]
    """The project's own choice of resolvers, by dataset."""
    broken: frozenset[str]
    registered: Registered
    registered_names: frozenset[str] = frozenset()
    knows_default_resolver: bool = True
    """Whether there is no default resolver where none is known, rather than one whose file has errors."""

    def use(self, reference: DatasetRef, problems: Problems) -> DatasetUse | None:
        """The dataset of a reference, or None if it is not known. Says what is wrong with it."""
        name = reference.dataset_id
        found = self._find(name)
        if isinstance(found, Unknowable):
            return None
        if isinstance(found, Diagnostic):
            problems.report(found)
            return None
        if found is None:
            hint = did_you_mean(name, [*self.datasets, *self.inline, *self.registered_names])
            problems.report(UNKNOWN_DATASET.at(reference.place("dataset_id"), name=name, hint=hint))
            return None
        if isinstance(found, Dataset):
            return self._declared(found, reference, problems)
        override = self.overrides.get(name) if found.resolver_source == "managed" else None
        if override is not None:
            found = replace(found, resolver_id=override, resolver_source="project override")
            self._require_version(found, None, reference, problems)
        return replace(found, pinned_version=reference.dataset_version)

    def checks_of(self, use: DatasetUse) -> tuple[Check, ...]:
        """The checks that the definition of a dataset declares. A scenario with other columns has none of them."""
        declared = self.datasets.get(use.dataset_id)
        if declared is None:
            return ()
        named = {column.name for column in declared.main_table.all_columns}
        is_other = use.resolver_source == "inline" and not named <= {column.name for column in use.columns}
        return () if is_other else declared.checks

    def registered_id(self, name: str) -> str:
        """Under what an output that becomes a dataset is kept."""
        return registered_id(name, self.datasets)

    def _find(self, name: str) -> Dataset | DatasetUse | Unknowable | Diagnostic | None:
        if name in self.inline:
            return self.inline[name]
        if name in self.datasets:
            return self.datasets[name]
        if name in self.broken or not name:
            return UNKNOWABLE
        return self.registered(name)

    def _declared(self, dataset: Dataset, reference: DatasetRef, problems: Problems) -> DatasetUse:
        span, pinned = reference.place("dataset_id"), reference.dataset_version
        is_registered = bool(self.registered_names & {dataset.id, dataset.name})
        if dataset.status is not Status.ACTIVE:
            problems.report(DATASET_INACTIVE.at(span, name=dataset.id, status=dataset.status.value))
        use = replace(
            use_of_table(dataset.id, dataset.name, dataset.main_table, dataset.natural_key), pinned_version=pinned
        )
        resolver = self._resolver(dataset)
        if resolver is not None and not (is_registered and resolver[1] == "default"):
            self._require_version(use, dataset.version, reference, problems)
            return replace(use, resolver_id=resolver[0], resolver_source=resolver[1])
        if not is_registered and self.knows_default_resolver:
            problem = f'nothing says where the data of "{dataset.id}" is: it has no resolver_id and there is no default'
            problems.report(UNKNOWN_RESOLVER.at(span, problem=problem))
        return replace(use, labels_privacy=_strongest(use.columns))

    def _require_version(self, use: DatasetUse, version: int | None, reference: DatasetRef, problems: Problems) -> None:
        hint = version_of_resolved(reference.dataset_version, version)
        if hint is not None:
            name = f"{use.dataset_id} version {reference.dataset_version}"
            problems.report(UNKNOWN_DATASET.at(reference.place("dataset_version"), name=name, hint=hint))

    def _resolver(self, dataset: Dataset) -> tuple[str, Literal["project override", "dataset", "default"]] | None:
        override = self.overrides.get(dataset.id) or self.overrides.get(dataset.name)
        if override is not None:
            return override, "project override"
        if dataset.resolver_id is not None:
            return dataset.resolver_id, "dataset"
        return (self.default_resolver, "default") if self.default_resolver is not None else None


def _strongest(columns: Iterable[DatasetColumn]) -> PrivacyName | None:
    """What may restrict the labels of a registered dataset, where only its definition is known."""
    found = {column.privacy for column in columns}
    return "secret" if "secret" in found else "personal" if "personal" in found else None


def version_of_resolved(pinned: int | None, version: int | None) -> str | None:
    """Why a dataset that a resolver finds does not have the version that is asked for; None if it does.

    Registered datasets keep all their versions. A resolver finds the data as it is, under the definition as it is.
    """
    if pinned is None or pinned == version:
        return None
    if version is None:
        return "the data comes from a resolver, which keeps no versions"
    return f"the definition has version {version}, and the data comes from a resolver, which keeps no other versions"


def registering_problem(declared: Dataset) -> tuple[str, str] | None:
    """Why no output can become a version of a dataset, and what to do; None if one can.

    It could be registered, but never read: its resolver says where the data is.
    """
    if declared.resolver_id is None:
        return None
    problem = f'the dataset "{declared.id}" has its own resolver, "{declared.resolver_id}"'
    hint = f"remove `resolver_id` from {declared.file}, or register under another name"
    return f"{problem}: an output cannot become a version of it", hint


def use_of_table(dataset_id: str, name: str, table: TableDefinition, natural_key: tuple[str, ...]) -> DatasetUse:
    """A table of a file, as a plan describes it."""
    return DatasetUse(
        dataset_id=dataset_id,
        name=name,
        table=table.name,
        temporal_mode=table.temporal_mode.value,
        columns=tuple(
            DatasetColumn(column.name, column.type, column.nullable, column.privacy.value if column.privacy else None)
            for column in table.all_columns
        ),
        natural_key=natural_key,
    )


@dataclass(frozen=True, slots=True)
class RegisteringOutput:
    """An output operation that makes a dataset."""

    project: Project
    placed: PlacedOperation

    @property
    def span(self) -> Span:
        """The place of the dataset's name."""
        return self.placed.operation.place("arguments", "register_as_dataset")


def registrations(
    expansions: Iterable[tuple[Project, ExpandedProject]], declared: Mapping[str, Dataset]
) -> dict[str, list[RegisteringOutput]]:
    """The outputs that make datasets, by the ids of these, or by their names where no file defines them."""
    found = dict[str, list[RegisteringOutput]]()
    for project, expansion in expansions:
        for placed in expansion.operations:
            if placed.operation.registers:
                name = registered_id(placed.operation.registers, declared)
                found.setdefault(name, []).append(RegisteringOutput(project, placed))
    return found


def registered_id(name: str, declared: Mapping[str, Dataset]) -> str:
    """Under what a registered dataset is kept: the id, where a file defines one with this id or name."""
    return declared[name].id if name in declared else name


def datasets_named_by(project: Project, expansion: ExpandedProject) -> Iterator[str]:
    """The ids or names of all datasets that a project takes rows from."""
    yield project.input_dataset.dataset_id
    for placed in expansion.operations:
        yield from (dataset.dataset_id for dataset in placed.operation.datasets)
    yield from (dataset.dataset_id for check in project.checks for dataset in check.datasets)


def registered_use(plan: Plan, name: str) -> DatasetUse:
    """The dataset that a plan registers under a name, as an input for another project.

    It keeps the table name of the project that makes it. Its rows carry their period if `_period` is written,
    and the names that people know them by.
    """
    step = plan.registering(name)
    columns = _written(plan, step.seq, step.columns)
    privacy = privacy_by_column(plan)
    has_period = "_period" in step.columns
    period = (DatasetColumn("_period", STRING, nullable=False),) if has_period else ()
    return DatasetUse(
        dataset_id=name,
        name=name,
        table=plan.input.table,
        temporal_mode="period" if has_period else "none",
        columns=(
            *(DatasetColumn(column.name, column.type, privacy=privacy.get(column.name)) for column in columns),
            *period,
        ),
        labels_privacy=privacy.get(LABELS) if LABELS in step.columns else None,
        row_names=names_of_registered(plan.input, [each for each in plan.steps if each.seq < step.seq], step.columns),
    )


def registration_mismatches(plan: Plan, name: str, declared: Dataset) -> Iterator[str]:
    """In what a registered output differs from the dataset that a file defines under the same name."""
    step = plan.registering(name)
    columns = _written(plan, step.seq, step.columns)
    written = {column.name: column.type for column in columns}
    for column in declared.main_table.all_columns:
        if column.name.startswith("_"):
            if column.name not in step.columns and column.name not in written:
                yield f'{name} declares "{column.name}", which step {step.seq} does not write'
        elif column.name not in written:
            yield f'{name} declares a column "{column.name}", which step {step.seq} does not write'
        elif not assignable(written[column.name], column.type):
            yield f'{name} declares "{column.name}" as {column.type}, step {step.seq} writes {written[column.name]}'


def _written(plan: Plan, seq: int, names: Iterable[str]) -> tuple[Column, ...]:
    by_name = {column.name: column for column in plan.columns_after(seq)}
    return tuple(by_name[name] for name in names if name in by_name)
