"""Delivers events from the outbox to the event buses in the background: no run waits for it."""

import logging
import random as random_numbers
import threading
import time
from collections.abc import Callable, Mapping

from clew.bus.event_bus import EventBus
from clew.deferred import dataclass
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

    @property
    def took_all(self) -> bool:
        """Whether the bus took something and refused nothing, so that it may take more."""
        return self.delivered > 0 and self.delivered == self.attempted


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
        """One round over all buses, one after another."""
        never = threading.Event()
        rounds = [self._deliver(name, bus, never, never) for name, bus in self._buses.items()]
        return Deliveries(
            delivered=sum(one.delivered for one in rounds),
            postponed=sum(one.postponed for one in rounds),
            buried=sum(one.buried for one in rounds),
        )

    def run(self, stop: threading.Event, *, poll_s: float = 0.5) -> None:
        """Deliver until stopped, to all buses at the same time. Run this in a separate thread.

        Then send what the end of a run has left, because the next worker may start much later, but not for longer than
        the policy says: a bus that does not answer by then gets its events from the next worker.
        """
        over = threading.Event()
        threads = {
            name: threading.Thread(
                target=self._serve, args=(name, bus, stop, over, poll_s), name=f"bus {name}", daemon=True
            )
            for name, bus in self._buses.items()
        }
        for thread in threads.values():
            thread.start()
        stop.wait()
        ends_at = time.monotonic() + self._policy.finish_s
        for thread in threads.values():
            thread.join(max(0.0, ends_at - time.monotonic()))
        over.set()
        for name in (name for name, thread in threads.items() if thread.is_alive()):
            _log.warning("the bus %s did not answer in time; what it has not taken is sent later", name)

    def _serve(self, name: str, bus: EventBus, stop: threading.Event, over: threading.Event, poll_s: float) -> None:
        """Deliver to one bus until stopped, then while it takes events, until the time is over."""
        while not stop.is_set():
            if not self._carefully(lambda: self._deliver(name, bus, stop, over).attempted > 0):
                stop.wait(poll_s)
        while not over.is_set() and self._carefully(lambda: self._deliver(name, bus, stop, over).took_all):
            pass

    def _carefully(self, delivers: Callable[[], bool]) -> bool:
        """Whether there may be more to deliver. While the store is away there is not."""
        try:
            return delivers()
        except TransientFailure as away:
            _log.warning("the outbox cannot be read: %s", away)
        except ClewError:
            _log.exception("the outbox cannot be read")
        return False

    def _deliver(self, name: str, bus: EventBus, stop: threading.Event, over: threading.Event) -> Deliveries:
        """One batch, as long as its entries are held; after `stop`, up to the first event that is not taken.

        Once the time is over the outbox is left alone, because the store may be closed: an event that was taken after
        all is sent again.
        """
        delivered: list[int] = []
        postponed = buried = 0
        held_until = time.monotonic() + self._policy.hold_s
        try:
            for entry in self._outbox.take(name, limit=self._policy.batch, hold_s=self._policy.hold_s):
                if (stop.is_set() and postponed + buried > 0) or time.monotonic() > held_until:
                    break
                error = self._attempt(bus, entry)
                if over.is_set():
                    break
                if error is None:
                    delivered.append(entry.entry_id)
                elif entry.attempts + 1 < self._policy.attempts:
                    self._postpone(entry, error)
                    postponed += 1
                else:
                    self._bury(entry, error)
                    buried += 1
        finally:
            if not over.is_set():
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
