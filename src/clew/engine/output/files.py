"""Outputs to files: staged beside their destination, published by renaming, never doubled by a retry.

A path with a suffix (`closed.csv`) is one file, a path without one is a folder of files. Formats that need a connector
of Spark, such as `delta`, are published by the connector, all at once.
"""

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from clew.definitions.operations.output import ESCAPE_FORMULAS
from clew.diagnostics import TransientFailure, UserError, did_you_mean
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.engine.blame import SPARK_ERRORS, is_value_error, translated
from clew.engine.loading.files import reason_of
from clew.engine.output.formulas import without_formulas
from clew.plan.operations import OutputStep
from clew.storage.layout import StagingName, staging_name
from clew.storage.local import remove_superseded, replace_file

DELTA = "delta"
_KNOWN = ("csv", "jsonl", "json", "orc", "parquet")
_NEEDS_JARS = "third-party formats need their jars under `spark.jars` in clew.yaml, and often settings in its config"
_BUILT_FOR_ANOTHER = (
    "AbstractMethodError",
    "IncompatibleClassChangeError",
    "NoClassDefFoundError",
    "NoSuchMethodError",
)
"""What Java says where a library does not fit the one it calls."""


def write_through(
    rows: DataFrame, step: OutputStep, format_: str, options: Mapping[str, str], *, path: str, shown: str, owner: str
) -> Callable[[], None]:
    """What writes the rows when it is called.

    Delta remembers who has written, so a retry adds nothing twice. Other formats do not remember it, so they are only
    overwritten, which a retry repeats from the start.
    """
    if step.mode == "append" and format_ != DELTA:
        problem = f"cannot append to {shown}: in the format {format_} a retry could duplicate its rows"
        raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint="use the mode overwrite"))
    once = {"txnAppId": owner, "txnVersion": "1"} if step.mode == "append" else {}

    def write() -> None:
        try:
            rows.write.format(format_).options(**options, **once).mode(step.mode).save(path)
        except SPARK_ERRORS as error:
            if is_value_error(error) or isinstance(translated(error, step), TransientFailure):
                raise
            is_foreign = any(name in str(error) for name in _BUILT_FOR_ANOTHER)
            reason = "its connector is built for another version of Spark" if is_foreign else reason_of(error)
            problem = f"cannot write {shown} as {format_}: {reason}"
            hint = did_you_mean(format_, _KNOWN) or _NEEDS_JARS
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint)) from error

    return write


_TEXTS = {"csv": "csv", "jsonl": "json", "json": "json"}
_SPARK_FORMATS = {**_TEXTS, "orc": "orc", "parquet": "parquet"}
"""Formats that are published by renaming, with Spark's name for them."""

_CSV_OPTIONS = {"delimiter": "sep", "null_value": "nullValue"}
"""Our names of options for CSV, as Spark's. Quotes inside quotes are doubled, as most readers expect."""

_JSON_OPTIONS = {"ignoreNullFields": "false"}
"""Every row has every column, NULL where there is no value: readers learn the columns from the rows."""


Further = Callable[[Sequence[Path]], tuple[DataFrame, bool]]
"""Gives further rows of an output from the files that hold its first ones, and says whether they are few."""


