"""Version 2: chains of hashes over events, and the count of the platform's attempts."""

from collections.abc import Sequence
from typing import ClassVar


class Version2:
    """Adds to version 1 without touching what is stored."""

    version: ClassVar[int] = 2

    def sqlite(self) -> Sequence[str]:
        """The same for SQLite."""
        return _STATEMENTS

    def postgresql(self) -> Sequence[str]:
        """And for PostgreSQL."""
        return _STATEMENTS


_STATEMENTS = (
    "ALTER TABLE runs ADD COLUMN last_hash VARCHAR(64)",
    "ALTER TABLE run_events ADD COLUMN previous_hash VARCHAR(64)",
    "ALTER TABLE run_events ADD COLUMN hash VARCHAR(64)",
    """
    CREATE TABLE step_attempts (
        run_id VARCHAR(255) NOT NULL,
        step_id VARCHAR(255) NOT NULL,
        logical_attempt_id BIGINT NOT NULL,
        engine_attempt_id BIGINT NOT NULL,
        PRIMARY KEY (run_id, step_id, logical_attempt_id)
    )
    """,
)
