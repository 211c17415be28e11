"""Outputs that become datasets: what another project sees of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clew.diagnostics import Span
from clew.lang.conversion import assignable
from clew.lang.types import STRING
from clew.model import Append, Dataset, Output, Project, Update
from clew.plan.columns import Column
from clew.plan.datasets import DatasetColumn, DatasetUse
from clew.plan.expansion import Expansion, PlacedOperation
from clew.plan.plan import Plan
from clew.plan.privacy import privacy_by_column
from clew.plan.row_names import names_of_registered
from clew.plan.steps import OutputStep


@dataclass(frozen=True, slots=True)
class Registration:
    """An output operation that makes a dataset."""

    project: Project
    placed: PlacedOperation

    @property
    def span(self) -> Span:
        """The place of the dataset's name."""
        return self.placed.operation.place("arguments", "register_as_dataset")


def registrations(expansions: Iterable[tuple[Project, Expansion]]) -> dict[str, list[Registration]]:
    """The outputs that make datasets, by the names of these."""
    found = dict[str, list[Registration]]()
    for project, expansion in expansions:
        for placed in expansion.operations:
            if isinstance(placed.operation, Output) and placed.operation.arguments.register_as_dataset:
                name = placed.operation.arguments.register_as_dataset
                found.setdefault(name, []).append(Registration(project, placed))
    return found


def datasets_named_by(project: Project, expansion: Expansion) -> Iterator[str]:
    """The ids or names of all datasets that a project takes rows from."""
    yield project.input_dataset.dataset_id
    for placed in expansion.operations:
        match placed.operation:
            case Update(arguments=arguments):
                yield from (join.dataset_id for join in arguments.joins)
            case Append(arguments=arguments):
                yield arguments.source.dataset_id
            case _:
                pass


def registered_use(plan: Plan, name: str) -> DatasetUse:
    """The dataset that a plan registers under a name, as an input for another project.

    It keeps the table name of the project that makes it. Its rows carry their period if `_period` is written,
    and the names that people know them by.
    """
    step, columns = _written(plan, name)
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
        row_names=names_of_registered(plan, step),
    )


def registration_mismatches(plan: Plan, name: str, declared: Dataset) -> Iterator[str]:
    """In what a registered output differs from the dataset that a file defines under the same name."""
    step, columns = _written(plan, name)
    written = {column.name: column.type for column in columns}
    for column in declared.main_table.all_columns:
        if column.name.startswith("_"):
            if column.name not in step.columns and column.name not in written:
                yield f'{name} declares "{column.name}", which step {step.seq} does not write'
        elif column.name not in written:
            yield f'{name} declares a column "{column.name}", which step {step.seq} does not write'
        elif not assignable(written[column.name], column.type):
            yield f'{name} declares "{column.name}" as {column.type}, step {step.seq} writes {written[column.name]}'


def _written(plan: Plan, name: str) -> tuple[OutputStep, tuple[Column, ...]]:
    step = next(step for step in plan.steps if isinstance(step, OutputStep) and step.registers == name)
    by_name = {column.name: column for column in plan.columns_after(step.seq)}
    return step, tuple(by_name[column] for column in step.columns if column in by_name)
