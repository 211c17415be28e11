"""Whether Spark and this process see the same files, asked before the first step of a run.

On a cluster, rows are written by executors on other machines, and committed by this process. Where each side has a disk
to itself under the same path, everything seems to work and the rows are missing.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SOURCE_UNAVAILABLE, STORAGE_NOT_SHARED
from clew.engine.blame import SPARK_ERRORS
from clew.engine.counting import rows_in
from clew.engine.reasons import reason_of
from clew.engine.spark_internals import is_connected
from clew.plan.local_files import SourceFile
from clew.storage.drafts import Draft, draft
from clew.storage.layout import scratch_folder
from clew.storage.local import sha256_of_file
from clew.storage.root import StorageRoot

_TASKS = 16
"""Files on each side: as many tasks, so that more than one executor takes part."""
_SMALL = 16 * 1024 * 1024
_FEW = 8
"""Source files whose content executors read for comparison: so many, up to this size. Of others they tell the state."""


def is_local(spark: SparkSession) -> bool:
    """Whether executors are threads of the process that Spark's driver runs in, on this machine."""
    return not is_connected(spark) and str(spark.conf.get("spark.master", "")).startswith("local")


def require_shared(spark: SparkSession, root: StorageRoot, run_id: str) -> None:
    """Raise StorageNotShared where executors do not see what this process writes to storage, or the reverse."""
    if not is_local(spark):
        try_storage(spark, root, run_id)


def try_storage(spark: SparkSession, root: StorageRoot, run_id: str) -> None:
    """The same, also where executors are threads of this process: they may lack the rights, or a file system."""
    probe = draft(root, scratch_folder(run_id, "probe"))
    try:
        _require_read(spark, probe)
        _require_written(spark, probe)
    finally:
        probe.abandon()


def _require_read(spark: SparkSession, probe: Draft) -> None:
    root = probe.root
    keys = [f"{probe.folder}/here/{number}.parquet" for number in range(_TASKS)]
    for number, key in enumerate(keys):
        with root.create(key) as file:
            pq.write_table(pa.table({"n": pa.array([number], pa.int64())}), file)
    problem = f"Spark's executors do not see the files that this process writes to {root.address}"
    with _told(problem):
        rows = spark.read.schema("n BIGINT").parquet(*(root.spark_uri(key) for key in keys))
        found = rows.agg(F.count("n").alias("rows")).collect()[0]["rows"]
    if found != _TASKS:
        raise UserError(STORAGE_NOT_SHARED.anywhere(problem=f"{problem}: they read {found} of {_TASKS}"))


def _require_written(spark: SparkSession, probe: Draft) -> None:
    root = probe.root
    folder = f"{probe.folder}/there"
    problem = f"this process does not see the files that Spark's executors write to {root.address}"
    with _told(f"Spark's executors cannot write to {root.address}"):
        spark.range(0, _TASKS, 1, _TASKS).write.parquet(root.spark_uri(folder))
    keys = [file.key for file in root.files(folder) if file.name.startswith("part-") and file.name.endswith(".parquet")]
    found = rows_in(root, keys)
    if found != _TASKS:
        raise UserError(STORAGE_NOT_SHARED.anywhere(problem=f"{problem}: it sees {found} of {_TASKS}"))


def unseen_sources(spark: SparkSession, files: Sequence[SourceFile]) -> list[SourceFile]:
    """The source files in folders of this machine that executors do not see, or not as this process does."""
    if is_local(spark):
        return []
    local = [file for file in files if file.is_local]
    compared = [file for file in local if file.size <= _SMALL][:_FEW]
    seen = _seen(spark, compared, _DIGEST, _digest_here)
    seen |= _seen(spark, [file for file in local if file not in compared], _STATE, _state_here)
    return [file for file in local if file.path not in seen]


def require_sources_shared(spark: SparkSession, files: Sequence[SourceFile]) -> None:
    """Raise StorageNotShared where executors do not see the files of a format that only a connector understands."""
    for file in unseen_sources(spark, files)[:1]:
        problem = f"Spark's executors do not see the source file {file.path} as this process does"
        raise UserError(STORAGE_NOT_SHARED.anywhere(problem=problem))


_DIGEST = "sha2(content, 256)"
_STATE = "concat(length, ' ', unix_millis(modificationTime))"
"""What executors say about a file: `binaryFile` asks for size and age where the rows are, and not where they are
planned, and reads the content only if it is asked for."""


def _digest_here(file: SourceFile) -> str:
    return sha256_of_file(Path(file.path))


def _state_here(file: SourceFile) -> str:
    found = Path(file.path).stat()
    return f"{found.st_size} {found.st_mtime_ns // 1_000_000}"


def _seen(spark: SparkSession, files: Sequence[SourceFile], asked: str, here: Callable[[SourceFile], str]) -> set[str]:
    """The paths about which executors say the same as this process."""
    if not files:
        return set()
    reader = spark.read.format("binaryFile").option("ignoreMissingFiles", "true")
    try:
        rows = reader.load([file.literal_path for file in files]).selectExpr("path", f"{asked} AS said").collect()
    except SPARK_ERRORS:
        return set()  # whatever is wrong with that place: executors have just read from storage
    said = {re.sub("^file:/+", "/", row["path"]): row["said"] for row in rows}
    try:
        return {file.path for file in files if said.get(file.path) == here(file)}
    except OSError as error:
        problem = f"a source file cannot be read: {error.filename}: {error.strerror}"
        raise UserError(SOURCE_UNAVAILABLE.anywhere(problem=problem)) from None


@contextmanager
def _told(problem: str) -> Iterator[None]:
    try:
        yield
    except SPARK_ERRORS as error:
        raise UserError(STORAGE_NOT_SHARED.anywhere(problem=f"{problem}: {reason_of(error)}")) from error
