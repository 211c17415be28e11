"""Tables of databases as sources of rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table of a database."""

    url: str
    schema: str | None
    table: str
    password: str | None = field(default=None, repr=False)


class TableReader(Protocol):
    """Reads tables without Spark, a bounded piece at a time."""

    def columns(self, address: TableAddress) -> Sequence[str]:
        """The names of the table's columns."""
        ...

    def read(
        self, address: TableAddress, columns: Sequence[str], where: tuple[str, Sequence[str]] | None
    ) -> Iterator[pa.RecordBatch]:
        """The rows as batches of texts, in the form that conversion reads; `where` is a column and its values."""
        ...
