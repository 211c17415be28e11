"""How to read events that older versions wrote: one small step per version."""

from collections.abc import Callable, Mapping
from typing import Any

from clew.diagnostics import UserError
from clew.diagnostics.codes.runs import EVENT_TOO_NEW
from clew.runs.events.bodies import EVENT_TYPES, EventBody
from clew.runs.events.codec import decode

Data = Mapping[str, Any]
Upcaster = Callable[[Data], Data]


def _step_completed_with_counts(data: Data) -> Data:
    return {**data, "counts": {}}


UPCASTERS: Mapping[tuple[str, int], Upcaster] = {
    ("StepCompleted", 1): _step_completed_with_counts,
}
"""From (event type, version) to the data of the next version."""

_BY_NAME: Mapping[str, type[EventBody]] = {cls.NAME: cls for cls in EVENT_TYPES}


def upcast(event_type: str, version: int, data: Data) -> Data:
    """The data as the present version of its type has it."""
    target = _known(event_type, version).VERSION
    for step in range(version, target):
        data = UPCASTERS[event_type, step](data)
    return data


def body_of(event_type: str, version: int, data: Data) -> EventBody:
    """The body of a stored event, whatever version wrote it."""
    return decode(_known(event_type, version), upcast(event_type, version, data))


def _known(event_type: str, version: int) -> type[EventBody]:
    cls = _BY_NAME.get(event_type)
    if cls is None or version > cls.VERSION:
        raise UserError(EVENT_TOO_NEW.anywhere(event_type=event_type, version=version))
    return cls
