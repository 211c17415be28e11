"""Versions of datasets that runs register, and of projects that people activate.

A version of a dataset is a list of immutable files, by period. Registering a run's output for a period creates the next
version: its files replace those of that period, and those of all other periods are carried over, so that closing
February does not remove January.

An output that is itself a Delta or Iceberg table is registered as it is: the version of the table that the output has
committed takes the place of files. Such a table belongs to its owner, and is never deleted from here.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, Protocol

from clew.deferred import dataclass
from clew.events.codec import canonical_json, encode
from clew.runs.leases import Lease
from clew.storage.store_reach import StoreReach


@dataclass(frozen=True, slots=True)
class DatasetFile:
    """An immutable Parquet file of a dataset version."""

    path: str
    """Relative to the storage root."""
    rows: int
    size: int
    sha256: str
    period: str
    """The run period that wrote it."""
    run_id: str
    seq: int
    """The output step that wrote it."""


@dataclass(frozen=True, slots=True)
class TableAuthor:
    """An output whose rows are in a registered table."""

    run_id: str
    seq: int
    period: str


@dataclass(frozen=True, slots=True)
class RegisteredTable:
    """A version of a Delta or Iceberg table that belongs to a version of a dataset."""

    address: str
    """The folder of the table."""
    shown: str
    """The table as messages name it."""
    format: str
    table_id: str
    version: int
    """Delta's version, or the id of Iceberg's snapshot."""
    digest: str
    """Of the file that defines the version: `sha256:...`."""
    metadata: str | None
    """Iceberg's metadata file."""
    rows: int
    size: int
    """Bytes of its data files."""
    period: str
    """The period of the run that has committed it."""
    run_id: str
    seq: int
    is_whole: bool
    """Whether the version also has what was in the table before, so that it takes the place of earlier versions."""
    authors: tuple[TableAuthor, ...]
    """The outputs whose rows may be in it, oldest first."""
    digests: tuple[tuple[str, str], ...] = ()
    """Its data files with the SHA-256 of each, so that readers notice a change."""
    store: StoreReach | None = None
    """How its store is reached, where the environment's own settings do not reach it."""


@dataclass(frozen=True, slots=True)
class Registration:
    """An output that will become a version of a dataset."""

    dataset: str
    run_id: str
    seq: int
    period: str
    table: str
    columns: tuple[tuple[str, str], ...]
    """Names and types, `_period` among them where rows carry it."""
    files: tuple[DatasetFile, ...]
    mode: Literal["overwrite", "append"] = "overwrite"
    """Whether the files take the place of the period's earlier ones or join them."""
    covers: tuple[str, ...] = ()
    """The periods below, whose rows a run of this period has taken too: files of theirs are replaced as well."""
    lake: RegisteredTable | None = None
    """The table that is registered as it is, in place of files."""

    @property
    def replaced(self) -> frozenset[str]:
        """The periods whose earlier rows it replaces."""
        return frozenset() if self.mode == "append" else frozenset({self.period, *self.covers})


def _content_of(table: RegisteredTable) -> dict[str, object]:
    return {name: value for name, value in encode(table).items() if name != "store"}


@dataclass(frozen=True, slots=True)
class DatasetVersion:
    """A version of a registered dataset."""

    dataset: str
    version: int
    table: str
    columns: tuple[tuple[str, str], ...]
    files: tuple[DatasetFile, ...]
    run_id: str
    seq: int
    created_at: datetime
    tables: tuple[RegisteredTable, ...] = ()
    """Tables that are registered as they are. A version has files or tables, never both."""

    @property
    def digest(self) -> str:
        """One digest of what is in the version: its files or tables with their rows, sizes and digests.

        How a store is reached is no part of what is in it.
        """
        found = [_content_of(table) for table in self.tables] if self.tables else encode(self.files)
        return hashlib.sha256(canonical_json(found).encode()).hexdigest()

    @property
    def size(self) -> int:
        """The bytes of its files; those of a table are its owner's."""
        return sum(file.size for file in self.files)

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return sum(file.rows for file in self.files) + sum(table.rows for table in self.tables)

    @property
    def authors(self) -> frozenset[tuple[str, int]]:
        """The runs and output steps whose rows are in it."""
        written = [(file.run_id, file.seq) for file in self.files]
        return frozenset([*written, *((each.run_id, each.seq) for table in self.tables for each in table.authors)])


class DatasetRegistry(Protocol):
    """The versions of registered datasets."""

    def register(self, registration: Registration, lease: Lease | None = None) -> DatasetVersion:
        """Make the next version. The same run and step again give the version that they made before.

        LateWrite where the lease has been given to another worker meanwhile: its rows are not those of the run.
        """
        ...

    def versions(self, dataset: str) -> Sequence[DatasetVersion]:
        """All versions of a dataset, newest first; none if it was never registered."""
        ...

    def datasets(self) -> Sequence[DatasetVersion]:
        """The newest version of every dataset, by name."""
        ...

    def forget(self, dataset: str, version: int) -> None:
        """Remove an unneeded version from the list. The newest one stays, so that no number is reused."""
        ...


ProjectStatus = Literal["active", "inactive"]


@dataclass(frozen=True, slots=True)
class ProjectVersion:
    """A frozen definition of a project."""

    project: str
    version: int
    status: ProjectStatus
    digest: str
    plan: str
    """The plan, as JSON text."""
    definition: str
    """The project file as it was."""
    activated_at: datetime
    activated_by: str
    deactivated_at: datetime | None = None
    deactivated_by: str | None = None
    """Who has ended it, by deactivating it or by activating the next one."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew activate --json`; plan and definition are left out."""
        return {
            "project": self.project,
            "version": self.version,
            "status": self.status,
            "digest": self.digest,
            "activated_at": self.activated_at.isoformat(),
            "activated_by": self.activated_by,
            "deactivated_at": self.deactivated_at.isoformat() if self.deactivated_at else None,
            "deactivated_by": self.deactivated_by,
        }


class ProjectRegistry(Protocol):
    """The activated versions of projects."""

    def activate(self, *, project: str, digest: str, plan: str, definition: str, actor: str) -> ProjectVersion:
        """Freeze a definition as the next version, the active one. The active digest again changes nothing."""
        ...

    def deactivate(self, project: str, actor: str) -> ProjectVersion:
        """Make the active version inactive. UserError ProjectNotActive if there is none."""
        ...

    def project_versions(self, project: str) -> Sequence[ProjectVersion]:
        """All versions of a project, newest first."""
        ...

    def active(self, project: str) -> ProjectVersion | None:
        """The version that runs, or None."""
        ...
