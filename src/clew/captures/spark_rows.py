"""The rows at a point of a run that is over, written down as a capture keeps them."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.captures.fitting import rank_sql
from clew.captures.manifests import CapturedFile
from clew.captures.requests import KeptColumn
from clew.definitions import Mask, MaskKind
from clew.engine.executor import pinned_rows
from clew.engine.names import row_id_sql
from clew.engine.narrow import Expressing
from clew.engine.sql import quoted
from clew.engine.working import StepsBehind, Storage, rebuild
from clew.events.values import sha256_of_file
from clew.plan.datasets import DatasetUse
from clew.plan.plan import Plan
from clew.plan.steps import PlannedExpression
from clew.storage.parts import ORDINAL, Part

_WRITE_OPTIONS = {"compression": "zstd", "parquet.compression.codec.zstd.level": "1"}
"""Captures are read as a whole and seldom by row, so that Spark's own row groups do."""
DELETED = "_deleted"
ROW_ID = "_row_id"


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that is over, whose points can be rebuilt at any time."""

    spark: SparkSession
    root: Path
    run_id: str
    plan: Plan
    period: str
    today: date
    parts: tuple[Part, ...]
    skipped: frozenset[int]

    @property
    def expressing(self) -> Expressing:
        """What turns expressions of the plan into SQL, as it was in the run."""
        return Expressing(self.run_id, self.plan.input.table, self.today)

    def rows_at(self, seq: int) -> DataFrame:
        """The working dataset after a step: nothing is computed here."""
        inputs = {part.name: part for part in self.parts if part.kind == "input"}

        def pinned(use: DatasetUse) -> DataFrame:
            return pinned_rows(self.spark, self.root, inputs[use.key], use)

        storage = Storage(self.spark, self.root, pinned)
        progress = StepsBehind(self.parts, self.skipped)
        return rebuild(self.plan, progress, self.period, storage, self.expressing, until=seq).rows


def in_view(rows: DataFrame) -> DataFrame:
    """The rows that are not deleted."""
    return rows.where(f"NOT {quoted(DELETED)}")


def sample_of(rows: DataFrame, run_id: str, count: int) -> DataFrame:
    """A sample of the rows that are not deleted: those whose digest of run and ordinal come first, in their order."""
    drawn = in_view(rows).orderBy(F.expr(rank_sql(run_id, ORDINAL)), F.col(ORDINAL)).limit(count)
    return drawn.coalesce(1).sortWithinPartitions(ORDINAL)


def filtered(rows: DataFrame, expressing: Expressing, condition: PlannedExpression) -> DataFrame:
    """The rows for which a condition is true, deleted ones among them."""
    return rows.where(expressing.sql(condition.tree))


def taken(rows: DataFrame, count: int) -> DataFrame:
    """The first rows that are not deleted."""
    return in_view(rows).orderBy(ORDINAL).limit(count)


def raw_rows(rows: DataFrame, columns: Sequence[KeptColumn], salt: str) -> DataFrame:
    """Every row with its position, its values and whether it is deleted."""
    return rows.select(ORDINAL, *_kept(columns, salt), quoted(DELETED))


def view_rows(rows: DataFrame, columns: Sequence[KeptColumn], salt: str, run_id: str) -> DataFrame:
    """The rows that are not deleted, with their ids."""
    return in_view(rows).select(F.expr(row_id_sql(run_id)).alias(ROW_ID), *_kept(columns, salt))


def _kept(columns: Sequence[KeptColumn], salt: str) -> list[Column]:
    return [
        F.col(quoted(column.name))
        if column.mask is None
        else F.expr(masked_sql(quoted(column.name), column.mask, salt)).alias(column.name)
        for column in columns
    ]


def masked_sql(column: str, mask: Mask, salt: str) -> str:
    """SQL for the masked values of a column; NULL stays NULL."""
    text = f"CAST({column} AS STRING)"
    match mask.kind:
        case MaskKind.HASH:
            return f"substr(sha2(concat('{salt}', {text}), 256), 1, 16)"
        case MaskKind.REDACT:
            return f"CASE WHEN {column} IS NOT NULL THEN '[masked]' END"
        case MaskKind.KEEP_LAST:
            kept = mask.characters
            hidden = f"repeat('*', length({text}) - {kept})"
            return (
                f"CASE WHEN length({text}) > {kept} THEN concat({hidden}, right({text}, {kept})) "
                f"ELSE repeat('*', length({text})) END"
            )


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Files that were written, and how large their columns are."""

    files: tuple[CapturedFile, ...]
    column_bytes: dict[str, int]

    @property
    def rows(self) -> int:
        """Rows in all files."""
        return sum(file.rows for file in self.files)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def write_rows(rows: DataFrame, folder: Path) -> WrittenRows:
    """Write rows to a folder as Parquet, in place of whatever is there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    rows.write.options(**_WRITE_OPTIONS).parquet(str(folder))
    return _described(folder)


def _described(folder: Path) -> WrittenRows:
    """The files with rows; where none has any, one that still tells the columns."""
    found = list[CapturedFile]()
    sizes = dict[str, int]()
    paths = sorted(folder.glob("*.parquet"))
    footers = {path: pq.read_metadata(path) for path in paths}
    with_rows = [path for path in paths if footers[path].num_rows] or paths[:1]
    for path in with_rows:
        footer = footers[path]
        for group in range(footer.num_row_groups):
            for column in range(footer.num_columns):
                chunk = footer.row_group(group).column(column)
                sizes[chunk.path_in_schema] = sizes.get(chunk.path_in_schema, 0) + chunk.total_uncompressed_size
        digest = sha256_of_file(path)
        found.append(CapturedFile(path.name, footer.num_rows, path.stat().st_size, digest))
    for path in folder.iterdir():
        if path not in with_rows:
            path.unlink()
    return WrittenRows(tuple(found), sizes)


@contextmanager
def interrupting(spark: SparkSession, tag: str) -> Iterator[Callable[[], None]]:
    """What this thread does on Spark inside can be interrupted from another one, by what is given."""

    def interrupt() -> None:
        spark.interruptTag(tag)

    spark.addTag(tag)
    try:
        yield interrupt
    finally:
        spark.removeTag(tag)
