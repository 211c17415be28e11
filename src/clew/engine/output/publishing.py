"""Outputs: written to a staging place while the job runs, and published at once when everything else has succeeded.

So no reader sees half of an output, and nothing of a group of steps that fails is seen at all.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from pyspark.sql import DataFrame

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.engine.expressing import Expressing
from clew.engine.operations.output import output_columns, output_rows
from clew.engine.output.arranging import FILE, arranged
from clew.engine.output.catalog_targets import CatalogTarget
from clew.engine.output.digests import OutputDigest
from clew.engine.output.files import Further, has_one_writer, write_files
from clew.engine.output.lake_tables import LAKE_FORMATS, LakeOutputs
from clew.engine.output.places import OutputPlace
from clew.engine.output.tables import TableOutputs
from clew.engine.spark_internals import select_sql
from clew.plan.operations import OutputStep
from clew.runs.registry import DatasetVersion
from clew.storage.tables.table_versions import LocatedTable


@dataclass(frozen=True, slots=True)
class Published:
    """An output that is in its place."""

    rows: int
    path: str | None = None
    table: str | None = None
    digest: OutputDigest | None = None
    """Of the files that were written for it; None where they are not ours to read."""
    registered: DatasetVersion | None = None
    """The version of a dataset that it also became."""
    lake: LocatedTable | None = None
    """The Delta or Iceberg table that it was committed to, where its own files can be read."""


@dataclass(frozen=True, slots=True)
class Pending:
    """An output that is written but not visible yet."""

    rows: int | None
    """How many rows its files hold; None where nothing is written before it is published."""
    publish: Callable[[], Published]
    discard: Callable[[], None] = lambda: None
    """Deletes it, where something beside it has failed."""


class Publisher(Protocol):
    """Writes the output of a step to where it belongs."""

    def takes_further_rows(self, step: OutputStep) -> bool:
        """Whether an output can be read and added to before it is published."""
        ...

    def prepare(
        self,
        rows: DataFrame,
        step: OutputStep,
        expressing: Expressing,
        fence: int = 0,
        further: Further | None = None,
    ) -> Pending:
        """Write the rows that the step selects to staging, and then those derived from what was written.

        `fence` is the token under which this worker has the run.
        """
        ...


PlaceOf = Callable[[OutputStep, int], OutputPlace | None]
"""The place of a step's files for a worker that has the run under a token; None where the output goes to a table."""


CatalogTableOf = Callable[[OutputStep, int], CatalogTarget | None]
"""The table of a catalog that a step writes to; None where it goes elsewhere."""


@dataclass(frozen=True, slots=True)
class FilePublisher:
    """Publishes to files, and to tables through a writer."""

    run_id: str
    place_of: PlaceOf
    tables: TableOutputs | None = None
    lake: LakeOutputs | None = None
    catalog_table_of: CatalogTableOf = lambda _step, _fence: None

    def takes_further_rows(self, step: OutputStep) -> bool:
        """Whether an output is a folder of Parquet files."""
        place = self.place_of(step, 0)
        return place is not None and _is_parquet(step) and not place.is_one_file

    def prepare(
        self,
        rows: DataFrame,
        step: OutputStep,
        expressing: Expressing,
        fence: int = 0,
        further: Further | None = None,
    ) -> Pending:
        """Write the rows that the step selects to staging, and then those derived from what was written."""

        def chosen(rows: DataFrame, *, has_one_writer: bool = False) -> DataFrame:
            rows = arranged(output_rows(rows, step, expressing), step, expressing, has_one_writer=has_one_writer)
            files = () if step.file_per is None else (FILE,)
            return select_sql(rows, [*output_columns(step, self.run_id), *files])

        target = self.catalog_table_of(step, fence) if self.lake is not None else None
        if self.lake is not None and target is not None:
            return self._to_lake(self.lake, chosen(rows), step, target)
        place = self.place_of(step, fence)
        if place is None:
            return self._to_table(chosen(rows), step)
        if self.lake is not None and step.destination.format in LAKE_FORMATS:
            return self._to_lake(self.lake, chosen(rows), step, place)

        def added(files: Sequence[str]) -> tuple[DataFrame, bool]:
            assert further is not None  # noqa: S101 - it is asked for only then
            rows, is_small = further(files)
            return chosen(rows), is_small

        selected = chosen(rows, has_one_writer=has_one_writer(step, place))
        written = write_files(selected, step, place, added if further is not None else None)

        def published() -> Published:
            return Published(written.publish(), path=place.shown, digest=written.digest)

        return Pending(written.rows, published, place.abandon)

    def _to_lake(
        self, lake: LakeOutputs, rows: DataFrame, step: OutputStep, place: OutputPlace | CatalogTarget
    ) -> Pending:
        staged = lake.stage(rows, step, place)
        is_named = isinstance(place, CatalogTarget)

        def published() -> Published:
            staged.publish()
            located = staged.located() if step.registers is not None else None
            path, table = (None, place.shown) if is_named else (place.shown, None)
            return Published(staged.count, path=path, table=table, lake=located)

        return Pending(staged.count, published, staged.discard)

    def _to_table(self, rows: DataFrame, step: OutputStep) -> Pending:
        if self.tables is None:
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem="tables cannot be written here"))
        staged = self.tables.stage(rows, step)

        def published() -> Published:
            staged.publish()
            return Published(staged.count, table=staged.table)

        return Pending(staged.count, published, staged.discard)


def _is_parquet(step: OutputStep) -> bool:
    return (step.destination.format or "parquet") == "parquet"
