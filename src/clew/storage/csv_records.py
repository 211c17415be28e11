"""Records of CSV files with the lines that they stand on, read without Spark.

A field in quotes may hold line breaks, so a record may go over several lines, and blank lines and comments belong to no
record. Spark does not say on which line a record starts; this does.
"""

import csv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field
from io import TextIOWrapper
from typing import TextIO

from clew.deferred import dataclass
from clew.plan.local_files import SourceFile
from clew.storage.compression import decompressed

_LONGEST_FIELD = 1 << 30


@dataclass(frozen=True, slots=True)
class CsvRecord:
    """A record and where it stands."""

    line: int
    """The first of its lines."""
    lines: int
    fields: list[str]


@contextmanager
def opened_records(file: SourceFile, options: Mapping[str, str]) -> Iterator[Iterator[CsvRecord]]:
    """The records of a file, the header among them, under the options of its rule.

    The block or the iterator raises OSError, ValueError, LookupError or csv.Error where the file or its options are not
    what this can read.
    """
    with (
        decompressed(file, options.get("compression")) as stream,
        TextIOWrapper(stream, encoding=_encoding(options), newline="") as text,
    ):
        yield csv_records(text, options)


def csv_records(text: TextIO, options: Mapping[str, str]) -> Iterator[CsvRecord]:
    """The records of a text whose line ends are as they are in the file."""
    csv.field_size_limit(_LONGEST_FIELD)
    quote = options.get("quote", '"')
    escape = options.get("escape", quote)
    delimiter = options.get("delimiter", options.get("sep", ",")).replace("\\t", "\t")
    if max(map(len, (quote, escape, delimiter))) > 1:
        raise ValueError("delimiter, quote and escape must be one character each")
    lines = _Lines(text, options.get("comment") or None)
    for _ in range(int(options.get("skip_lines", "0"))):
        lines.skip()
    reader = csv.reader(
        lines,
        delimiter=delimiter,
        quotechar=quote or None,
        quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
        doublequote=escape == quote,
        escapechar=None if escape in {quote, ""} else escape,
    )
    while True:
        lines.is_between = True
        fields = next(reader, None)
        if fields is None:
            return
        yield CsvRecord(lines.first, lines.number - lines.first + 1, fields)


@dataclass(slots=True)
class _Lines:
    """Lines for the parser of records: between two records, blank lines and comments are passed over."""

    text: TextIO
    comment: str | None
    number: int = 0
    first: int = 0
    is_between: bool = field(default=True)

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        line = self._line()
        if self.is_between:
            while not line.rstrip("\r\n") or (self.comment and line.startswith(self.comment)):
                line = self._line()
            self.first, self.is_between = self.number, False
        return line

    def skip(self) -> None:
        """Pass over a line, if there is one."""
        with suppress(StopIteration):
            self._line()

    def _line(self) -> str:
        line = next(self.text)
        self.number += 1
        return line.removeprefix("\ufeff") if self.number == 1 else line


def _encoding(options: Mapping[str, str]) -> str:
    return options.get("encoding", "utf-8")
