"""Column types that mean the same in every database."""

from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator, TypeEngine

from clew.runs.events.codec import iso, moment_of


class Moment(TypeDecorator[datetime]):
    """A moment in UTC with microseconds. SQLite has no such type: there it is text that sorts like the moments."""

    impl = sa.Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        """The type of the database."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(sa.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(sa.Text())

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:  # noqa: ANN401
        """On the way in."""
        if value is None or dialect.name == "postgresql":
            return value
        return iso(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:  # noqa: ANN401
        """On the way out."""
        if value is None:
            return None
        return value.astimezone(UTC) if dialect.name == "postgresql" else moment_of(value)


Document = sa.JSON(none_as_null=True)
"""JSON kept as the text that was given. PostgreSQL's `jsonb` would rewrite numbers and refuse some strings, and an
event must come back exactly as it was hashed."""
