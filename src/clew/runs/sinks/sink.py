"""What the outbox needs of a receiver."""

from typing import Protocol

from clew.runs.stores import OutboxEntry


class Sink(Protocol):
    """A receiver of events. It may get an event more than once, and events of one run in another order."""

    def deliver(self, entry: OutboxEntry) -> None:
        """Hand the event over, and return only when it has been taken; else raise `ClewError`."""
        ...
