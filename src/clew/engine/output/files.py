"""Files of outputs: written by Spark to a folder of the attempt, counted, and published by their place.

A path with a suffix (`closed.csv`) is one file, a path without one is a folder of files. Formats that need a connector
of Spark are published by the connector, all at once.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence

import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from clew.deferred import dataclass
from clew.definitions.operations.output import ESCAPE_FORMULAS
from clew.diagnostics import TransientFailure, UserError, did_you_mean
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.engine.blame import SPARK_ERRORS, is_value_error, translated
from clew.engine.counting import counted, require_rows, told_as_missing
from clew.engine.output.arranging import folders_of, named_by_value
from clew.engine.output.digests import OutputDigest, digest_of
from clew.engine.output.formulas import without_formulas
from clew.engine.output.places import OutputPlace, StagedPiece
from clew.engine.output.row_counts import rows_in_pieces
from clew.engine.reasons import reason_of
from clew.engine.spark_internals import is_connected
from clew.engine.sql import quoted
from clew.plan.operations import OutputStep

_KNOWN = ("csv", "jsonl", "json", "orc", "parquet")
_NEEDS_JARS = "third-party formats need their jars under `spark.jars` in clew.yaml, and often settings in its config"
_SERVER_NEEDS_JARS = (
    "through Spark Connect, jars, extensions and catalogs of third-party formats are settings of the server: its "
    "administrator starts it with them"
)
_BUILT_FOR_ANOTHER = (
    "AbstractMethodError",
    "IncompatibleClassChangeError",
    "NoClassDefFoundError",
    "NoSuchMethodError",
)
"""What Java says where a library does not fit the one it calls."""


def write_through(
    rows: DataFrame, step: OutputStep, format_: str, options: Mapping[str, str], *, path: str, shown: str
) -> Callable[[], None]:
    """What writes the rows when it is called.

    Formats other than those of tables (see `lake_tables`) do not remember who has written, so they are only
    overwritten, which a retry repeats from the start.
    """
    if step.mode == "append":
        problem = f"cannot append to {shown}: in the format {format_} a retry could duplicate its rows"
        raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint="use the mode overwrite"))

    def write() -> None:
        try:
            rows.write.format(format_).options(**options).mode(step.mode).save(path)
        except SPARK_ERRORS as error:
            told = refused(error, step, format_, shown, rows.sparkSession)
            if told is None:
                raise
            raise told from error

    return write


def refused(error: Exception, step: OutputStep, format_: str, shown: str, spark: SparkSession) -> UserError | None:
    """What an error of a connector means for an output; None where a value or the platform is to blame."""
    if is_value_error(error) or isinstance(translated(error, step, None), TransientFailure):
        return None
    is_foreign = any(name in str(error) for name in _BUILT_FOR_ANOTHER)
    reason = "its connector is built for another version of Spark" if is_foreign else reason_of(error)
    problem = f"cannot write {shown} as {format_}: {reason}"
    hint = did_you_mean(format_, _KNOWN) or (_SERVER_NEEDS_JARS if is_connected(spark) else _NEEDS_JARS)
    return UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint))


_TEXTS = {"csv": "csv", "jsonl": "json", "json": "json"}
_SPARK_FORMATS = {**_TEXTS, "orc": "orc", "parquet": "parquet"}
"""Formats that are published by renaming, with Spark's name for them."""

_CSV_OPTIONS = {"delimiter": "sep", "null_value": "nullValue"}
"""Our names of options for CSV, as Spark's. Quotes inside quotes are doubled, as most readers expect."""

_JSON_OPTIONS = {"ignoreNullFields": "false"}
"""Every row has every column, NULL where there is no value: readers learn the columns from the rows."""


Further = Callable[[Sequence[str]], tuple[DataFrame, bool]]
"""Gives further rows of an output from where the files lie that hold its first ones, and says whether they are few."""


@dataclass(frozen=True, slots=True)
class WrittenOutput:
    """An output that is written, and what makes it visible."""

    rows: int | None
    """How many rows its files hold; None where nothing is written before it is published."""
    publish: Callable[[], int]
    """Makes it visible, and gives its rows."""
    digest: OutputDigest | None = None
    """Of its files; None where a connector writes them."""


def has_one_writer(step: OutputStep, place: OutputPlace) -> bool:
    """Whether the output is one file that cannot be joined byte by byte from what several writers write."""
    is_text = _SPARK_FORMATS.get(step.destination.format or "parquet") in _TEXTS.values()
    return place.is_one_file and not (is_text and not {"compression", "encoding"} & place.options.keys())


def write_files(rows: DataFrame, step: OutputStep, place: OutputPlace, further: Further | None = None) -> WrittenOutput:
    """Write rows to the folder of the attempt, and give what moves them to their destination.

    `further` gives rows that are worked out from the first ones, where the output is a folder of Parquet files.
    """
    format_ = step.destination.format or "parquet"
    spark_format = _SPARK_FORMATS.get(format_)
    if spark_format is None:
        return _through_connector(rows, step, place, format_)
    if spark_format == "csv" and place.options.get(ESCAPE_FORMULAS) == "true":
        rows = without_formulas(rows)
    options = _options(place, spark_format)
    place.require_room(step, can_be_extended=spark_format in _TEXTS.values())
    try:
        if place.is_one_file:
            return _one_file(rows, step, place, _Format(spark_format, options))
        return _folder(rows, step, place, _Format(spark_format, options, folders_of(step)), further)
    except BaseException:
        place.abandon()
        raise


