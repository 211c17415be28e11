"""Counts that Parquet files tell by themselves: their footers say how many rows and how many NULLs they hold.

Counting while Spark writes (`observe`) would take every row out of the generated code and back into it.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq


def row_count(paths: Iterable[Path]) -> int:
    """How many rows files hold."""
    return sum(pq.read_metadata(path).num_rows for path in paths)


def given_count(paths: Iterable[Path], columns: Sequence[str]) -> int:
    """How many rows of files have a value in at least one of the columns."""
    if len(columns) == 1:
        return sum(_given_in(path, columns[0]) for path in paths)
    return sum(_given_in_any(path, columns) for path in paths)


def _given_in(path: Path, column: str) -> int:
    footer = pq.read_metadata(path)
    position = footer.schema.names.index(column)
    count = 0
    for group in range(footer.num_row_groups):
        statistics = footer.row_group(group).column(position).statistics
        if statistics is None or not statistics.has_null_count:
            return _given_in_any(path, [column])
        count += footer.row_group(group).num_rows - statistics.null_count
    return count


def _given_in_any(path: Path, columns: Sequence[str]) -> int:
    table = pq.read_table(path, columns=list(columns))
    values = pc.coalesce(*(table.column(name) for name in columns))
    return len(values) - int(values.null_count)
