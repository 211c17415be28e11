"""Versions of datasets and projects in a database."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import sqlalchemy as sa

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import PROJECT_NOT_ACTIVE
from clew.events.ledger import EntryKind
from clew.runs.leases import Lease
from clew.runs.registry import (
    DatasetFile,
    DatasetVersion,
    ProjectVersion,
    RegisteredTable,
    Registration,
    TableAuthor,
)
from clew.storage.store_reach import StoreReach
from clew.store.appending import require_token
from clew.store.database import Database
from clew.store.ledger import DATASETS, PROJECTS, Ledger
from clew.store.schema import dataset_versions, project_versions


class SqlDatasetRegistry:
    """The datasets that runs of one environment register."""

    def __init__(self, database: Database, environment_id: str, ledger: Ledger) -> None:
        self._database = database
        self._environment = environment_id
        self._ledger = ledger

    def register(self, registration: Registration, lease: Lease | None = None) -> DatasetVersion:
        """Make the next version. The same run and step again give the version that they made before."""
        lock = f"dataset:{self._environment}:{registration.dataset}"
        with self._database.write(lock=lock) as connection:
            if lease is not None:
                require_token(connection, self._database, lease)
            known = self._versions(connection, registration.dataset)
            made = next((v for v in known if (v.run_id, v.seq) == (registration.run_id, registration.seq)), None)
            if made is not None:
                return made
            files = _files_after(known[0].files if known else (), registration)
            tables = _tables_after(known[0].tables if known else (), registration)
            version = known[0].version + 1 if known else 1
            connection.execute(
                sa.insert(dataset_versions).values(
                    environment_id=self._environment,
                    dataset=registration.dataset,
                    version=version,
                    table_name=registration.table,
                    columns=[list(column) for column in registration.columns],
                    files=[*(asdict(file) for file in files), *({_TABLE: _table_to_json(table)} for table in tables)],
                    run_id=registration.run_id,
                    seq=registration.seq,
                    created_at=self._database.now(),
                )
            )
            columns = dataset_versions.c
            this = (columns.dataset == registration.dataset) & (columns.version == version)
            self._ledger.add_rows(connection, EntryKind.DATASET_REGISTERED, DATASETS, this)
            return self._versions(connection, registration.dataset)[0]

    def versions(self, dataset: str) -> Sequence[DatasetVersion]:
        """All versions of a dataset, newest first; none if it was never registered."""
        with self._database.read() as connection:
            return self._versions(connection, dataset)

    def datasets(self) -> Sequence[DatasetVersion]:
        """The newest version of every dataset, by name."""
        table = dataset_versions
        with self._database.read() as connection:
            names = connection.scalars(
                sa.select(table.c.dataset).where(table.c.environment_id == self._environment).distinct()
            ).all()
            return [self._versions(connection, name)[0] for name in sorted(names)]

    def forget(self, dataset: str, version: int) -> None:
        """Remove an unneeded version from the list. The newest one stays, so that no number is reused."""
        table = dataset_versions
        with self._database.write(lock=f"dataset:{self._environment}:{dataset}") as connection:
            newer = [known.version for known in self._versions(connection, dataset) if known.version > version]
            if newer:
                this = (table.c.dataset == dataset) & (table.c.version == version)
                self._ledger.remove_rows(connection, EntryKind.DATASET_FORGOTTEN, DATASETS, this)

    def _versions(self, connection: sa.Connection, dataset: str) -> list[DatasetVersion]:
        table = dataset_versions
        statement = (
            sa.select(table)
            .where(table.c.environment_id == self._environment, table.c.dataset == dataset)
            .order_by(table.c.version.desc())
        )
        return [
            DatasetVersion(
                dataset=row["dataset"],
                version=row["version"],
                table=row["table_name"],
                columns=tuple((name, type_) for name, type_ in row["columns"]),
                files=tuple(DatasetFile(**file) for file in row["files"] if _TABLE not in file),
                run_id=row["run_id"],
                seq=row["seq"],
                created_at=row["created_at"],
                tables=tuple(_table(each[_TABLE]) for each in row["files"] if _TABLE in each),
            )
            for row in self._ledger.require_vouched(connection, DATASETS, connection.execute(statement).mappings())
        ]


def _files_after(before: Sequence[DatasetFile], registration: Registration) -> list[DatasetFile]:
    """The files of the next version: those of other periods stay, those of this one are replaced or joined."""
    return [*(file for file in before if file.period not in registration.replaced), *registration.files]


_TABLE = "table"
"""Among the files of a version: a table that is registered as it is."""


def _table_to_json(table: RegisteredTable) -> dict[str, Any]:
    """A table. What only tables in stores have is left out of others, which an older Clew can read."""
    return {name: value for name, value in asdict(table).items() if name != "store" or value is not None}


def _table(data: Mapping[str, Any]) -> RegisteredTable:
    authors = tuple(TableAuthor(**each) for each in data["authors"])
    digests = tuple((file, digest) for file, digest in data["digests"])
    store = None if data.get("store") is None else StoreReach(**data["store"])
    return RegisteredTable(**{**data, "authors": authors, "digests": digests, "store": store})


def _tables_after(before: Sequence[RegisteredTable], registration: Registration) -> list[RegisteredTable]:
    """The tables of the next version: a whole one takes the place of its own earlier versions, with their authors."""
    table = registration.lake
    if table is None:
        return [each for each in before if each.period not in registration.replaced]
    if not table.is_whole:
        stay = [each for each in before if each.period not in registration.replaced]
        return [*(each for each in stay if not (each.is_whole and each.address == table.address)), table]
    own = {(each.run_id, each.seq) for each in table.authors}
    authors = [
        author
        for each in before
        for author in each.authors
        if each.address == table.address
        and author.period not in registration.replaced
        and (author.run_id, author.seq) not in own
    ]
    stay = [each for each in before if each.address != table.address]
    return [*stay, replace(table, authors=(*dict.fromkeys(authors), *table.authors))]


class SqlProjectRegistry:
    """The projects that were activated in one environment."""

    def __init__(self, database: Database, environment_id: str, ledger: Ledger) -> None:
        self._database = database
        self._environment = environment_id
        self._ledger = ledger

    def activate(self, *, project: str, digest: str, plan: str, definition: str, actor: str) -> ProjectVersion:
        """Freeze a definition as the next version, the active one. The active digest again changes nothing."""
        table = project_versions
        with self._database.write(lock=f"project:{self._environment}:{project}") as connection:
            known = self._versions(connection, project)
            if known and known[0].status == "active" and known[0].digest == digest:
                return known[0]
            self._end_active(connection, project, actor)
            version = known[0].version + 1 if known else 1
            connection.execute(
                sa.insert(table).values(
                    environment_id=self._environment,
                    project=project,
                    version=version,
                    status="active",
                    digest=digest,
                    plan=plan,
                    definition=definition,
                    activated_at=self._database.now(),
                    activated_by=actor,
                )
            )
            this = (table.c.project == project) & (table.c.version == version)
            self._ledger.add_rows(connection, EntryKind.PROJECT_ACTIVATED, PROJECTS, this)
            return self._versions(connection, project)[0]

    def deactivate(self, project: str, actor: str) -> ProjectVersion:
        """Make the active version inactive. UserError ProjectNotActive if there is none."""
        with self._database.write(lock=f"project:{self._environment}:{project}") as connection:
            active = next((v for v in self._versions(connection, project) if v.status == "active"), None)
            if active is None:
                raise UserError(PROJECT_NOT_ACTIVE.anywhere(project=project))
            self._end_active(connection, project, actor)
            return next(v for v in self._versions(connection, project) if v.version == active.version)

    def _end_active(self, connection: sa.Connection, project: str, actor: str) -> None:
        table = project_versions
        mine = (table.c.environment_id == self._environment) & (table.c.project == project)
        active = connection.scalars(sa.select(table.c.version).where(mine, table.c.status == "active")).all()
        these = (table.c.project == project) & table.c.version.in_(active)
        with self._ledger.changing(connection, EntryKind.PROJECT_DEACTIVATED, PROJECTS, these):
            connection.execute(
                sa.update(table)
                .where(mine, table.c.status == "active")
                .values(status="inactive", deactivated_at=self._database.now(), deactivated_by=actor)
            )

    def project_versions(self, project: str) -> Sequence[ProjectVersion]:
        """All versions of a project, newest first."""
        with self._database.read() as connection:
            return self._versions(connection, project)

    def active(self, project: str) -> ProjectVersion | None:
        """The version that runs, or None."""
        return next((version for version in self.project_versions(project) if version.status == "active"), None)

    def _versions(self, connection: sa.Connection, project: str) -> list[ProjectVersion]:
        table = project_versions
        statement = (
            sa.select(table)
            .where(table.c.environment_id == self._environment, table.c.project == project)
            .order_by(table.c.version.desc())
        )
        return [
            ProjectVersion(
                project=row["project"],
                version=row["version"],
                status=row["status"],
                digest=row["digest"],
                plan=row["plan"],
                definition=row["definition"],
                activated_at=row["activated_at"],
                activated_by=row["activated_by"],
                deactivated_at=row["deactivated_at"],
                deactivated_by=row["deactivated_by"],
            )
            for row in self._ledger.require_vouched(connection, PROJECTS, connection.execute(statement).mappings())
        ]
