"""The rows that a scenario gives, inline or from a file, as the pinned input of a run."""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clew.deferred import dataclass
from clew.definitions import Period, PeriodTree, ScenarioDataset
from clew.diagnostics import ClewError, Span, UserError, did_you_mean
from clew.diagnostics.codes.engine import SCHEMA_MISMATCH, SOURCE_UNAVAILABLE
from clew.lang.conversion import given_value
from clew.lang.typed import Value
from clew.lang.types import Kind, Type
from clew.plan.datasets import DatasetUse
from clew.plan.row_periods import first_day, is_seen
from clew.storage.drafts import draft
from clew.storage.layout import part_folder
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, Part, PartFile
from clew.storage.root import StorageRoot

_ENDINGS = {".csv", ".parquet"}


def find_rows(name: str, scenario: Path, workspace_root: Path, span: Span) -> Path:
    """The file of this name, beside the scenario or else below the workspace. UserError if there is none."""
    for folder in (scenario.parent, workspace_root):
        if (folder / name).is_file():
            return folder / name
    problem = f"there is no file {name}, neither beside the scenario nor below the workspace"
    raise UserError(SOURCE_UNAVAILABLE.at(span, problem=problem, hint="correct the path, or write the file"))


def rows_of_file(path: Path, span: Span) -> Iterator[tuple[int, dict[str, object]]]:
    """The rows of a file with their lines, or their numbers where it has no lines. Empty cells are NULL."""
    if path.suffix not in _ENDINGS:
        problem = f"the rows of a scenario cannot be read from {path.name}"
        raise UserError(SOURCE_UNAVAILABLE.at(span, problem=problem, hint="give a file that ends in .csv or .parquet"))
    try:
        yield from _parquet_rows(path) if path.suffix == ".parquet" else _csv_rows(path, span)
    except (OSError, pa.ArrowException, UnicodeDecodeError, csv.Error) as error:
        reason = str(error).splitlines()[0]
        raise UserError(SOURCE_UNAVAILABLE.at(span, problem=f"cannot read {path.name}: {reason}")) from None


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, object]]]:
    yield from enumerate(pq.read_table(path).to_pylist(), start=1)


def _csv_rows(path: Path, span: Span) -> Iterator[tuple[int, dict[str, object]]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        reader = csv.reader(lines)
        header = next(reader, None)
        if header is None:
            raise UserError(SCHEMA_MISMATCH.at(span, problem=f"{path.name} is empty: it has no header"))
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                problem = f"{path.name}, line {reader.line_num} has {len(cells)} values for {len(header)} columns"
                raise UserError(SCHEMA_MISMATCH.at(span, problem=problem))
            yield reader.line_num, {name: cell or None for name, cell in zip(header, cells, strict=True)}


_TIMES = ("_period_from", "_period_to")
"""Columns that hold days, or identifiers of periods that stand for their first day."""

_SIMPLE = {
    Kind.STRING: pa.string(),
    Kind.INTEGER: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True)
class GivenRow:
    """A row of a scenario, with the place it was written at."""

    values: Mapping[str, object]
    file: str
    line: int | None
    span: Span | None


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Reads the rows that scenarios give."""

    workspace_root: Path
    period: Period
    periods: PeriodTree

    def seen(self, use: DatasetUse, dataset: ScenarioDataset) -> list[tuple[dict[str, Value], GivenRow]]:
        """The rows of a dataset that the run's period sees, with their places."""
        rows = [(self._typed(use, row), row) for row in self._given(dataset)]
        return [(values, row) for values, row in rows if is_seen(values, use, self.period, self.periods)]

    def _given(self, dataset: ScenarioDataset) -> Iterator[GivenRow]:
        if dataset.rows is not None:
            for index, values in enumerate(dataset.rows):
                span = dataset.place("rows", index)
                yield GivenRow(values, span.file, span.line, span)
        elif dataset.file is not None:
            yield from self._from_file(dataset, dataset.file)

    def _from_file(self, dataset: ScenarioDataset, name: str) -> Iterator[GivenRow]:
        span = dataset.place("file")
        path = find_rows(name, self.workspace_root / dataset.span.file, self.workspace_root, span)
        for number, values in rows_of_file(path, span):
            yield GivenRow(values, name, number, span)

    def _typed(self, use: DatasetUse, row: GivenRow) -> dict[str, Value]:
        """The values of all columns, NULL where the row says nothing."""
        known = {column.name: column for column in use.columns}
        for name in row.values:
            if name not in known and name != "_period":
                hint = did_you_mean(name, known)
                problem = f'the dataset {use.name} has no column "{name}"'
                raise UserError(SCHEMA_MISMATCH.at(row.span, problem=problem, hint=hint))
        typed = dict[str, Value]()
        for column in use.columns:
            value = row.values.get(column.name)
            if value is None and not column.nullable and column.name != "_period":
                problem = f'the column "{column.name}" of {use.name} cannot be empty'
                raise UserError(SCHEMA_MISMATCH.at(row.span, problem=problem))
            typed[column.name] = None if value is None else self._value(value, column.name, column.type, row)
        period = row.values.get("_period")
        typed["_period"] = str(period) if period is not None else None
        return typed

    def _value(self, value: object, column: str, type_: Type, row: GivenRow) -> Value:
        if column in _TIMES:
            day = first_day(value, self.periods)
            if day is None:
                problem = f'"{value}" in the column "{column}" is neither a date nor a period'
                raise UserError(SCHEMA_MISMATCH.at(row.span, problem=problem))
            return day if type_.kind is Kind.DATE else str(value)
        return _typed_value(value, column, type_, row)


@dataclass(frozen=True, slots=True)
class InputWriter:
    """Writes the datasets of scenarios as pinned inputs below a storage root."""

    root: StorageRoot
    rows: GivenRows

    def write(self, run_id: str, use: DatasetUse, dataset: ScenarioDataset, ordinal: int) -> Part:
        """The rows of a dataset that the run's period sees, as a part with one file, or none for no rows."""
        seen = self.rows.seen(use, dataset)
        columns = [column for column in use.columns if column.name != "_period"]
        part = Part("input", use.key, (), tuple((column.name, str(column.type)) for column in columns))
        if not seen:
            return part
        arrays = {
            column.name: pa.array([values[column.name] for values, _ in seen], _arrow_type(column.type))
            for column in columns
        }
        arrays["_period"] = pa.array([values["_period"] for values, _ in seen], pa.string())
        arrays[SOURCE_FILE] = pa.array([row.file for _, row in seen], pa.string())
        arrays[SOURCE_LINE] = pa.array([row.line for _, row in seen], pa.int64())
        started = draft(self.root, part_folder(run_id, part.kind, part.name))
        with started.create("part-00000.parquet") as target:
            pq.write_table(pa.table(arrays), target)
        [file] = started.files(".parquet")
        described = PartFile(file.key, len(seen), file.size, self.root.sha256(file.key), ordinal)
        counts_rows = dataset.file is not None and dataset.file.endswith(".parquet")
        return Part("input", use.key, (described,), part.columns, details={"places": "row"} if counts_rows else None)


def _arrow_type(type_: Type) -> pa.DataType:
    return pa.decimal128(type_.precision, type_.scale) if type_.kind is Kind.DECIMAL else _SIMPLE[type_.kind]


def _typed_value(value: object, column: str, type_: Type, row: GivenRow) -> Value:
    try:
        return given_value(value, type_)
    except (ClewError, ValueError, KeyError, TypeError):
        problem = f'"{value}" in the column "{column}" is not {type_}'
        raise UserError(SCHEMA_MISMATCH.at(row.span, problem=problem)) from None
