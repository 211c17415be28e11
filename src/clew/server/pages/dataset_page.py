"""A dataset: what it is, its columns with their classes, who produces and who reads it, and its versions."""

from collections.abc import Iterator

from clew.api.datasets import DatasetView, VersionView
from clew.api.workspace_files import WorkspaceFiles
from clew.deferred import dataclass
from clew.definitions import Dataset
from clew.diagnostics import UserError
from clew.plan import Plan
from clew.plan.words import whereabouts
from clew.server.pages import addresses

_MODES = {
    "period": "rows belong to periods; a run sees those of its own",
    "bitemporal": "rows are in force for a time; a run sees those of the first day of its period",
    "none": "a run sees all rows, whatever its period",
}


@dataclass(frozen=True, slots=True)
class DatasetColumnLine:
    """A column."""

    name: str
    type: str
    is_key: bool
    privacy: str
    description: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A project that produces or reads the dataset."""

    project: str
    address: str
    how: str


@dataclass(frozen=True, slots=True)
class DatasetPage:
    """A dataset."""

    dataset: str
    name: str
    status: str
    declared: str | None
    description: str
    temporal_mode: str
    found_by: str
    """Where its data is, for people; nothing if no project reads it."""
    columns: tuple[DatasetColumnLine, ...]
    has_descriptions: bool
    producers: tuple[Neighbour, ...]
    readers: tuple[Neighbour, ...]
    versions: tuple[VersionView, ...]


def dataset_page(view: DatasetView, files: WorkspaceFiles) -> DatasetPage:
    """The page of a dataset."""
    declared = next((each for each in files.loaded.workspace.datasets if each.id == view.dataset), None)
    plans = list(_plans(files))
    uses = [use for _, plan in plans for use in plan.datasets_read if use.dataset_id == view.dataset]
    columns = tuple(_columns(view, declared))
    return DatasetPage(
        dataset=view.dataset,
        name=view.name,
        status=view.status,
        declared=view.declared,
        description=declared.description if declared is not None else "",
        temporal_mode=_MODES.get(str(declared.main_table.temporal_mode), "") if declared is not None else "",
        found_by=whereabouts(uses[0]) if uses else "",
        columns=columns,
        has_descriptions=any(column.description for column in columns),
        producers=tuple(
            Neighbour(project, addresses.project(project), f"step {step.seq}, {step.name}")
            for project, plan in plans
            for step in plan.outputs
            if step.registers == view.dataset
        ),
        readers=tuple(_readers(view.dataset, plans)),
        versions=view.versions,
    )


def _plans(files: WorkspaceFiles) -> Iterator[tuple[str, Plan]]:
    """The projects that compile, with their plans."""
    for project in files.loaded.workspace.projects:
        try:
            yield project.id, files.plan(project.id)
        except UserError:
            continue


def _columns(view: DatasetView, declared: Dataset | None) -> Iterator[DatasetColumnLine]:
    known = {column.name: column for column in declared.main_table.all_columns} if declared is not None else {}
    keys = set(declared.natural_key) if declared is not None else set()
    for name, type_ in view.columns:
        column = known.get(name)
        privacy = column.privacy.value if column is not None and column.privacy is not None else ""
        about = column.description if column is not None else ""
        yield DatasetColumnLine(name, type_, name in keys, privacy, about)


def _readers(dataset: str, plans: list[tuple[str, Plan]]) -> Iterator[Neighbour]:
    for project, plan in plans:
        roles = ["its input"] if plan.input.dataset_id == dataset else []
        roles += [
            f"step {step.seq}, {each.role}"
            for step in plan.steps
            for each in step.datasets
            if each.use.dataset_id == dataset
        ]
        if roles:
            yield Neighbour(project, addresses.project(project), "; ".join(dict.fromkeys(roles)))
