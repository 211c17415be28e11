"""Leases: who drives a run, until when, and by which token its writes are recognised."""

from dataclasses import dataclass
from datetime import datetime

from clew.runs.request import RunRecord


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to drive a run. Each lease of a run has a higher token than the one before it.

    The token decides, not the time: a holder whose lease ran out may go on as long as nobody else took the run.
    """

    run_id: str
    token: int
    owner: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that a worker has taken."""

    lease: Lease
    run: RunRecord


@dataclass(frozen=True, slots=True)
class LeaseNews:
    """What a keepalive brings back."""

    lease: Lease
    last_seq: int
    """The last event of the run, so that the holder sees that a signal came."""
