"""The datasets of a workspace: those that files declare, and the versions that runs registered."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from clew.api.opened_environment import EnvironmentAccess
from clew.api.state import State
from clew.api.workspace_files import WorkspaceFiles
from clew.deferred import dataclass
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.workspace import NO_SUCH_DATASET
from clew.runs.registry import DatasetVersion, RegisteredTable


@dataclass(frozen=True, slots=True)
class TableView:
    """A Delta or Iceberg table that is registered as it is."""

    table: str
    format: str
    version: int
    table_id: str
    rows: int

    @classmethod
    def of(cls, table: RegisteredTable) -> "TableView":
        """The table of a registered version."""
        return cls(table.shown, table.format, table.version, table.table_id, table.rows)

    def to_json(self) -> dict[str, object]:
        """The form of `datasets --json`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class AuthoredRows:
    """What one output has put into a version of a dataset, and is still in it."""

    run_id: str
    seq: int
    period: str
    rows: int | None
    """None in a table that holds rows of several outputs."""


@dataclass(frozen=True, slots=True)
class VersionView:
    """A version of a registered dataset."""

    version: int
    rows: int
    run_id: str
    step: int
    created_at: datetime
    rows_by_period: tuple[tuple[str, int], ...]
    """Of those that are told apart by period; a table that holds several periods says it in its rows."""
    tables: tuple[TableView, ...] = ()
    """Tables that are registered as they are."""
    written: tuple[AuthoredRows, ...] = ()
    """Whose rows are in it: also those of earlier versions that this one carries on."""

    def to_json(self) -> dict[str, object]:
        """The form of `datasets --json`."""
        return {
            "version": self.version,
            "rows": self.rows,
            "run_id": self.run_id,
            "step": self.step,
            "created_at": self.created_at.isoformat(),
            "periods": dict(self.rows_by_period),
            "tables": [table.to_json() for table in self.tables],
        }


@dataclass(frozen=True, slots=True)
class DatasetView:
    """A dataset as projects can use it."""

    dataset: str
    name: str
    declared: str | None
    """The file that declares it."""
    status: str
    columns: tuple[tuple[str, str], ...]
    versions: tuple[VersionView, ...]
    """Newest first; empty if its data is external and read when a run needs it."""

    def to_json(self) -> dict[str, object]:
        """The form of `datasets --json`."""
        return {
            "dataset": self.dataset,
            "name": self.name,
            "declared": self.declared,
            "registered": bool(self.versions),
            "status": self.status,
            "version": self.versions[0].version if self.versions else None,
            "columns": [{"name": name, "type": type_} for name, type_ in self.columns],
            "rows": self.versions[0].rows if self.versions else None,
            "run_id": self.versions[0].run_id if self.versions else None,
            "versions": [version.to_json() for version in self.versions],
        }


def list_datasets(files: WorkspaceFiles, state: State) -> list[DatasetView]:
    """All datasets by id."""
    registered = {version.dataset for version in state.datasets.datasets()}
    found = [
        DatasetView(
            dataset.id,
            dataset.name,
            dataset.file,
            dataset.status.value,
            tuple((column.name, str(column.type)) for column in dataset.main_table.columns),
            _versions(state.datasets.versions(dataset.id)),
        )
        for dataset in files.loaded.workspace.datasets
    ]
    declared = {view.dataset for view in found}
    for name in registered - declared:
        versions = state.datasets.versions(name)
        found.append(DatasetView(name, name, None, "active", versions[0].columns, _versions(versions)))
    return sorted(found, key=lambda view: view.dataset)


def find_dataset(files: WorkspaceFiles, state: State, name: str) -> DatasetView:
    """A dataset by id or name. Raises UserError NoSuchDataset with similar names if there is none."""
    views = list_datasets(files, state)
    for view in views:
        if name in {view.dataset, view.name}:
            return view
    hint = did_you_mean(name, [view.dataset for view in views])
    raise UserError(NO_SUCH_DATASET.anywhere(name=name, hint=hint))


def _versions(versions: Sequence[DatasetVersion]) -> tuple[VersionView, ...]:
    return tuple(
        VersionView(
            version.version,
            version.rows,
            version.run_id,
            version.seq,
            version.created_at,
            _by_period(version),
            tuple(TableView.of(table) for table in version.tables),
            _written(version),
        )
        for version in versions
    )


def _by_period(version: DatasetVersion) -> tuple[tuple[str, int], ...]:
    rows = dict[str, int]()
    found = [(file.period, file.rows) for file in version.files]
    for period, count in [*found, *((table.period, table.rows) for table in version.tables if not table.is_whole)]:
        rows[period] = rows.get(period, 0) + count
    return tuple(sorted(rows.items()))


def _written(version: DatasetVersion) -> tuple[AuthoredRows, ...]:
    rows = dict[tuple[str, int, str], int | None]()
    for file in version.files:
        author = file.run_id, file.seq, file.period
        rows[author] = (rows.get(author) or 0) + file.rows
    for table in version.tables:
        alone = table.rows if len(table.authors) == 1 else None
        rows |= {(each.run_id, each.seq, each.period): alone for each in table.authors}
    return tuple(AuthoredRows(*author, count) for author, count in rows.items())


class Datasets:
    """The datasets of a workspace in one environment."""

    def __init__(self, access: EnvironmentAccess) -> None:
        self._access = access

    def all(self) -> list[DatasetView]:
        """All datasets by id."""
        with self._access.opened() as at:
            return list_datasets(at.files, at.state)

    def find(self, name: str) -> DatasetView:
        """A dataset by id or name. Raises UserError NoSuchDataset with similar names if there is none."""
        with self._access.opened() as at:
            return find_dataset(at.files, at.state, name)
