"""Version 7: who has deactivated a version of a project, and when."""

from collections.abc import Sequence
from typing import ClassVar

from clew.store.migrations.runner import POSTGRESQL_TYPES, SQLITE_TYPES, Types


class Version7:
    """Adds two columns, so that who has activated a version stays known when it is deactivated."""

    version: ClassVar[int] = 7

    def sqlite(self) -> Sequence[str]:
        """The columns for SQLite."""
        return _columns(SQLITE_TYPES)

    def postgresql(self) -> Sequence[str]:
        """And for PostgreSQL."""
        return _columns(POSTGRESQL_TYPES)


def _columns(types: Types) -> tuple[str, ...]:
    return (
        f"ALTER TABLE project_versions ADD COLUMN deactivated_at {types.moment}",
        "ALTER TABLE project_versions ADD COLUMN deactivated_by VARCHAR(255)",
    )
