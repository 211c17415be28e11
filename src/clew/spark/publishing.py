"""Outputs: written to a staging place, then published at once, so that no reader sees half of one.

A path with a suffix (`closed.csv`) is one file, a path without one is a folder of files. A retry of the same step
replaces what it published before: it never doubles it.
"""

import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.plan.steps import OutputStep
from clew.spark.names import row_id_sql
from clew.spark.narrow import Expressing
from clew.spark.sql import quoted

_ONE_FILE_FORMATS = {"csv": "csv", "jsonl": "json", "json": "json", "parquet": "parquet"}
"""Formats of which one file can be published, with Spark's name for them."""


@dataclass(frozen=True, slots=True)
class Published:
    """An output that is in its place."""

    rows: int
    path: str | None = None
    table: str | None = None
    dataset: str | None = None
    dataset_version: int | None = None


class Publisher(Protocol):
    """Writes the output of a step to where it belongs."""

    def publish(self, rows: DataFrame, step: OutputStep, expressing: Expressing) -> Published:
        """Write the rows that the step selects, and publish them."""
        ...


class TableWriter(Protocol):
    """Writes rows to a table of a database, in one transaction, once for each run and step."""

    def write(self, rows: DataFrame, step: OutputStep) -> None:
        """Write all rows."""
        ...


@dataclass(frozen=True, slots=True)
class Target:
    """Where the files of an output go."""

    path: Path
    shown: str
    """The path as the user knows it."""


@dataclass(frozen=True, slots=True)
class FilePublisher:
    """Publishes to files, and to tables through a writer."""

    run_id: str
    target_of: Callable[[OutputStep], Target | None]
    """The place of a step's files; None where it goes to a table."""
    tables: TableWriter | None = None

    def publish(self, rows: DataFrame, step: OutputStep, expressing: Expressing) -> Published:
        """Write the rows that the step selects, and publish them."""
        chosen = output_rows(rows, step, expressing).select(*output_columns(step, self.run_id))
        observation = Observation()
        counted = chosen.observe(observation, F.count(F.lit(1)).alias("rows"))
        target = self.target_of(step)
        if target is None:
            if self.tables is None:
                raise UserError(OUTPUT_CONFLICT.at(step.place, problem="tables cannot be written here"))
            self.tables.write(counted, step)
            return Published(int(observation.get["rows"]), table=step.destination.table)
        _write_files(counted, step, target, self.run_id)
        return Published(int(observation.get["rows"]), path=target.shown)


def output_rows(rows: DataFrame, step: OutputStep, expressing: Expressing) -> DataFrame:
    """The rows that an output step selects. Deleted ones only where it opts in."""
    if step.selector is not None:
        rows = rows.where(expressing.sql(step.selector.tree))
    return rows if step.include_deleted else rows.where("NOT `_deleted`")


def output_columns(step: OutputStep, run_id: str) -> list[Column]:
    """The columns that an output step writes."""
    return [
        F.expr(row_id_sql(run_id)).alias(name) if name == "_row_id" else F.col(quoted(name)) for name in step.columns
    ]


def _write_files(rows: DataFrame, step: OutputStep, target: Target, run_id: str) -> None:
    format_ = step.destination.format or "parquet"
    options = dict(step.destination.options)
    spark_format = _ONE_FILE_FORMATS.get(format_)
    if spark_format is None:
        rows.write.format(format_).options(**options).mode(step.mode).save(str(target.path))
        return
    if spark_format == "csv":
        options = {"header": "true", **_csv_options(options)}
    staging = target.path.with_name(f".{target.path.name}.{run_id}-{step.seq}.staging")
    try:
        staging.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staging, ignore_errors=True)
        if target.path.suffix:
            _publish_one_file(rows, spark_format, options, staging, target.path, step.mode)
        else:
            _publish_folder(rows, spark_format, options, staging, target.path, step, run_id)
    except OSError as error:
        problem = f"cannot write {target.shown}: {error.strerror or error}"
        raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem)) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _csv_options(options: Mapping[str, str]) -> dict[str, str]:
    """Our names of CSV options as Spark's."""
    names = {"delimiter": "sep", "null_value": "nullValue"}
    return {names.get(key, key): value for key, value in options.items()}


def _publish_one_file(
    rows: DataFrame, spark_format: str, options: Mapping[str, str], staging: Path, target: Path, mode: str
) -> None:
    """One file. Texts are written in parallel and joined; a Parquet file has one writer."""
    if target.is_dir():
        raise IsADirectoryError(0, "it is a folder")
    if spark_format == "parquet":
        rows = rows.coalesce(1)
    has_header = spark_format == "csv" and options.get("header", "true") == "true"
    written = {**options, "header": "false"} if has_header else dict(options)
    rows.write.format(spark_format).options(**written).save(str(staging))
    parts = sorted(path for path in staging.iterdir() if path.name.startswith("part-"))
    complete = staging / f"complete{target.suffix}"
    with complete.open("wb") as file:
        keeps_old = mode == "append" and target.exists()
        if keeps_old:
            with target.open("rb") as old:
                shutil.copyfileobj(old, file)
        elif has_header:
            separator = options.get("sep", ",")
            file.write((separator.join(_csv_cell(name, separator) for name in rows.columns) + "\n").encode())
        for part in parts:
            with part.open("rb") as piece:
                shutil.copyfileobj(piece, file)
        file.flush()
        os.fsync(file.fileno())
    complete.replace(target)


def _csv_cell(name: str, separator: str) -> str:
    return '"' + name.replace('"', '\\"') + '"' if separator in name or '"' in name else name


def _publish_folder(
    rows: DataFrame,
    spark_format: str,
    options: Mapping[str, str],
    staging: Path,
    target: Path,
    step: OutputStep,
    run_id: str,
) -> None:
    if target.exists() and not target.is_dir():
        raise NotADirectoryError(0, "it is a file")
    rows.write.format(spark_format).options(**options).save(str(staging))
    if step.mode == "append":
        _add_to_folder(staging, target, f"{run_id}-{step.seq}")
        return
    old = target.with_name(f".{target.name}.{run_id}-{step.seq}.old")
    shutil.rmtree(old, ignore_errors=True)
    if target.exists():
        target.rename(old)
    staging.rename(target)
    shutil.rmtree(old, ignore_errors=True)


def _add_to_folder(staging: Path, target: Path, owner: str) -> None:
    """Add files under names that only this step of this run uses, after removing those of an earlier attempt."""
    target.mkdir(parents=True, exist_ok=True)
    for stale in target.glob(f"part-{owner}-*"):
        stale.unlink()
    for number, path in enumerate(sorted(path for path in staging.iterdir() if path.name.startswith("part-"))):
        suffix = "".join(path.suffixes[-2:]) if path.suffixes else ""
        path.rename(target / f"part-{owner}-{number:05}{suffix}")
