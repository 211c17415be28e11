"""The rows of a capture, read with DuckDB from its files."""

# ruff: noqa: PLC0415 - libraries for reading are imported when something is read
# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from clew import budgets
from clew.budgets import QuestionLimits, budgeted
from clew.captures.manifests import CapturedColumn, CapturedFile, Manifest
from clew.deferred import dataclass
from clew.diagnostics import EngineBug, UserError
from clew.diagnostics.codes.captures import CAPTURE_DAMAGED, CAPTURE_NOT_READY
from clew.diagnostics.codes.trace import TRACE_INTEGRITY_ERROR
from clew.diagnostics.file_system import OutOfReach, unavailable
from clew.diagnostics.foreign_words import without_quoted
from clew.lang.types import parse_type
from clew.storage.parts import ORDINAL
from clew.storage.remote_blocks import BlockCache, RemoteBlocks
from clew.storage.root import RemoteSource, StorageRoot
from clew.storage.row_identity import RowIds
from clew.trace.results import data_frame
from clew.trace.sql import Sql, parquet, quoted, typed_column
from clew.trace.trace_database import answered, connected

if TYPE_CHECKING:
    import duckdb
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

    from clew.storage.duckdb_files import QueriedFile, RemoteFiles


_BATCH_ROWS = 20_000
_Result = TypeVar("_Result")


