"""Delivers events from the outbox to the event buses in the background: no run waits for it."""

import logging
import random as random_numbers
import threading
from collections.abc import Mapping
from dataclasses import dataclass

from clew.bus.event_bus import EventBus
from clew.diagnostics import ClewError, TransientFailure
from clew.events.bodies import AlertRaised
from clew.runs.alerts import Alert, RaisedAlert, raise_alert
from clew.runs.clock import Clock, utc_now
from clew.runs.limits import DeliveryPolicy, Random, delay_before
from clew.runs.secrets import Redactor
from clew.runs.stores import EventWriter, OutboxEntry, OutboxStore

_log = logging.getLogger(__name__)
_LONGEST_ERROR = 500


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The outcome of one round."""

    delivered: int = 0
    postponed: int = 0
    buried: int = 0

    @property
    def attempted(self) -> int:
        """How many entries were due."""
        return self.delivered + self.postponed + self.buried


class OutboxDispatcher:
    """Delivers at least once. A rejected event is retried with growing delays, then becomes a dead letter."""

    def __init__(
        self,
        outbox: OutboxStore,
        writer: EventWriter,
        buses: Mapping[str, EventBus],
        *,
        policy: DeliveryPolicy | None = None,
        redactor: Redactor | None = None,
        clock: Clock = utc_now,
        random: Random = random_numbers.random,
    ) -> None:
        self._outbox = outbox
        self._writer = writer
        self._buses = dict(buses)
        self._policy = policy or DeliveryPolicy()
        self._redactor = redactor or Redactor()
        self._clock = clock
        self._random = random

    def deliver_due(self) -> Deliveries:
        """One round over all buses."""
        rounds = [self._deliver(name, bus) for name, bus in self._buses.items()]
        return Deliveries(
            delivered=sum(one.delivered for one in rounds),
            postponed=sum(one.postponed for one in rounds),
            buried=sum(one.buried for one in rounds),
        )

    def run(self, stop: threading.Event, *, poll_s: float = 0.5) -> None:
        """Deliver until stopped. Run this in a separate thread."""
        while not stop.is_set():
            try:
                attempted = self.deliver_due().attempted
            except TransientFailure as away:
                _log.warning("the outbox cannot be read: %s", away)
                attempted = 0
            except ClewError:
                _log.exception("the outbox cannot be read")
                attempted = 0
            if attempted == 0:
                stop.wait(poll_s)
        self._finish()

    def _finish(self) -> None:
        """Send the last events of a run, as long as they are accepted: the next worker may not start soon."""
        try:
            for name, bus in self._buses.items():
                while self._deliver_while_taken(name, bus):
                    pass
        except ClewError as away:
            _log.warning("the outbox cannot be read: %s", away)

    def _deliver_while_taken(self, name: str, bus: EventBus) -> bool:
        """Send one batch, up to the first event that the bus rejects. Returns whether there may be more to send."""
        entries = self._outbox.take(name, limit=self._policy.batch, hold_s=self._policy.hold_s)
        delivered: list[int] = []
        try:
            for entry in entries:
                error = self._attempt(bus, entry)
                if error is not None:
                    self._postpone(entry, error)
                    return False
                delivered.append(entry.entry_id)
        finally:
            self._outbox.delivered(delivered)
        return bool(entries)

    def _deliver(self, name: str, bus: EventBus) -> Deliveries:
        delivered: list[int] = []
        postponed = buried = 0
        entries = self._outbox.take(name, limit=self._policy.batch, hold_s=self._policy.hold_s)
        try:
            for entry in entries:
                error = self._attempt(bus, entry)
                if error is None:
                    delivered.append(entry.entry_id)
                elif entry.attempts + 1 < self._policy.attempts:
                    self._postpone(entry, error)
                    postponed += 1
                else:
                    self._bury(entry, error)
                    buried += 1
        finally:
            self._outbox.delivered(delivered)
        return Deliveries(len(delivered), postponed, buried)

    def _attempt(self, bus: EventBus, entry: OutboxEntry) -> str | None:
        """None if the bus accepted the event, else why not."""
        try:
            bus.deliver(entry)
        except ClewError as error:
            return self._redactor.text(error.diagnostic.message)[:_LONGEST_ERROR]
        except Exception as error:  # noqa: BLE001 -- a bus that breaks must not stop the others
            return self._redactor.text(f"{type(error).__name__}: {error}")[:_LONGEST_ERROR]
        return None

    def _postpone(self, entry: OutboxEntry, error: str) -> None:
        delay = delay_before(entry.attempts + 2, self._policy, self._random)
        self._outbox.postpone(entry.entry_id, error=error, delay_s=delay)

    def _bury(self, entry: OutboxEntry, error: str) -> None:
        """Make the event a dead letter, with one alert per run and bus. A rejected alert raises no further one."""
        self._outbox.bury(entry.entry_id, error=error)
        _log.error(
            "event %s of run %s not delivered to %s: %s", entry.event.run_seq, entry.run.run_id, entry.bus, error
        )
        body = entry.event.body
        if isinstance(body, AlertRaised) and body.alert == Alert.DEAD_LETTER:
            return
        alert = RaisedAlert(
            alert=Alert.DEAD_LETTER,
            message=f'the bus "{entry.bus}" did not take event {entry.event.run_seq}: {error}',
            scope=entry.bus,
            details={"sink": entry.bus, "run_seq": entry.event.run_seq},
        )
        raise_alert(self._writer, entry.run.run_id, alert, self._clock)
