"""On which line each record of a CSV file starts, for files whose records may go over several lines."""

import csv
from array import array
from collections.abc import Iterator

import pyarrow as pa

from clew.deferred import dataclass
from clew.engine.loading.csv_files import CsvOptions
from clew.engine.loading.files import SourceFile
from clew.engine.loading.lines import LineTotals
from clew.engine.loading.sources import NOT_UTF8, mismatch
from clew.storage.csv_records import CsvRecord, opened_records


@dataclass(frozen=True, slots=True)
class RecordLines:
    """The first line of each record, in the order of the file, and how many lines it has."""

    starts: "array[int]"
    spans: "array[int]"

    @property
    def totals(self) -> LineTotals:
        """What a second reading must agree with."""
        return LineTotals(len(self.starts), sum(self.starts))

    @property
    def shift(self) -> int:
        """What the number of the first record lacks to its line."""
        return self.starts[0] - 1 if self.starts else 0

    @property
    def is_one_each(self) -> bool:
        """Whether each record has one line, right after the record before it."""
        return not self.starts or (max(self.spans) == 1 and self.starts[-1] - self.starts[0] == len(self.starts) - 1)

    def table(self, record: str, line: str, span: str) -> pa.Table:
        """Number, first line and lines of each record."""
        numbers = pa.array(range(1, len(self.starts) + 1), pa.int64())
        return pa.table(
            {record: numbers, line: pa.array(self.starts, pa.int64()), span: pa.array(self.spans, pa.int64())}
        )


def record_lines(file: SourceFile, options: CsvOptions) -> RecordLines | None:
    """The lines of the records after the header; None where they cannot be told without Spark."""
    try:
        with opened_records(file, options.given) as records:
            return _collected(records, has_header=options.has_header)
    except UnicodeDecodeError:
        if options.encoding != "utf-8":
            return None
        problem = f"{file.shown}: {NOT_UTF8}"
        raise mismatch(problem, "save the file as UTF-8, or name its encoding in the option `encoding`") from None
    except (OSError, ValueError, LookupError, csv.Error):
        return None


def _collected(records: Iterator[CsvRecord], *, has_header: bool) -> RecordLines:
    if has_header:
        next(records, None)
    starts, spans = array("q"), array("q")
    for record in records:
        starts.append(record.line)
        spans.append(record.lines)
    return RecordLines(starts, spans)