def _through_connector(rows: DataFrame, step: OutputStep, place: OutputPlace, format_: str) -> WrittenOutput:
    observed, count = counted(rows)
    write = write_through(observed, step, format_, dict(place.options), path=place.spark_uri, shown=place.shown)

    def publish() -> int:
        write()
        return count()

    return WrittenOutput(None, publish)


def _options(place: OutputPlace, spark_format: str) -> dict[str, str]:
    options = dict(place.options)
    if spark_format == "csv":
        options.pop(ESCAPE_FORMULAS, None)
        given = {_CSV_OPTIONS.get(key, key): value for key, value in options.items()}
        return {"header": "true", "escape": '"', **given}
    return {**_JSON_OPTIONS, **options} if spark_format == "json" else options


@dataclass(frozen=True, slots=True)
class _Format:
    """A format that is published file by file, with Spark's options."""

    name: str
    options: Mapping[str, str]
    folders: tuple[str, ...] = ()
    """The columns by whose values rows go to folders."""

    def write(self, rows: DataFrame, place: OutputPlace) -> "_Staged":
        """Write rows to the folder of the attempt, and make sure that they are there."""
        observed, count = counted(rows)
        observed.write.format(self.name).options(**self.options).partitionBy(*self.folders).save(place.staging_uri)
        pieces = place.pieces()
        self.require(rows, place, pieces, count())
        return _Staged(pieces, count())

    def require(self, rows: DataFrame, place: OutputPlace, pieces: Sequence[StagedPiece], expected: int) -> None:
        """Compare the rows in files with those that were written. Where bytes do not tell, Spark reads them again."""
        with told_as_missing(place.shown):
            found = rows_in_pieces(self.name, self.options, (piece.open() for piece in pieces))
        if found != expected and self.name in _TEXTS.values():
            found = self._read_again(rows, pieces)
        require_rows(found or 0, expected, place=place.shown)

    def _read_again(self, rows: DataFrame, pieces: Sequence[StagedPiece]) -> int:
        if not pieces:
            return 0
        reader = rows.sparkSession.read.format(self.name).options(**self.options)
        texts = ", ".join(f"{quoted(name)} STRING" for name in rows.columns)
        whole = {"multiLine": "true"} if self.name == "csv" else {}
        try:
            return int(reader.options(**whole).schema(texts).load([piece.uri for piece in pieces]).count())
        except SPARK_ERRORS:
            return 0


@dataclass(frozen=True, slots=True)
class _Staged:
    """Files of an output in the folder of its attempt, in their order."""

    pieces: Sequence[StagedPiece]
    rows: int


# A folder of files


def _folder(
    rows: DataFrame, step: OutputStep, place: OutputPlace, format_: _Format, further: Further | None
) -> WrittenOutput:
    staged = format_.write(rows, place)
    if further is not None:
        staged = _with_further(further, staged, place, format_)

    pieces = named_by_value(staged.pieces, step, place.shown)

    def publish() -> int:
        place.publish_folder(step, pieces)
        return staged.rows

    return WrittenOutput(staged.rows, publish, digest_of(pieces))


def _with_further(further: Further, first: _Staged, place: OutputPlace, format_: _Format) -> _Staged:
    """Add rows in files after those that are there."""
    rows, is_small = further([piece.uri for piece in first.pieces])
    if is_small and not format_.options:
        table = rows.toArrow()
        with place.create_piece(f"part-00000-{uuid.uuid4()}-c000.snappy.parquet") as file:
            pq.write_table(table, file, store_decimal_as_integer=True)
        expected = table.num_rows
    else:
        observed, count = counted(rows)
        observed.write.mode("append").options(**format_.options).parquet(place.staging_uri)
        expected = count()
    known = {piece.name for piece in first.pieces}
    added = [piece for piece in place.pieces() if piece.name not in known]
    format_.require(rows, place, added, expected)
    return _Staged([*first.pieces, *added], first.rows + expected)


# One file


def _one_file(rows: DataFrame, step: OutputStep, place: OutputPlace, format_: _Format) -> WrittenOutput:
    """Texts are written in parallel and joined; what cannot be joined byte by byte has one writer."""
    options = format_.options
    names_columns = format_.name == "csv" and options.get("header", "true") == "true"
    is_plain = format_.name in _TEXTS.values() and not {"compression", "encoding"} & options.keys()
    adds = step.mode == "append" and place.has_others()
    written = {**options, "header": "false"} if names_columns and (is_plain or adds) else dict(options)
    staged = _Format(format_.name, written).write(rows if is_plain else rows.coalesce(1), place)
    header = _header(rows, options) if names_columns and is_plain else b""

    def publish() -> int:
        place.publish_file(step, staged.pieces, header)
        return staged.rows

    return WrittenOutput(staged.rows, publish, digest_of(staged.pieces))


def _header(rows: DataFrame, options: Mapping[str, str]) -> bytes:
    separator, escape = options.get("sep", ","), options.get("escape", '"')
    return (separator.join(_csv_cell(name, separator, escape) for name in rows.columns) + "\n").encode()


def _csv_cell(name: str, separator: str, escape: str) -> str:
    return '"' + name.replace('"', f'{escape}"') + '"' if separator in name or '"' in name else name
