"""What a postlude job did, as it is kept."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Emission:
    """Something that a job has sent to a sink."""

    sink: str
    type: str
    path: str
    """Relative to the workspace."""
    rows: int
    size: int
    emit_ms: int
    expires_at: datetime
    capture_id: str | None = None
    """Where it became a capture."""


@dataclass(frozen=True, slots=True)
class JobReport:
    """A job, done or not."""

    job_id: str
    name: str | None
    rows: int = 0
    size: int = 0
    """Bytes that it has sent."""
    wait_ms: int = 0
    run_ms: int = 0
    results: tuple[Mapping[str, object], ...] = ()
    """What describe, histogram and topk found."""
    emissions: tuple[Emission, ...] = ()
    left_out: tuple[str, ...] = ()
    """Columns that were not sent since they are not for everybody."""
