"""The datasets that a plan reads, as far as they are known before a run, and the database tables it reads or writes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol

from clew.deferred import dataclass
from clew.lang.types import Type
from clew.plan.columns import Column, Schema

if TYPE_CHECKING:
    import pyarrow as pa


TemporalModeName = Literal["period", "bitemporal", "none"]
PrivacyName = Literal["personal", "secret"]


Names = tuple[tuple[str, ...], ...]
"""Lists of columns that may name a row, those to try first in front."""


def distinct_names(keys: Iterable[tuple[str, ...]]) -> Names:
    """Lists of columns without empty ones and repetitions."""
    return tuple(dict.fromkeys(key for key in keys if key))


@dataclass(frozen=True, slots=True)
class DatasetColumn:
    """A column of a dataset, with what a reader of its data must know."""

    name: str
    type: Type
    nullable: bool = True
    privacy: PrivacyName | None = None


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """A dataset in the role of input, joined table or appended source."""

    dataset_id: str
    name: str
    table: str
    temporal_mode: TemporalModeName
    columns: tuple[DatasetColumn, ...]
    natural_key: tuple[str, ...] = ()
    row_names: tuple[tuple[str, ...], ...] = ()
    """Columns that name rows to people where no natural key does: in a dataset that a project registers, the natural
    key that rows came with, and the keys of groups for summaries. They are not checked for uniqueness."""
    labels_privacy: PrivacyName | None = None
    """Why access to the labels of its rows is restricted, in a dataset that a project registers with labels."""
    pinned_version: int | None = None
    """The version that the project asks for; None for the newest active one when a run starts."""
    resolver_id: str | None = None
    """The resolver that will find its data; None for data that Clew itself keeps."""
    resolver_source: Literal["project override", "dataset", "default", "managed", "inline"] = "managed"
    """Why that resolver."""
    all_days: bool = False
    """Whether the rows of a bitemporal dataset count on whatever day they are in force, and not only on the first day
    of the run's period: a condition says which day counts."""

    @property
    def key(self) -> str:
        """What distinguishes it from other datasets that the plan reads, including other versions of itself."""
        key = self.dataset_id if self.pinned_version is None else f"{self.dataset_id}@{self.pinned_version}"
        return f"{key}@all-days" if self.all_days else key

    @property
    def names(self) -> Names:
        """What may name its rows to people."""
        return distinct_names([self.natural_key, *self.row_names])

    def schema(self) -> Schema:
        """Its columns as the working dataset has them; `_period` is a system column there."""
        return Schema(tuple(Column(column.name, column.type) for column in self.columns if column.name != "_period"))


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
        """The rows as batches of strings; `where` is a column and the values it may have."""
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


class TableTransfer(TableReader, TableSink, Protocol):
    """Tables of databases as sources and as destinations."""
