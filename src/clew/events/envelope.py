"""Events as they are stored: identity, order, attempts, cause and time around what happened.

Idempotency keys make a repeated write or request recognizable. Upcasters read events that older versions wrote, in one
small step per version.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import Any
from uuid import uuid4

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import EVENT_TOO_NEW
from clew.events.bodies import EVENT_TYPES, EventBody
from clew.events.codec import decode, encode

RUN_STEP = "RUN"
"""The step id in events of the run as a whole."""

_SEPARATOR = "|"


def idempotency_key(
    run_id: str, step_id: str, logical_attempt_id: str | int, event_type: str, plan_version: str | int
) -> str:
    """Identifies an event, however often a platform retries: 64 hex digits."""
    return _digest(run_id, step_id, logical_attempt_id, event_type, plan_version)


def request_key(
    *, tenant_id: str, project_id: str, environment_id: str, plan_id: str, plan_version: str, request_id: str
) -> str:
    """Identifies a request for a run: 64 hex digits."""
    return _digest(tenant_id, project_id, environment_id, plan_id, plan_version, request_id)


def signal_step(signal_id: str) -> str:
    """The step id in events that record a signal."""
    return f"SIGNAL:{signal_id}"


def alert_step(alert: str, scope: str = "") -> str:
    """The step id in events that raise an alert."""
    return f"ALERT:{alert}:{scope}" if scope else f"ALERT:{alert}"


def _digest(*parts: str | int) -> str:
    return hashlib.sha256(_SEPARATOR.join(str(part) for part in parts).encode()).hexdigest()


EventData = Mapping[str, Any]
Upcaster = Callable[[EventData], EventData]


def _step_completed_with_counts(data: EventData) -> EventData:
    return {**data, "counts": {}}


def _step_completed_with_amounts(data: EventData) -> EventData:
    return {**data, "amounts": {}}


def _step_with_checks(data: EventData) -> EventData:
    return {**data, "checks": []}


def _step_completed_by_itself(data: EventData) -> EventData:
    return {**data, "reuse": None}


def _run_continued_with_everything(data: EventData) -> EventData:
    return {**data, "adds_artifacts": False}


UPCASTERS: Mapping[tuple[str, int], Upcaster] = {
    ("StepCompleted", 1): _step_completed_with_counts,
    ("StepCompleted", 2): _step_completed_with_amounts,
    ("StepCompleted", 3): _step_with_checks,
    ("StepCompleted", 4): _step_completed_by_itself,
    ("StepFailed", 1): _step_with_checks,
    ("RunContinued", 1): _run_continued_with_everything,
}
"""From (event type, version) to the data of the next version."""

_BY_NAME: Mapping[str, type[EventBody]] = {cls.NAME: cls for cls in EVENT_TYPES}


def upcast(event_type: str, version: int, data: EventData) -> EventData:
    """The data in the current version of its type."""
    target = _known(event_type, version).VERSION
    for step in range(version, target):
        data = UPCASTERS[event_type, step](data)
    return data


def body_of(event_type: str, version: int, data: EventData) -> EventBody:
    """The body of a stored event, whatever version wrote it."""
    return decode(_known(event_type, version), upcast(event_type, version, data))


def _known(event_type: str, version: int) -> type[EventBody]:
    cls = _BY_NAME.get(event_type)
    if cls is None or version > cls.VERSION:
        raise UserError(EVENT_TOO_NEW.anywhere(event_type=event_type, version=version))
    return cls


def _new_event_id() -> str:
    return str(uuid4())


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event on its way into the store, which gives it its place in the run."""

    body: EventBody
    emitted_at: datetime
    step_id: str = RUN_STEP
    logical_attempt_id: int = 1
    engine_attempt_id: int | None = None
    engine_run_ref: Mapping[str, object] | None = None
    caused_by_signal_id: str | None = None
    parent_event_id: str | None = None
    event_id: str = field(default_factory=_new_event_id)

    @property
    def event_type(self) -> str:
        """The stable name of what happened."""
        return self.body.NAME

    def key(self, *, run_id: str, plan_version: str) -> str:
        """The idempotency key of the event in a run."""
        return idempotency_key(run_id, self.step_id, self.logical_attempt_id, self.event_type, plan_version)


@dataclass(frozen=True, slots=True)
class RawEvent:
    """An event exactly as the store holds it, not yet read: what the chain of hashes covers."""

    run_id: str
    run_seq: int
    event_id: str
    step_id: str
    logical_attempt_id: int
    engine_attempt_id: int | None
    event_type: str
    event_version: int
    event_data: Mapping[str, object]
    idempotency_key: str
    emitted_at: datetime
    persisted_at: datetime
    adapter_version: str
    engine_run_ref: Mapping[str, object] | None = None
    caused_by_signal_id: str | None = None
    parent_event_id: str | None = None
    previous_hash: str | None = None
    hash: str | None = None

    def read(self) -> "StoredEvent":
        """The event with its body in the current version."""
        return StoredEvent(self, body_of(self.event_type, self.event_version, self.event_data))

    def with_hash(self, *, previous_hash: str, own_hash: str) -> "RawEvent":
        """The same event as a link of a chain."""
        return replace(self, previous_hash=previous_hash, hash=own_hash)


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event of a run's history."""

    raw: RawEvent
    body: EventBody

    @property
    def run_id(self) -> str:
        """The run it belongs to."""
        return self.raw.run_id

    @property
    def run_seq(self) -> int:
        """Its place in the run, from 1, without gaps."""
        return self.raw.run_seq

    @property
    def event_id(self) -> str:
        """Its identity everywhere, also on the event bus."""
        return self.raw.event_id

    @property
    def event_type(self) -> str:
        """The stable name of what happened."""
        return self.raw.event_type

    @property
    def step_id(self) -> str:
        """The step, or what stands for it."""
        return self.raw.step_id

    @property
    def logical_attempt_id(self) -> int:
        """The attempt as users count them."""
        return self.raw.logical_attempt_id

    @property
    def engine_attempt_id(self) -> int | None:
        """The attempt as the platform counts them. Drives no decision."""
        return self.raw.engine_attempt_id

    @property
    def emitted_at(self) -> datetime:
        """When it happened, by the clock of the process that saw it."""
        return self.raw.emitted_at

    @property
    def persisted_at(self) -> datetime:
        """When it was stored."""
        return self.raw.persisted_at

    @property
    def engine_run_ref(self) -> Mapping[str, object] | None:
        """The engine's name for the run."""
        return self.raw.engine_run_ref

    @property
    def caused_by_signal_id(self) -> str | None:
        """The signal that this is an effect of."""
        return self.raw.caused_by_signal_id

    def to_json(self) -> dict[str, object]:
        """The form that `clew events --json` and the event bus give: the stored fields, the body as `event_data`."""
        fields: dict[str, object] = encode(self.raw)
        fields["event_version"] = self.body.VERSION
        fields["event_data"] = encode(self.body)
        return fields
