"""What is committed has the rows that Spark wrote: both are counted, and a difference fails the step.

Files are listed and read by this process, rows are written by Spark's executors. Where these do not see the same place,
or a file was lost in between, the files hold fewer rows than Spark counted while it wrote them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import ROWS_MISSING
from clew.diagnostics.file_system import OutOfReach
from clew.storage.root import StorageKey, StorageRoot

_ROWS = "rows"


def counted(rows: DataFrame) -> tuple[DataFrame, Callable[[], int]]:
    """The rows, and what says how many there were once they have been written."""
    observation = Observation()
    return rows.observe(observation, F.count(F.lit(1)).alias(_ROWS)), lambda: int(observation.get[_ROWS])


def require_rows(found: int, expected: int, *, place: str, told_by: str = "Spark wrote") -> None:
    """Refuse files whose rows are not those that were written."""
    if found != expected:
        problem = f"{place} has {found:,} row{'' if found == 1 else 's'}, but {told_by} {expected:,}"
        raise UserError(ROWS_MISSING.anywhere(problem=problem))


def rows_in(root: StorageRoot, keys: Iterable[StorageKey]) -> int:
    """How many rows Parquet files hold, as their footers say."""
    count = 0
    for key in keys:
        with told_as_missing(f"{root.address}/{key}"), root.open_parquet(key) as opened:
            count += opened.metadata.num_rows
    return count


@contextmanager
def told_as_missing(place: str) -> Iterator[None]:
    """A file that cannot be read right after it was written has no rows that could be committed."""
    try:
        yield
    except OutOfReach:
        raise
    except (pa.ArrowException, FileNotFoundError) as error:
        problem = f"{place} was written a moment ago and cannot be read: {str(error).splitlines()[0]}"
        raise UserError(ROWS_MISSING.anywhere(problem=problem)) from error