@dataclass(frozen=True, slots=True)
class OutputFolder:
    """Where an output goes, and whose it is."""

    path: Path
    shown: str
    owner: str
    """Run and step: what the same owner published before is replaced, not doubled."""
    step: OutputStep
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The options of the format, with the values of secrets."""
    _new: StagingName = field(init=False, repr=False, compare=False)
    _old: StagingName = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_new", staging_name(f".{self.path.name}.{self.owner}"))
        object.__setattr__(self, "_old", staging_name(f".{self.path.name}.{self.owner}.old"))

    @property
    def is_one_file(self) -> bool:
        """Whether the output is one file, not a folder of them."""
        return bool(self.path.suffix)

    @property
    def staging(self) -> Path:
        """Where the output lies until it is published: a name that no other attempt has."""
        return self.path.with_name(self._new.text)

    @property
    def old(self) -> Path:
        """Where the folder that is there lies while the new one takes its place."""
        return self.path.with_name(self._old.text)

    def clean_up(self) -> None:
        """Remove what is left of this attempt, and of earlier ones that were killed."""
        shutil.rmtree(self.staging, ignore_errors=True)
        for name in (self._new, self._old):
            remove_superseded(self.path.parent, name)

    def conflict(self, problem: str, hint: str | None = None) -> UserError:
        """An error at the place of the step."""
        return UserError(OUTPUT_CONFLICT.at(self.step.place, problem=problem, hint=hint))


def write_files(rows: DataFrame, destination: OutputFolder, further: Further | None = None) -> Callable[[], None]:
    """Write rows to a staging place, and give what moves them to their destination.

    `further` gives rows that are worked out from the first ones, where the output is a folder of Parquet files.
    """
    try:
        publish = _staged(rows, destination)
        if further is not None:
            _stage_further(further, destination)
    except BaseException:
        discard_files(destination)
        raise
    return publish


def discard_files(destination: OutputFolder) -> None:
    """Delete what was staged and not published."""
    shutil.rmtree(destination.staging, ignore_errors=True)


def _staged(rows: DataFrame, destination: OutputFolder) -> Callable[[], None]:
    step = destination.step
    options = dict(destination.options)
    format_ = step.destination.format or "parquet"
    spark_format = _SPARK_FORMATS.get(format_)
    if spark_format is None:
        path, shown, owner = str(destination.path), destination.shown, destination.owner
        return write_through(rows, step, format_, options, path=path, shown=shown, owner=owner)
    if spark_format == "csv":
        if options.pop(ESCAPE_FORMULAS, None) == "true":
            rows = without_formulas(rows)
        given = {_CSV_OPTIONS.get(key, key): value for key, value in options.items()}
        options = {"header": "true", "escape": '"', **given}
    elif spark_format == "json":
        options = {**_JSON_OPTIONS, **options}
    _require_room(destination, spark_format)
    with _told_as_conflict(destination):
        destination.path.parent.mkdir(parents=True, exist_ok=True)
    if destination.is_one_file:
        return _stage_file(rows, spark_format, options, destination)
    rows.write.format(spark_format).options(**options).save(str(destination.staging))
    return lambda: _publish_folder(destination)


def _stage_further(further: Further, destination: OutputFolder) -> None:
    """Append rows in files after those that are there, also in the order of names, in which most readers take them."""
    first = _pieces(destination.staging)
    rows, is_small = further(first)
    options = dict(destination.options)
    if is_small and not options:
        piece = destination.staging / f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
        pq.write_table(rows.toArrow(), piece, store_decimal_as_integer=True)
    else:
        rows.write.mode("append").options(**options).parquet(str(destination.staging))
    added = [path for path in _pieces(destination.staging) if path not in first]
    for number, path in enumerate(added, start=len(first)):
        path.rename(path.with_name(f"part-{number:05}-{path.name.split('-', 2)[2]}"))


def _pieces(staging: Path) -> list[Path]:
    return sorted(path for path in staging.iterdir() if path.name.startswith("part-"))


def _require_room(destination: OutputFolder, spark_format: str) -> None:
    """Obvious obstacles are reported before anything is computed."""
    path = destination.path
    if destination.is_one_file and path.is_dir():
        raise destination.conflict(f"cannot write {destination.shown}: it is a folder")
    if not destination.is_one_file and path.exists() and not path.is_dir():
        raise destination.conflict(f"cannot write {destination.shown}: it is a file, and the output is a folder")
    adds = destination.is_one_file and destination.step.mode == "append"
    if adds and spark_format not in _TEXTS.values() and AppendedFiles(path, destination.owner).has_others():
        hint = "write to a folder, to which files can be added"
        name = spark_format.capitalize()
        raise destination.conflict(f"cannot append to {destination.shown}: a {name} file cannot be extended", hint)


@contextmanager
def _told_as_conflict(destination: OutputFolder) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise destination.conflict(f"cannot write {destination.shown}: {error.strerror or error}") from error


# One file


def _stage_file(
    rows: DataFrame, spark_format: str, options: Mapping[str, str], destination: OutputFolder
) -> Callable[[], None]:
    """Texts are written in parallel and joined; what cannot be joined byte by byte has one writer."""
    names_columns = spark_format == "csv" and options.get("header", "true") == "true"
    is_plain = spark_format in _TEXTS.values() and not {"compression", "encoding"} & options.keys()
    adds = destination.step.mode == "append" and AppendedFiles(destination.path, destination.owner).has_others()
    written = {**options, "header": "false"} if names_columns and (is_plain or adds) else dict(options)
    pieces = rows if is_plain else rows.coalesce(1)
    pieces.write.format(spark_format).options(**written).save(str(destination.staging))
    header = _header(rows, options) if names_columns and is_plain else b""
    return lambda: _publish_file(destination, header)


def _header(rows: DataFrame, options: Mapping[str, str]) -> bytes:
    separator, escape = options.get("sep", ","), options.get("escape", '"')
    return (separator.join(_csv_cell(name, separator, escape) for name in rows.columns) + "\n").encode()


def _csv_cell(name: str, separator: str, escape: str) -> str:
    return '"' + name.replace('"', f'{escape}"') + '"' if separator in name or '"' in name else name


def _publish_file(destination: OutputFolder, header: bytes) -> None:
    staging, target = destination.staging, destination.path
    with _told_as_conflict(destination):
        complete = staging / f"complete{target.suffix}"
        appended = AppendedFiles(target, destination.owner)
        with complete.open("wb") as file:
            if destination.step.mode == "append":
                appended.copy_others(file.write)
            if file.tell() == 0:
                file.write(header)
            start = file.tell()
            for part in _pieces(staging):
                with part.open("rb") as piece:
                    shutil.copyfileobj(piece, file)
            end = file.tell()
            file.flush()
            os.fsync(file.fileno())
        if destination.step.mode == "append":
            appended.note(start, end)
        else:
            appended.forget()
        complete.replace(target)
    destination.clean_up()


class AppendedFiles:
    """Which bytes of a file which run has added, kept in a file beside it, so that a retry removes its own first."""

    def __init__(self, target: Path, owner: str) -> None:
        self._target = target
        self._owner = owner
        self._notes = target.with_name(f".{target.name}.appended.json")
        self._kept = list[tuple[str, int, int]]()

    def has_others(self) -> bool:
        """Whether the file holds anything that this owner did not add."""
        size = self._target.stat().st_size if self._target.exists() else 0
        return size > sum(end - start for owner, start, end in self._noted(size) if owner == self._owner)

    def copy_others(self, write: Callable[[bytes], int]) -> None:
        """Copy what the file holds, without what this owner added to it before."""
        if not self._target.exists():
            return
        size = self._target.stat().st_size
        position, removed = 0, 0
        with self._target.open("rb") as old:
            for owner, start, end in self._noted(size):
                if owner == self._owner:
                    _copy(old, write, start - position)
                    old.seek(end)
                    position, removed = end, removed + end - start
                else:
                    self._kept.append((owner, start - removed, end - removed))
            _copy(old, write, size - position)

    def note(self, start: int, end: int) -> None:
        """Remember what this owner is about to add. A note about bytes that were never written counts for nothing."""
        entries = [*self._kept, (self._owner, start, end)]
        replace_file(self._notes, json.dumps(entries).encode())

    def forget(self) -> None:
        """The file is about to be replaced as a whole."""
        self._notes.unlink(missing_ok=True)

    def _noted(self, size: int) -> list[tuple[str, int, int]]:
        if not self._notes.exists():
            return []
        entries = json.loads(self._notes.read_text(encoding="utf-8"))
        return [(owner, start, end) for owner, start, end in entries if end <= size]


def _copy(source: BinaryIO, write: Callable[[bytes], int], count: int) -> None:
    while count > 0 and (chunk := source.read(min(count, 1 << 20))):
        write(chunk)
        count -= len(chunk)


# A folder of files


def _publish_folder(destination: OutputFolder) -> None:
    with _told_as_conflict(destination):
        if destination.step.mode == "append":
            _add_to_folder(destination)
        else:
            _replace_folder(destination)
    destination.clean_up()


def _replace_folder(destination: OutputFolder) -> None:
    staging, target, old = destination.staging, destination.path, destination.old
    if target.exists():
        target.rename(old)
    try:
        staging.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _add_to_folder(destination: OutputFolder) -> None:
    """Add files under names that only this step of this run uses, after removing those of an earlier attempt."""
    target = destination.path
    target.mkdir(parents=True, exist_ok=True)
    for stale in target.glob(f"part-{destination.owner}-*"):
        stale.unlink()
    for number, path in enumerate(_pieces(destination.staging)):
        path.rename(target / f"part-{destination.owner}-{number:05}{''.join(path.suffixes[-2:])}")
