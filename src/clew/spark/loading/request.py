"""What pinning a dataset takes and gives."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from clew.model import Datasource, Period, PeriodTree
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import Source
from clew.plan.tables import TableReader
from clew.trace.layout import Part


@dataclass(frozen=True, slots=True)
class PinRequest:
    """A dataset, where its data lies, and where it is pinned."""

    use: DatasetUse
    sources: tuple[Source, ...]
    datasources: Mapping[str, Datasource]
    workspace_root: Path
    storage_root: Path
    run_id: str
    period: Period
    periods: PeriodTree
    first_file_ordinal: int
    secrets: Callable[[str], str]
    """The secret behind a reference."""
    tables: TableReader | None = None
    """Reads tables of PostgreSQL where there is no JDBC driver."""
    may_be_empty: bool = True
    """Whether it is all right that there are no rows for the period."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """A dataset as a run sees it ever after."""

    part: Part
    rows_read: int
    rows_loaded: int
    rows_outside_period: int
    """Rows that were read and left out. Those that a database did not send are not among them."""
    sources: tuple[str, ...]
    """Where the rows came from, in words."""
