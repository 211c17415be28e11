"""Corrected rows for those in quarantine: a CSV file as `clew quarantine --export` writes it, edited by someone.

Each row names the file and line of the row that it replaces. It is loaded like any other and cited with both places. A
correction of a row that is not in quarantine is refused, since that row would be loaded twice.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.definitions import FilesDatasource
from clew.definitions.dataset import PERIOD_COLUMN
from clew.diagnostics.file_system import OutOfReach
from clew.engine.loading.conversions import BROKEN, RawRows, text_cell
from clew.engine.loading.sources import Origin, PinRequest, mismatch, place, positions_of, unavailable
from clew.engine.loading.text_rows import FoundFile
from clew.engine.parts import DraftedPart, arrow_tables
from clew.plan.datasets import DatasetUse
from clew.plan.file_rules import FileRules
from clew.storage.csv_records import CsvRecord, opened_records
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE
from clew.storage.quarantine import CORRECTION, SOURCE_FILE_COLUMN, SOURCE_LINE_COLUMN
from clew.storage.source_files import source_files

_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected row."""

    file: str
    line: int
    original_file: str
    original_line: int
    texts: tuple[str | None, ...]

    @property
    def source(self) -> str:
        """The file as citations name it."""
        return f"{self.file} (corrects {self.original_file}, line {self.original_line})"


@dataclass(frozen=True, slots=True)
class Corrections:
    """All corrected rows of a dataset, in the order of the dataset's columns."""

    files: tuple[FoundFile, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[Correction, ...] = ()

    def raw(self, spark: SparkSession, rules: FileRules) -> RawRows | None:
        """The rows for Spark; None where there are none."""
        if not self.rows:
            return None
        names = [f"f{position}" for position in range(len(self.columns))]
        schema = pa.schema(
            [(SOURCE_FILE, pa.string()), (SOURCE_LINE, pa.int64()), *((name, pa.string()) for name in names)]
        )
        arrays = [[each.source for each in self.rows], [each.line for each in self.rows]]
        texts = [[each.texts[position] for each in self.rows] for position in range(len(names))]
        frame = spark.createDataFrame(pa.table([*arrays, *texts], schema=schema))
        cells = {
            column: text_cell(name, rules.of(column), empty_is_null=True)
            for column, name in zip(self.columns, names, strict=True)
        }
        return RawRows(frame.withColumn(BROKEN, F.lit(None).cast("STRING")), cells)

    def places(self, spark: SparkSession) -> DataFrame | None:
        """Which original row each corrects."""
        if not self.rows:
            return None
        found = [(each.original_file, each.original_line, place(each.file, each.line)) for each in self.rows]
        return spark.createDataFrame(found, f"{SOURCE_FILE} STRING, {SOURCE_LINE} BIGINT, {CORRECTION} STRING")

    def require_in_quarantine(self, drafted: DraftedPart | None) -> None:
        """Every corrected row is one that was kept apart, and has one correction."""
        known = set[tuple[str, int]]()
        for table in [] if drafted is None else arrow_tables(drafted.root, drafted.part, [SOURCE_FILE, SOURCE_LINE]):
            known.update(zip(table[SOURCE_FILE].to_pylist(), table[SOURCE_LINE].to_pylist(), strict=True))
        for each in self.rows:
            if (each.original_file, each.original_line) not in known:
                where = place(each.file, each.line)
                problem = (
                    f"{where}, corrects {place(each.original_file, each.original_line)}, which is not in quarantine"
                )
                hint = "remove the correction; that row is good now, or there is none"
                raise mismatch(problem, hint)


NO_CORRECTIONS = Corrections()


def read_corrections(request: PinRequest) -> Corrections:
    """The corrected rows that the rule of a request names; none where the file is not there."""
    files, rows = list[FoundFile](), list[Correction]()
    for source in request.sources:
        datasource = request.datasources.get(source.datasource_id)
        if source.corrections is None or not isinstance(datasource, FilesDatasource):
            continue
        named = replace(source, location=source.corrections)
        for file in source_files(datasource, request.workspace_root, request.root_of, named):
            if any(file.path == each.file.path for each in files):
                continue
            if file.size > _MOST_BYTES:
                raise unavailable(f"{file.shown} is too large for a file of corrections")
            found = FoundFile(file, source.period if source.holds_one_period else None)
            files.append(found)
            rows += _read(request.use, found)
    _require_once(rows)
    return Corrections(tuple(files), tuple(column.name for column in request.use.columns), tuple(rows))


def _read(use: DatasetUse, found: FoundFile) -> list[Correction]:
    file = found.file
    try:
        with opened_records(file, {}) as records:
            header = next(records, None)
            if header is None:
                raise mismatch(f"{file.shown} is empty: it has no header", "export the quarantine again")
            positions = positions_of(use, header.fields, Origin(file.shown, found.period))
            places = [_position(header, name, file.shown) for name in (SOURCE_FILE_COLUMN, SOURCE_LINE_COLUMN)]
            rows = [_correction(use, record, header, places, positions, found) for record in records]
    except UnicodeDecodeError:
        raise mismatch(f"{file.shown} is not UTF-8 text", "save the file as UTF-8") from None
    except OutOfReach:
        raise
    except (OSError, csv.Error) as error:
        raise unavailable(f"cannot read {file.shown}: {error}") from None
    return rows


def _position(header: CsvRecord, name: str, file: str) -> int:
    if name not in header.fields:
        hint = "keep the columns that `clew quarantine --export` wrote"
        raise mismatch(f'{file} has no column "{name}", which ties a row to the one that it corrects', hint)
    return header.fields.index(name)


def _correction(
    use: DatasetUse,
    record: CsvRecord,
    header: CsvRecord,
    places: Sequence[int],
    positions: Mapping[str, int],
    found: FoundFile,
) -> Correction:
    """A row. Only the period may have no column; where the place says it, it may also be left blank."""
    file = found.file.shown
    where = place(file, record.line)
    if len(record.fields) != len(header.fields):
        raise mismatch(f"{where}, has {len(record.fields)} fields, the header has {len(header.fields)}")
    line = record.fields[places[1]]
    if not line.isascii() or not line.isdigit():
        raise mismatch(f'{where}: "{line}" is not the line of a row', "keep what the export wrote there")
    texts = {name: record.fields[position] or None for name, position in positions.items()}
    if use.temporal_mode == "period":
        texts[PERIOD_COLUMN] = texts.get(PERIOD_COLUMN) or found.period
    in_order = tuple(texts[column.name] for column in use.columns)
    return Correction(file, record.line, record.fields[places[0]], int(line), in_order)


def _require_once(rows: Sequence[Correction]) -> None:
    seen = dict[tuple[str, int], Correction]()
    for row in rows:
        other = seen.setdefault((row.original_file, row.original_line), row)
        if other is not row:
            places = f"{place(other.file, other.line)}, and {place(row.file, row.line)}"
            problem = f"{place(row.original_file, row.original_line)}, is corrected twice: {places}"
            raise mismatch(problem, "remove one of them")
