"""Version 10: the guard of events in SQLite looks up the new event, and no longer reads all events of its run."""

from collections.abc import Sequence
from typing import ClassVar


class Version10:
    """Replaces a trigger. SQLite uses no index for conditions with OR in one query, but one for each of three."""

    version: ClassVar[int] = 10

    def sqlite(self) -> Sequence[str]:
        """The trigger for SQLite."""
        return _GUARD

    def postgresql(self) -> Sequence[str]:
        """Nothing: PostgreSQL has no INSERT that replaces, and no such trigger."""
        return ()


_GUARD = (
    "DROP TRIGGER run_events_are_never_replaced",
    """
    CREATE TRIGGER run_events_are_never_replaced BEFORE INSERT ON run_events
    WHEN EXISTS (SELECT 1 FROM run_events AS e WHERE e.run_id = NEW.run_id AND e.run_seq = NEW.run_seq)
      OR EXISTS (SELECT 1 FROM run_events AS e WHERE e.run_id = NEW.run_id
                 AND e.idempotency_key = NEW.idempotency_key)
      OR EXISTS (SELECT 1 FROM run_events AS e WHERE e.run_id = NEW.run_id AND e.event_id = NEW.event_id)
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
    """,
)