class Questions:
    """A database into which rows are read once, for several questions."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection") -> None:
        self._connection = connection
        self._remote: RemoteFiles | None = None

    def _give(self, sql: Sql) -> None:
        """Let DuckDB read the remote files of a query."""
        if not sql.remote:
            return
        from clew.storage.duckdb_files import RemoteFiles

        if self._remote is None:
            self._remote = RemoteFiles(self._connection)
        for source in sql.remote:
            self._remote.give(str(source), partial(_opened, source))

    def keep(self, table: str, rows: Sql) -> Sql:
        """Read rows into a table; SQL for that table."""
        self.ask(f"CREATE TEMP TABLE {table} AS " + rows)
        return Sql(f"SELECT * FROM {table}")

    def ask(self, sql: Sql | str) -> "pa.Table":
        """The rows that a query gives."""
        import duckdb

        query = Sql(sql) if isinstance(sql, str) else sql
        self._give(query)
        try:
            return answered(self._connection, query)
        except duckdb.Error as error:
            raise EngineBug(TRACE_INTEGRITY_ERROR.anywhere(problem=without_quoted(str(error)))) from error

    def batches(self, sql: Sql) -> "tuple[pa.Schema, Iterator[pa.RecordBatch]]":
        """The rows that a query gives, batch by batch, within the budget at hand."""
        import duckdb
        import pyarrow as pa

        self._give(sql)

        def within_budget(work: "Callable[[], _Result]") -> "_Result":
            try:
                return budgets.interruptibly(work, self._connection.interrupt)
            except (duckdb.Error, pa.ArrowException, OSError) as error:
                budgets.check()
                raise EngineBug(TRACE_INTEGRITY_ERROR.anywhere(problem=without_quoted(str(error)))) from error

        def rest() -> "Iterator[pa.RecordBatch]":
            while (batch := within_budget(lambda: next(reader, None))) is not None:
                yield batch

        parameters = list(sql.parameters)
        reader = within_budget(lambda: self._connection.sql(sql.text, params=parameters).to_arrow_reader(_BATCH_ROWS))
        return reader.schema, rest()

    def records(self, sql: Sql | str) -> list[dict[str, Any]]:
        """The same as Python values."""
        found: list[dict[str, Any]] = self.ask(sql).to_pylist()
        return found


def _opened(source: RemoteSource) -> "QueriedFile":
    from clew.storage.duckdb_files import QueriedFile

    opened = source.root.shared(source.key)
    assert opened is not None  # noqa: S101 - a remote source is one of a root that shares its files
    read_at = opened.read_at

    def read(position: int, count: int) -> bytes:
        return bytes(read_at(count, position))

    return QueriedFile(RemoteBlocks(source.key, opened.size(), read, (), BlockCache()))


@contextmanager
def questions() -> Iterator[Questions]:
    """A temporary database."""
    budget = budgets.current()
    with connected(None if budget is None else budget.limits) as connection:
        yield Questions(connection)


def ask(sql: Sql | str) -> "pa.Table":
    """The rows that one query gives."""
    with questions() as asked:
        return asked.ask(sql)


ROW_ID, DELETED = "_row_id", "_deleted"


@dataclass(frozen=True, slots=True)
class CapturedRows:
    """The files of a capture, as a table: its view, or raw with the rows that are deleted."""

    manifest: Manifest
    folder: StorageRoot
    question_limits: QuestionLimits | None = None
    """What reading the rows may cost; None for jobs, which have limits of their own."""
    has_read: "Callable[[str, Sequence[str], int], None]" = field(default=lambda *_read: None, compare=False)
    """Told of each table that is read: what was asked for, its columns, and how many rows it has."""

    def __post_init__(self) -> None:
        if not self.manifest.keeps_rows:
            because = ": it kept statistics only"
            hint = "`clew capture show ID` shows them; for rows, run again with --capture BREAKPOINT=sample_view"
            raise UserError(
                CAPTURE_NOT_READY.anywhere(
                    capture_id=self.manifest.capture_id, status="without rows", because=because, hint=hint
                )
            )
        for file in self.manifest.files:
            self._require_intact(file)

    @property
    def columns(self) -> tuple[str, ...]:
        """The data columns, in the order of the plan, system columns last."""
        return tuple(column.name for column in self.manifest.columns)

    def view(self) -> Sql:
        """SQL for the rows that are not deleted, with their ids, in no order."""
        columns = selected(self.manifest.columns)
        kept = f" WHERE NOT {quoted(DELETED)}" if self.manifest.is_raw else ""
        return f"SELECT {self._row_id()} AS {quoted(ROW_ID)}, {columns} FROM " + self._files() + kept

    def raw(self) -> Sql:
        """SQL for all rows that were kept, and whether they are deleted."""
        columns = selected(self.manifest.columns)
        deleted = quoted(DELETED) if self.manifest.is_raw else f"FALSE AS {quoted(DELETED)}"
        return f"SELECT {self._row_id()} AS {quoted(ROW_ID)}, {columns}, {deleted} FROM " + self._files()

    @budgeted
    def to_arrow(self, limit: int | None = None) -> "pa.Table":
        """The view as a table, in the order that the rows had in the run."""
        return self._read(self.view(), limit, "all rows" if limit is None else f"first {limit} rows")

    @budgeted
    def to_arrow_raw(self, limit: int | None = None) -> "pa.Table":
        """All rows that were kept as a table, with `_deleted`."""
        which = "all rows" if limit is None else f"first {limit} rows"
        return self._read(self.raw(), limit, f"{which}, deleted ones among them")

    @budgeted
    def to_pandas(self) -> "pd.DataFrame":
        """The view as a data frame; pandas must be installed."""
        return data_frame(self.to_arrow())

    @budgeted
    def deleted(self) -> int:
        """How many of the rows that were kept are deleted."""
        if not self.manifest.is_raw:
            return 0
        found = ask("SELECT count(*) AS n FROM " + self._files() + f" WHERE {quoted(DELETED)}")
        return int(found["n"][0].as_py())

    def _read(self, rows: Sql, limit: int | None, asked: str) -> "pa.Table":
        table = ask("SELECT * FROM (" + rows + f") ORDER BY {quoted(ROW_ID)}{_first(limit)}")
        self.has_read(asked, table.column_names, table.num_rows)
        return table

    def _files(self) -> Sql:
        return parquet([self.folder.source(file.path) for file in self.manifest.files])

    def _row_id(self) -> str:
        if not self.manifest.is_raw:
            return quoted(ROW_ID)
        return row_id_of_ordinal(self.manifest.run_id)

    def _require_intact(self, file: CapturedFile) -> None:
        try:
            digest = self.folder.sha256(file.path)
        except OutOfReach as error:
            raise unavailable(error) from error
        except OSError as error:
            problem = f"{file.path}: {(error.strerror or type(error).__name__).lower()}"
            raise UserError(CAPTURE_DAMAGED.anywhere(capture_id=self.manifest.capture_id, problem=problem)) from error
        if digest != file.sha256:
            problem = f"{file.path} is not what was written"
            raise UserError(CAPTURE_DAMAGED.anywhere(capture_id=self.manifest.capture_id, problem=problem))


def selected(columns: Sequence[CapturedColumn]) -> str:
    """The columns of a capture in a SELECT, each with its type."""
    return ", ".join(f"{typed_column(each.name, parse_type(each.type))} AS {quoted(each.name)}" for each in columns)


def _first(limit: int | None) -> str:
    return "" if limit is None else f" LIMIT {int(limit)}"


def row_id_of_ordinal(run_id: str) -> str:
    """SQL for the row id of a row of a run, from its ordinal."""
    low = f"lower(to_hex(9223372036854775808::UBIGINT + {ORDINAL}::UBIGINT))"
    return f"concat('{RowIds(run_id).prefix}-', substr({low}, 1, 4), '-', substr({low}, 5, 12))"
