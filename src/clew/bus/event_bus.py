"""What a receiver of events is, and the CloudEvents form in which most receivers get them."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Protocol

from clew.events.codec import canonical_json, iso
from clew.events.envelope import StoredEvent
from clew.runs.request import RunRecord
from clew.runs.secrets import SecretScope
from clew.runs.stores import OutboxEntry


class EventBus(Protocol):
    """A receiver of events. It may get an event more than once, and events of one run in another order."""

    def deliver(self, entry: OutboxEntry) -> None:
        """Deliver the event, and return only once it is accepted; else raise `ClewError`."""
        ...


class Announcing(Protocol):
    """A receiver that also takes documents that are not about a run."""

    def announce(self, document: bytes, /) -> None:
        """Send a document, and return only once it is accepted; else raise `ClewError`."""
        ...


class ChosenEvents:
    """Passes on events of the chosen types, and confirms the others without sending them."""

    def __init__(self, bus: EventBus, event_types: Collection[str]) -> None:
        self._bus = bus
        self._event_types = frozenset(event_types)

    def deliver(self, entry: OutboxEntry) -> None:
        """Pass the event on if its type was chosen."""
        if entry.event.event_type in self._event_types:
            self._bus.deliver(entry)


class SeenEvents:
    """Passes on events as their receivers may see them."""

    def __init__(self, bus: EventBus, see: Callable[[StoredEvent], StoredEvent]) -> None:
        self._bus = bus
        self._see = see

    def deliver(self, entry: OutboxEntry) -> None:
        """Pass on what may be seen of the event."""
        self._bus.deliver(replace(entry, event=self._see(entry.event)))


CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_TYPE_PREFIX = "clew.run"


def cloud_event(run: RunRecord, event: StoredEvent) -> dict[str, object]:
    """The document. `id` is the event's own, so that a receiver recognises one that it gets twice."""
    request = run.request
    return {
        "specversion": "1.0",
        "id": event.event_id,
        "source": f"/clew/{request.tenant_id}/{request.environment_id}/{request.project_id}",
        "type": f"{_TYPE_PREFIX}.{event.event_type}",
        "subject": run.run_id,
        "time": iso(event.emitted_at),
        "datacontenttype": "application/json",
        "runseq": event.run_seq,
        "eventversion": event.body.VERSION,
        "data": {**event.to_json(), "project_id": request.project_id, "period": request.period},
    }


def checkpoint_document(scope: SecretScope, at: str, occasion: str, checkpoint: Mapping[str, object]) -> bytes:
    """A checkpoint of the ledger in the same form, for receivers that keep what the state store may lose.

    Its subject is the run that ended, or the environment where it was kept for another reason.
    """
    source = f"/clew/{scope.tenant_id}/{scope.environment_id}"
    document = {
        "specversion": "1.0",
        "id": f"{source}/{checkpoint['seq']}/{at}",
        "source": source,
        "type": "clew.ledger.checkpoint",
        "subject": occasion,
        "time": at,
        "datacontenttype": "application/json",
        "data": dict(checkpoint),
    }
    return canonical_json(document).encode()


def cloud_event_bytes(run: RunRecord, event: StoredEvent) -> bytes:
    """The document as it is sent and signed."""
    return canonical_json(cloud_event(run, event)).encode()
