"""Rows of source files, read in plain Python: a look at a few files, not a way to load them.

Only what a question needs is turned into values. What cannot be read as its type counts as NULL here, since a look does
not judge; whether a file can be loaded is for a run to say.
"""

# ruff: noqa: PLC0415 - Parquet is read only where there is some

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from clew.app.given_values import given_value
from clew.diagnostics import ClewError
from clew.lang.typed import Value
from clew.lang.types import Type
from clew.plan.datasets import DatasetUse
from clew.plan.resolution import Source

READABLE = frozenset({"csv", "jsonl", "parquet"})
"""The formats that can be looked into."""

_LONGEST_FIELD = 1 << 24


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of a file."""

    line: int
    given: Mapping[str, object]

    def values(self, use: DatasetUse, names: frozenset[str]) -> dict[str, Value]:
        """The values of some columns of the dataset."""
        return {
            column.name: _value(self.given.get(column.name), column.type)
            for column in use.columns
            if column.name in names
        }


def rows_of_file(path: Path, source: Source, use: DatasetUse) -> Iterator[SourceRow]:
    """The rows of a file. OSError, ValueError or csv.Error where it is not what its rule says."""
    match source.format:
        case "csv":
            yield from _csv_rows(path, source.options, [column.name for column in use.columns])
        case "jsonl":
            with path.open(encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, 1):
                    given = json.loads(line, parse_float=Decimal) if line.strip() else None
                    if isinstance(given, dict):
                        yield SourceRow(number, given)
        case "parquet":
            import pyarrow.parquet as pq

            first = 1
            for batch in pq.ParquetFile(path).iter_batches():
                for offset, given in enumerate(batch.to_pylist()):
                    yield SourceRow(first + offset, given)
                first += batch.num_rows
        case _:
            raise ValueError(f"{source.format} cannot be looked into")


def _csv_rows(path: Path, options: Mapping[str, str], columns: list[str]) -> Iterator[SourceRow]:
    has_header = options.get("header", "true").lower() == "true"
    is_multiline = options.get("multiline", "false").lower() == "true"
    absent = options.get("null_value", "")
    encoding = options.get("encoding", "utf-8")
    csv.field_size_limit(_LONGEST_FIELD)
    with path.open(encoding="utf-8-sig" if encoding.lower() in {"utf-8", "utf8"} else encoding, newline="") as lines:
        quote = options.get("quote", '"')
        reader = csv.reader(
            lines,
            delimiter=options.get("delimiter", options.get("sep", ",")).replace("\\t", "\t"),
            quotechar=quote or None,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        )
        names = [name.strip() for name in _heading(reader)] if has_header else columns
        for number, fields in enumerate((fields for fields in reader if fields), 1):
            given = {name: None if field in {"", absent} else field for name, field in zip(names, fields, strict=False)}
            yield SourceRow(number if is_multiline else reader.line_num, given)


def _heading(reader: Iterator[list[str]]) -> list[str]:
    return next((fields for fields in reader if any(fields)), [])


def _value(given: object, type_: Type) -> Value:
    if given is None:
        return None
    try:
        return given_value(given, type_)
    except (ClewError, KeyError, TypeError, ValueError):
        return None
