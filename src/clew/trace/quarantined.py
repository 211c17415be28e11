"""The rows of a dataset that a run kept apart when it loaded the others, and what was wrong with them."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from clew.deferred import dataclass
from clew.lang.typed import Value
from clew.plan.datasets import DatasetUse
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, Part
from clew.storage.quarantine import (
    CORRECTION,
    PROBLEM_COLUMN,
    PROBLEMS,
    RECORD,
    SOURCE_FILE_COLUMN,
    SOURCE_LINE_COLUMN,
    TEXTS,
)

_STORED = [SOURCE_FILE, SOURCE_LINE, PROBLEMS, TEXTS, RECORD, CORRECTION]


@dataclass(frozen=True, slots=True)
class RowProblem:
    """Something that is wrong with a row."""

    column: str | None
    """None where the row as a whole cannot be read."""
    value: str | None
    reason: str

    def __str__(self) -> str:
        return self.reason if self.column is None else f"{self.column}: {self.reason}"


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """A row that did not enter the run."""

    dataset: str
    file: str
    line: int | None
    unit: str
    problems: tuple[RowProblem, ...]
    texts: Mapping[str, str | None]
    """What the file has in the columns of the dataset."""
    record: str | None
    """The row as it is in the file, where it could not be taken apart."""
    correction: str | None
    """Where the corrected row stands that was loaded instead."""
    values: Mapping[str, Value]
    """The values that could be read."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew quarantine --json`."""
        return {
            "dataset": self.dataset,
            "file": self.file,
            "line": self.line,
            "unit": self.unit,
            "problems": [{"column": each.column, "value": each.value, "reason": each.reason} for each in self.problems],
            "values": dict(self.texts),
            "record": self.record,
            "correction": self.correction,
        }


def quarantined_rows(files: TraceFiles, parts: Iterable[Part], use: DatasetUse) -> Iterator[QuarantinedRow]:
    """The rows of a dataset in quarantine, by file and line."""
    for part in parts:
        if part.kind != "quarantine" or part.name != use.key:
            continue
        details = part.details or {}
        names = str(details.get("texts") or "").split("\t")
        rows = [
            _row(use, names, str(details.get("places") or "line"), cells)
            for file in part.files
            for cells in files.whole(file, [*_STORED, *(name for name, _ in part.columns), "_period"]).to_pylist()
        ]
        yield from sorted(rows, key=lambda row: (row.file, row.line or 0))


def _row(use: DatasetUse, names: Sequence[str], unit: str, cells: Mapping[str, Any]) -> QuarantinedRow:
    problems, texts, line = cells[PROBLEMS], cells[TEXTS], cells[SOURCE_LINE]
    record, correction = cells[RECORD], cells[CORRECTION]
    return QuarantinedRow(
        use.dataset_id,
        str(cells[SOURCE_FILE]),
        line if isinstance(line, int) else None,
        unit,
        tuple(RowProblem(each["column"], each["value"], each["reason"]) for each in problems),
        dict(zip(names, texts, strict=False)),
        None if record is None else str(record),
        None if correction is None else str(correction),
        {name: value for name, value in cells.items() if name not in _STORED},
    )


def correctable_csv(rows: Sequence[QuarantinedRow], columns: Sequence[str]) -> str:
    """The rows that have no correction yet, as a file to correct and to name under `corrections` of the rule."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([SOURCE_FILE_COLUMN, SOURCE_LINE_COLUMN, PROBLEM_COLUMN, *columns])
    for row in rows:
        if row.correction is None:
            told = "; ".join(map(str, row.problems)) + (f": {row.record}" if row.record is not None else "")
            writer.writerow([row.file, row.line, told, *(row.texts.get(name) or "" for name in columns)])
    return text.getvalue()
