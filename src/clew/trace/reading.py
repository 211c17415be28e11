"""Everything that reading a run needs, in one hand."""

from dataclasses import dataclass

from clew.trace.database import Database
from clew.trace.files import TraceFiles
from clew.trace.identity import RowIds
from clew.trace.run_parts import RunParts


@dataclass(frozen=True, slots=True)
class Reading:
    """A run, and what its files are read with."""

    run: RunParts
    row_ids: RowIds
    period: str
    files: TraceFiles
    database: Database
