"""What the outbox needs of a receiver.

A sink that is told of some events only.
"""

from collections.abc import Collection
from typing import Protocol

from clew.runs.stores import OutboxEntry


class EventBus(Protocol):
    """A receiver of events. It may get an event more than once, and events of one run in another order."""

    def deliver(self, entry: OutboxEntry) -> None:
        """Hand the event over, and return only when it has been taken; else raise `ClewError`."""
        ...


class ChosenEvents:
    """Hands on the events of the types that were chosen, and confirms the others without a word."""

    def __init__(self, sink: EventBus, event_types: Collection[str]) -> None:
        self._sink = sink
        self._event_types = frozenset(event_types)

    def deliver(self, entry: OutboxEntry) -> None:
        """Hand the event on if it was chosen."""
        if entry.event.event_type in self._event_types:
            self._sink.deliver(entry)
