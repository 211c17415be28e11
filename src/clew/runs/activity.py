"""What goes on in a state store, for operators: who drives which run, and what waits for event buses."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol


@dataclass(frozen=True, slots=True)
class HeldLease:
    """A run in somebody's hands."""

    run_id: str
    owner: str
    token: int
    expires_at: datetime
    is_expired: bool
    """Whether its holder has not been heard of for so long that another worker may take the run."""


@dataclass(frozen=True, slots=True)
class OutboxLoad:
    """What waits for one event bus."""

    sink: str
    waiting: int
    retried: int
    """Those among them that were refused before."""
    dead: int
    oldest: datetime | None
    """When the one that waits longest is due."""
    last_error: str | None


class ActivityReader(Protocol):
    """Looks at what goes on. Changes nothing."""

    def leases(self, environment_id: str, *, tenant_id: str | None = None) -> tuple[HeldLease, ...]:
        """Leases of runs, by owner."""
        ...

    def outbox(self, environment_id: str, *, tenant_id: str | None = None) -> tuple[OutboxLoad, ...]:
        """What waits, by event bus."""
        ...
