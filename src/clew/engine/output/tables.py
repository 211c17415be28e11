"""Outputs to tables of databases: staged as Parquet below the run, and brought over when all else has succeeded.

PostgreSQL takes all rows in one transaction that also notes the run and step, so no reader sees half of them, and a
retry writes nothing twice. Other databases are reached through Spark and a JDBC driver, which cannot promise that for
rows that are added; so they are only ever overwritten, which a retry repeats from the start.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame

from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.diagnostics.codes.engine import DESTINATION_UNAVAILABLE, OUTPUT_CONFLICT
from clew.diagnostics.foreign_words import without_quoted
from clew.engine.blame import SPARK_ERRORS
from clew.engine.counting import counted, require_rows, rows_in
from clew.engine.loading.databases import driver_of, driver_says, hidden
from clew.engine.reasons import reason_of
from clew.lang.types import Type
from clew.plan.datasets import TableAddress, TableSink
from clew.plan.operations import OutputStep
from clew.storage.drafts import Draft, draft
from clew.storage.layout import scratch_folder
from clew.storage.root import StorageRoot

if TYPE_CHECKING:
    import pyarrow as pa

_JDBC = "jdbc:"
_JDBC_POSTGRESQL = "jdbc:postgresql:"


@dataclass(frozen=True, slots=True)
class TableTarget:
    """The table of an output, and how its database is reached."""

    address: TableAddress
    driver: str | None = None
    """The class of a JDBC driver."""

    @property
    def shown(self) -> str:
        """The table as messages name it."""
        return f"{self.address.schema}.{self.address.table}" if self.address.schema else self.address.table


@dataclass(frozen=True, slots=True)
class StagedTable:
    """Rows that are waiting to be written to a table."""

    draft: Draft
    count: int
    publish: Callable[[], None]
    table: str
    """The name of the table, with its placeholders filled in."""

    def discard(self) -> None:
        """Delete them."""
        self.draft.abandon()


@dataclass(frozen=True, slots=True)
class TableOutputs:
    """Writes the outputs of one run to tables."""

    run_id: str
    root: StorageRoot
    """Where rows are staged."""
    target_of: Callable[[OutputStep], TableTarget]
    columns_of: Callable[[OutputStep], Sequence[tuple[str, Type]]]
    """The columns that a step writes, with their types."""
    sink: TableSink

    def stage(self, rows: DataFrame, step: OutputStep) -> StagedTable:
        """Write the rows of a step below the run. Obvious problems with its table are reported first."""
        target = self.target_of(step)
        url = target.address.url
        is_foreign = url.startswith(_JDBC) and not url.startswith(_JDBC_POSTGRESQL)
        if is_foreign and step.mode == "append":
            problem = f"cannot append to the table {target.shown}: through JDBC a retry could duplicate its rows"
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint="use the mode overwrite"))
        staged = draft(self.root, scratch_folder(self.run_id, str(step.seq)))
        try:
            written, count = counted(rows)
            written.write.parquet(staged.spark_uri)
            found = rows_in(self.root, [file.key for file in staged.files(".parquet")])
            require_rows(found, count(), place=f"{self.root.address}/{staged.folder}")
        except BaseException:
            staged.abandon()
            raise
        write = self._through_jdbc if is_foreign else self._in_one_transaction

        def publish() -> None:
            try:
                write(rows, target, step, staged)
            except ClewError as error:
                raise _as_destination(error, step) from error
            finally:
                staged.abandon()

        return StagedTable(staged, found, publish, target.address.table)

    def _in_one_transaction(self, _rows: DataFrame, target: TableTarget, step: OutputStep, draft: Draft) -> None:
        address = target.address
        self.sink.write(
            TableAddress(address.url.removeprefix(_JDBC), address.schema, address.table, address.password),
            self.columns_of(step),
            _batches(draft),
            mode="append" if step.mode == "append" else "overwrite",
            once=f"{self.run_id}/{step.seq}",
        )

    def _through_jdbc(self, rows: DataFrame, target: TableTarget, step: OutputStep, draft: Draft) -> None:
        options = {"url": target.address.url, "dbtable": target.shown, "truncate": "true", "numPartitions": "1"}
        driver = target.driver or driver_of(target.address.url)
        if driver is not None:
            options["driver"] = driver
        if target.address.password is not None:
            options["password"] = target.address.password
        staged = rows.sparkSession.read.schema(rows.schema).parquet(draft.spark_uri)
        try:
            staged.write.format("jdbc").options(**options).mode("overwrite").save()
        except SPARK_ERRORS as error:
            reason = hidden(driver_says(error) or reason_of(error), target.address.password)
            problem = f"the table {target.shown} cannot be written: {without_quoted(reason)}"
            raise UserError(DESTINATION_UNAVAILABLE.at(step.place, problem=problem)) from None


def _batches(staged: Draft) -> "Iterator[pa.RecordBatch]":
    for file in staged.files(".parquet"):
        with staged.root.open_parquet(file.key) as opened:
            yield from opened.iter_batches()


def _as_destination(error: ClewError, step: OutputStep) -> ClewError:
    """What a database says, reported at the place that writes to it."""
    diagnostic = DESTINATION_UNAVAILABLE.at(step.place, problem=error.diagnostic.message)
    return TransientFailure(diagnostic) if isinstance(error, TransientFailure) else UserError(diagnostic)
