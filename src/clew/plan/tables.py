"""Tables of databases that runs read from and write to without a driver for Spark."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from clew.lang.types import Type

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table of a database."""

    url: str
    schema: str | None
    table: str
    password: str | None = field(default=None, repr=False)


class TableReader(Protocol):
    """Reads tables, a bounded piece at a time."""

    def columns(self, address: TableAddress) -> Sequence[str]:
        """The names of the table's columns."""
        ...

    def read(
        self, address: TableAddress, columns: Sequence[str], where: tuple[str, Sequence[str]] | None
    ) -> "Iterator[pa.RecordBatch]":
        """The rows as batches of texts; `where` is a column and the values it may have."""
        ...


class TableSink(Protocol):
    """Writes tables, a bounded piece at a time, all of it or nothing."""

    def write(
        self,
        address: TableAddress,
        columns: Sequence[tuple[str, Type]],
        batches: "Iterable[pa.RecordBatch]",
        *,
        mode: Literal["overwrite", "append"],
        once: str,
    ) -> int:
        """Write the batches in one transaction and give the number of rows.

        A table that does not exist is created. A second call with the same `once` finds the work done.
        """
        ...
