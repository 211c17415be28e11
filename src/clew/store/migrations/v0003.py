"""Version 3: versions of registered datasets and of activated projects."""

from collections.abc import Sequence
from typing import ClassVar

from clew.store.migrations.runner import POSTGRESQL_TYPES, SQLITE_TYPES, Types


class Version3:
    """Adds two tables."""

    version: ClassVar[int] = 3

    def sqlite(self) -> Sequence[str]:
        """The tables for SQLite."""
        return _statements(SQLITE_TYPES)

    def postgresql(self) -> Sequence[str]:
        """And for PostgreSQL."""
        return _statements(POSTGRESQL_TYPES)


def _statements(types: Types) -> tuple[str, ...]:
    return (
        f"""
        CREATE TABLE dataset_versions (
            environment_id VARCHAR(255) NOT NULL,
            dataset VARCHAR(255) NOT NULL,
            version INTEGER NOT NULL,
            table_name VARCHAR(255) NOT NULL,
            columns {types.json} NOT NULL,
            files {types.json} NOT NULL,
            run_id VARCHAR(255) NOT NULL,
            seq INTEGER NOT NULL,
            created_at {types.moment} NOT NULL,
            PRIMARY KEY (environment_id, dataset, version),
            UNIQUE (environment_id, dataset, run_id, seq)
        )
        """,
        f"""
        CREATE TABLE project_versions (
            environment_id VARCHAR(255) NOT NULL,
            project VARCHAR(255) NOT NULL,
            version INTEGER NOT NULL,
            status VARCHAR(16) NOT NULL,
            digest VARCHAR(64) NOT NULL,
            plan TEXT NOT NULL,
            definition TEXT NOT NULL,
            activated_at {types.moment} NOT NULL,
            activated_by VARCHAR(255) NOT NULL,
            PRIMARY KEY (environment_id, project, version)
        )
        """,
    )
