"""Alerts: things an operator should look at, recorded as events of the run they concern."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from clew.deferred import dataclass
from clew.events.bodies import AlertRaised
from clew.events.envelope import NewEvent, alert_step
from clew.runs.clock import Clock
from clew.runs.stores import EventWriter


class Alert(StrEnum):
    """The kinds of alerts."""

    PROJECTOR_LAG_HIGH = "PROJECTOR_LAG_HIGH"
    PROJECTOR_GAP_DETECTED = "PROJECTOR_GAP_DETECTED"
    WRITE_BUDGET_EXCEEDED = "WRITE_BUDGET_EXCEEDED"
    DEAD_LETTER = "DEAD_LETTER"
    TOTALS_DIFFER = "TOTALS_DIFFER"
    FILE_DAMAGED = "FILE_DAMAGED"
    CHECK_FAILED = "CHECK_FAILED"

    @property
    def severity(self) -> str:
        """P1 needs attention now, P2 within the day."""
        return "P1" if self in {Alert.PROJECTOR_GAP_DETECTED, Alert.FILE_DAMAGED} else "P2"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedAlert:
    """An alert about a run. Raising it again with the same scope and occasion stores nothing new."""

    alert: Alert
    message: str
    scope: str = ""
    occasion: int = 1
    details: Mapping[str, object] = field(default_factory=dict)

    def event(self, clock: Clock) -> NewEvent:
        """The event that records it."""
        body = AlertRaised(self.alert.value, self.alert.severity, self.message, self.details)
        return NewEvent(
            body,
            emitted_at=clock(),
            step_id=alert_step(self.alert.value, self.scope),
            logical_attempt_id=self.occasion,
        )


def raise_alert(writer: EventWriter, run_id: str, alert: RaisedAlert, clock: Clock) -> None:
    """Record an alert on its run."""
    writer.append(run_id, [alert.event(clock)])
