"""Rows of a scenario that stand in a file of their own."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clew.diagnostics import Span, UserError
from clew.diagnostics.codes.engine import SCHEMA_MISMATCH, SOURCE_UNAVAILABLE

_ENDINGS = {".csv", ".parquet"}


def find_rows(name: str, scenario: Path, workspace_root: Path, span: Span) -> Path:
    """The file of this name, beside the scenario or else below the workspace. UserError where there is none."""
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
