"""What a retry takes in place of its run's own plan, if someone asks for the current definitions.

It is decided when the signal is sent and travels in the signal, so that it is on record and stays the same whoever
applies the signal, and whenever.
"""

from collections.abc import Mapping
from typing import Self

from clew.deferred import dataclass
from clew.events.codec import decode, encode
from clew.events.values import PlanRef

_KEY = "current_definitions"


@dataclass(frozen=True, slots=True)
class Renewal:
    """The plan, version and values of the new run."""

    plan: PlanRef
    project_version: str
    parameters: Mapping[str, object]

    def to_payload(self) -> dict[str, object]:
        """The form in which a signal carries it."""
        return {_KEY: encode(self)}

    @classmethod
    def of_payload(cls, payload: Mapping[str, object]) -> Self | None:
        """The renewal that a signal carries; None if it carries none."""
        found = payload.get(_KEY)
        return None if found is None else decode(cls, found)
