"""Applying accepted signals to a run that one holds."""

from clew.runs.clock import Clock, utc_now
from clew.runs.events.bodies import RunRetried, SignalRejected
from clew.runs.events.envelope import NewEvent
from clew.runs.keys import signal_step
from clew.runs.live_run import LiveRun
from clew.runs.refusals import PeriodBusy
from clew.runs.run_queue import RunQueue
from clew.runs.signal_rules import effects
from clew.runs.signals import Refusal, SignalType
from clew.runs.snapshot import PendingSignal


class SignalEffects:
    """Makes accepted signals take effect, in the order in which they were accepted."""

    def __init__(self, queue: RunQueue, *, clock: Clock = utc_now) -> None:
        self._queue = queue
        self._clock = clock

    def settle(self, live: LiveRun) -> None:
        """Apply all signals that wait. Called between two steps, by the holder of the lease."""
        settled: set[str] = set()
        while waiting := [s for s in live.snapshot.pending_signals if s.signal_id not in settled]:
            settled.add(waiting[0].signal_id)
            self._apply(live, waiting[0])

    def _apply(self, live: LiveRun, signal: PendingSignal) -> None:
        if signal.signal == SignalType.RETRY_RUN:
            new_run = self._queue.retry(live.run, signal_id=signal.signal_id, requested_by=signal.actor)
            live.record(self._about(signal, RunRetried(new_run)))
            return
        events = effects(signal, live.snapshot, self._clock)
        try:
            if events:
                live.record(*events)
        except PeriodBusy as busy:
            # Between the decision and now another run has begun: the acceptance stands in the history, so does this.
            body = SignalRejected(
                signal_id=signal.signal_id,
                signal=signal.signal,
                actor=signal.actor,
                role="",
                refusal=Refusal.PERIOD_BUSY,
                detail=busy.diagnostic.message,
                step_id=signal.step_id,
            )
            live.record(self._about(signal, body))

    def _about(self, signal: PendingSignal, body: RunRetried | SignalRejected) -> NewEvent:
        return NewEvent(
            body,
            emitted_at=self._clock(),
            step_id=signal_step(signal.signal_id),
            caused_by_signal_id=signal.signal_id,
        )
