"""Reading ahead for queries: DuckDB goes through a Parquet file row group by row group, and waits for each.

The footer says where the same columns of the next row groups lie. They are asked for while DuckDB is busy with the ones
before: two row groups ahead when it comes to its second, then twice as many each time, up to a bound. A query that
needs one row group, or skips most by their statistics, reads nothing that it does not need.
"""

import threading
from bisect import bisect_right
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from clew.storage.remote_blocks import SharedFile, Span

if TYPE_CHECKING:
    import pyarrow.parquet as pq

_MOST_AHEAD = 24 << 20
"""Bytes."""
_FIRST_WINDOW = 2


class ColumnChunks:
    """Where the columns of the row groups of a Parquet file lie."""

    def __init__(self, footer: "pq.FileMetaData") -> None:
        self._footer = footer

    @cached_property
    def groups(self) -> list[list[Span]]:
        """The bytes of every column, by row group."""
        found = list[list[Span]]()
        for number in range(self._footer.num_row_groups):
            group = self._footer.row_group(number)
            found.append([chunk_span(group.column(column)) for column in range(group.num_columns)])
        return found

    @cached_property
    def _begin(self) -> list[int]:
        return [min(start for start, _ in group) if group else 0 for group in self.groups]

    def of(self, start: int, end: int) -> tuple[int, frozenset[int]] | None:
        """The row group and those of its columns that bytes belong to; None for those of the footer."""
        number = bisect_right(self._begin, start) - 1
        if number < 0:
            return None
        columns = [at for at, (first, last) in enumerate(self.groups[number]) if first < end and start < last]
        return (number, frozenset(columns)) if columns else None


def chunk_span(column: "pq.ColumnChunkMetaData") -> Span:
    """The bytes of a column in a row group."""
    dictionary = column.dictionary_page_offset
    start = column.data_page_offset if dictionary is None else min(dictionary, column.data_page_offset)
    return start, start + column.total_compressed_size


def column_spans(footer: "pq.FileMetaData", groups: Iterable[int], columns: Iterable[str]) -> list[Span]:
    """The bytes of columns in row groups. A column with parts, such as a list, has its name before a dot."""
    wanted = set(columns)
    positions = [at for at in range(footer.num_columns) if footer.schema.column(at).path.split(".")[0] in wanted]
    return [chunk_span(footer.row_group(group).column(at)) for group in groups for at in positions]


class Scan:
    """One query's way through a file. DuckDB's threads share it."""

    def __init__(self, file: SharedFile, chunks: ColumnChunks | None) -> None:
        self._file, self._chunks = file, chunks
        self._lock = threading.Lock()
        self._columns: frozenset[int] = frozenset()
        self._groups: set[int] = set()
        self._ahead, self._window = -1, _FIRST_WINDOW

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self._file.size

    def read_at(self, position: int, count: int) -> bytes:
        """Some of the bytes of the file."""
        found = self._chunks.of(position, position + count) if self._chunks is not None else None
        if found is not None:
            self._file.fetch_ahead(self._next(*found))
        return self._file.read_at(position, count)

    def _next(self, group: int, columns: frozenset[int]) -> list[Span]:
        """The bytes that should be asked for now, because the scan has come to a row group."""
        assert self._chunks is not None  # noqa: S101 - the caller has looked
        with self._lock:
            is_new = group not in self._groups
            self._groups.add(group)
            self._columns |= columns
            if not is_new or len(self._groups) == 1:
                return []
            first, last = max(self._ahead, group) + 1, min(group + self._window, len(self._chunks.groups) - 1)
            spans, held = list[Span](), 0
            for number in range(first, last + 1):
                wanted = [self._chunks.groups[number][column] for column in sorted(self._columns)]
                held += sum(end - start for start, end in wanted)
                if held > _MOST_AHEAD:
                    return spans
                spans += wanted
                self._ahead = number
            self._window *= 2
            return spans
