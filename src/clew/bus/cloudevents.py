"""Events as CloudEvents 1.0 in JSON, structured mode: the envelope that receivers outside know."""

from clew.events.codec import canonical_json, iso
from clew.events.envelope import StoredEvent
from clew.runs.request import RunRecord

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


def cloud_event_bytes(run: RunRecord, event: StoredEvent) -> bytes:
    """The document as it is sent and signed."""
    return canonical_json(cloud_event(run, event)).encode()
