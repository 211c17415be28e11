"""A dataset: what it is, its columns with their classes, who produces and who reads it, and its versions."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from clew.api.datasets import DatasetView, VersionView
from clew.api.run import Run
from clew.api.workspace_files import WorkspaceFiles
from clew.deferred import dataclass
from clew.definitions import Dataset
from clew.diagnostics import UserError
from clew.lang.typed import Value
from clew.lang.types import Type
from clew.plan import Plan
from clew.plan.words import whereabouts
from clew.server.pages import addresses, words
from clew.server.pages.output_page import condition_of, output_step
from clew.server.pages.words import ValueCell

_FEW = 8
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
    preview: "Preview | None"


@dataclass(frozen=True, slots=True)
class Preview:
    """A few rows of the dataset, and where they are from."""

    told: str
    address: str
    """The run that read or wrote them."""
    head: tuple[tuple[str, bool], ...]
    """Columns, and whether each holds numbers."""
    rows: tuple[tuple[ValueCell, ...], ...]
    problem: str = ""
    """Why there are none to show."""


def preview_of(view: DatasetView, runs: Sequence[Run], find: Callable[[str], Run]) -> Preview | None:
    """The first rows that the newest version has, or that a run has read; None where no run has."""
    if view.versions and view.versions[0].written:
        written = view.versions[0].written[-1]
        run = find(written.run_id)
        return _shown(run, "written", _written(run, written.seq))
    for run in runs:
        if run.plan is not None and any(use.dataset_id == view.dataset for use in run.plan.datasets_read):
            return _shown(run, "read", _read(run, view.dataset))
    return None


_Rows = tuple[Sequence[tuple[str, Type]], Sequence[Mapping[str, Value]]]
"""Columns, and the values of some rows."""


def _read(run: Run, dataset: str) -> Callable[[], _Rows]:
    def ask() -> _Rows:
        found = run.first_read(dataset)
        return found.columns, found.rows

    return ask


def _written(run: Run, seq: int) -> Callable[[], _Rows]:
    def ask() -> _Rows:
        trace = run.open_trace()
        step = output_step(trace, seq)
        found = trace.search(condition_of(step), seq, limit=_FEW)
        types = dict(trace.columns.columns(trace.run.columns(seq)))
        return [(name, types[name]) for name in step.columns if name in types], [row.state for row in found.rows]

    return ask


def _shown(run: Run, how: str, ask: Callable[[], _Rows]) -> Preview:
    told = f"The first rows that were {how} for {run.period}"
    try:
        columns, rows = ask()
    except UserError as error:
        return Preview(told, addresses.run(run.id), (), (), error.diagnostic.message)
    return Preview(
        told=told,
        address=addresses.run(run.id),
        head=tuple((name, type_.is_numeric) for name, type_ in columns),
        rows=tuple(tuple(words.cell(row.get(name)) for name, _ in columns) for row in rows),
    )


def dataset_page(view: DatasetView, files: WorkspaceFiles, preview: Preview | None = None) -> DatasetPage:
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
        preview=preview,
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
