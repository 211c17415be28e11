"""Sending signals: each is decided, recorded, and only then applied to the run."""

import logging

from clew.deferred import dataclass
from clew.diagnostics import ClewError
from clew.events.bodies import RunRetried, SignalAccepted, SignalRejected
from clew.events.codec import canonical_json, encode
from clew.events.envelope import NewEvent, StoredEvent, idempotency_key, signal_step
from clew.events.snapshot import PendingSignal, RunSnapshot, RunStatus
from clew.runs.active_run import LiveRun
from clew.runs.budget import BudgetedWriter
from clew.runs.clock import Clock, utc_now
from clew.runs.leases import LateWrite, OutOfDate, PeriodBusy
from clew.runs.limits import LeasePolicy, StoreLimits
from clew.runs.projector import Projector
from clew.runs.renewal import Renewal
from clew.runs.request import RunFilter, RunRecord
from clew.runs.secrets import Redactor
from clew.runs.signals import (
    Actor,
    Authorizer,
    Refusal,
    Refused,
    RoleAuthorizer,
    Signal,
    SignalType,
    effects,
    rule_refusal,
)
from clew.runs.stores import RecentSignals, RunStores
from clew.runs.submission import RunQueue


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
            new_run = self._queue.retry(
                live.run,
                signal_id=signal.signal_id,
                requested_by=signal.actor,
                renewal=Renewal.of_payload(signal.payload),
            )
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


_log = logging.getLogger(__name__)

_MINUTE_S = 60.0
_LONGEST_ID = 200
_SHORT_DIGEST = 16
_KEPT_TEXT = 500
"""How much of a text a refusal keeps: who sends too much must not fill the history by it."""


@dataclass(frozen=True, slots=True)
class SignalDecision:
    """The decision about a signal."""

    refused: Refused | None
    event: StoredEvent | None
    """The event that records the decision. Refusals for too many signals are recorded once, not each."""

    @property
    def is_accepted(self) -> bool:
        """Whether the signal will take effect."""
        return self.refused is None


class SignalService:
    """Takes signals from people and programs."""

    def __init__(
        self,
        stores: RunStores,
        queue: RunQueue,
        *,
        authorizer: Authorizer | None = None,
        limits: StoreLimits | None = None,
        lease: LeasePolicy | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self._stores = stores
        self._authorizer = authorizer or RoleAuthorizer()
        self._limits = limits or StoreLimits()
        self._lease = lease or LeasePolicy()
        self._clock = clock
        self._effects = SignalEffects(queue, clock=clock)
        self._projector = Projector(stores.reader, stores.writer, stores.snapshots, limits=self._limits, clock=clock)

    def send(self, signal: Signal, actor: Actor) -> SignalDecision:
        """Decide and record a signal, then apply it if no worker drives the run; otherwise its driver does."""
        run = self._stores.catalog.run(signal.run_id)
        decision = _unusable_id(signal) or self._earlier_decision(signal, actor, run)
        while decision is None:
            try:
                decision = self._decide(signal, actor, run)
            except OutOfDate:
                run = self._stores.catalog.run(signal.run_id)
                decision = self._earlier_decision(signal, actor, run)
        if decision.is_accepted:
            self._apply_if_not_driven(signal)
        self._keep_up(signal)
        return decision

    def _keep_up(self, signal: Signal) -> None:
        """Bring snapshots up to date at once: it may take long until a worker looks at the runs, if one ever does."""
        runs = [signal.run_id]
        if signal.type is SignalType.RETRY_RUN:
            bodies = [event.body for event in self._stores.reader.events(signal.run_id)]
            runs += [body.new_run_id for body in bodies if isinstance(body, RunRetried)]
        try:
            for run_id in runs:
                self._projector.catch_up(run_id)
        except ClewError as error:
            _log.warning("run %s could not be brought up to date: %s", signal.run_id, error)

    def _earlier_decision(self, signal: Signal, actor: Actor, run: RunRecord) -> SignalDecision | None:
        """The decision on a signal that was sent before; a refusal if its id was used for another one."""
        step = signal_step(signal.signal_id)
        keys = [
            idempotency_key(run.run_id, step, 1, name, run.plan_version)
            for name in (SignalAccepted.NAME, SignalRejected.NAME)
        ]
        known = self._stores.reader.by_key(run.run_id, keys)
        if not known:
            return None
        return _recorded(known[0]) if _is_repeated(signal, known[0]) else self._id_taken(signal, actor, known[0])

    def _id_taken(self, signal: Signal, actor: Actor, first: StoredEvent) -> SignalDecision:
        """Refuse a signal with the id of another one. It is recorded beside the first, once per content."""
        refused = Refused(Refusal.SIGNAL_ID_TAKEN, f"the id was used for another signal, event {first.run_seq}")
        if self._recent(signal, actor).of_sender > self._limits.max_signals_per_minute:
            return SignalDecision(refused, None)
        step = f"{signal_step(signal.signal_id)}:{signal.digest[:_SHORT_DIGEST]}"
        event = NewEvent(_rejected(signal, actor, refused), emitted_at=self._clock(), step_id=step)
        (stored,) = self._stores.writer.append(signal.run_id, [event])
        return SignalDecision(refused, stored)

    def _recent(self, signal: Signal, actor: Actor) -> RecentSignals:
        return self._stores.reader.recent_signals(signal.run_id, actor.name[:_KEPT_TEXT], seconds=_MINUTE_S)

    def _decide(self, signal: Signal, actor: Actor, run: RunRecord) -> SignalDecision:
        snapshot = self._projector.look(run.run_id).snapshot
        recent = self._recent(signal, actor)
        refused = self._refusal(signal, actor, run, snapshot, recent)
        if recent.of_sender > self._limits.max_signals_per_minute and refused is not None:
            return SignalDecision(refused, None)
        body = _accepted(signal, actor) if refused is None else _rejected(signal, actor, refused)
        event = NewEvent(body, emitted_at=self._clock(), step_id=signal_step(signal.signal_id))
        (stored,) = self._stores.writer.append(run.run_id, [event], expected_seq=snapshot.last_event_seq)
        return SignalDecision(refused, stored)

    def _refusal(
        self, signal: Signal, actor: Actor, run: RunRecord, snapshot: RunSnapshot, recent: RecentSignals
    ) -> Refused | None:
        size = len(canonical_json(encode(signal)).encode())
        if size > self._limits.max_signal_bytes:
            detail = f"the signal has {size} bytes; {self._limits.max_signal_bytes} are allowed"
            return Refused(Refusal.TOO_LARGE, detail)
        if max(recent.accepted, recent.of_sender) >= self._limits.max_signals_per_minute:
            detail = f"{self._limits.max_signals_per_minute} signals per run and minute are allowed"
            return Refused(Refusal.RATE_LIMITED, detail)
        return (
            self._authorizer.refusal(actor, signal, run)
            or rule_refusal(signal, run, snapshot)
            or self._period_refusal(signal, run, snapshot)
        )

    def _period_refusal(self, signal: Signal, run: RunRecord, snapshot: RunSnapshot) -> Refused | None:
        """A failed run cannot be reopened while another one runs for its project and period."""
        reopens = signal.type in {SignalType.RETRY_STEP, SignalType.SKIP_STEP}
        if not reopens or snapshot.status is not RunStatus.FAILED:
            return None
        for status in (RunStatus.RUNNING, RunStatus.PAUSED):
            which = RunFilter(
                tenant_id=run.request.tenant_id,
                project_id=run.request.project_id,
                environment_id=run.request.environment_id,
                period=run.request.period,
                status=status,
            )
            for other in self._stores.catalog.runs(which, limit=1):
                return Refused(Refusal.PERIOD_BUSY, f"run {other.run_id} is {status} for the same period")
        return None

    def _apply_if_not_driven(self, signal: Signal) -> None:
        claim = self._stores.leases.acquire(signal.run_id, owner=f"signal {signal.signal_id}", ttl_s=self._lease.ttl_s)
        if claim is None:
            return
        writer = BudgetedWriter(
            self._stores.writer, claim.lease, limits=self._limits, redactor=Redactor(), clock=self._clock
        )
        check = self._stores.leases.check
        live = LiveRun(claim, self._stores.reader, writer, patience_s=0.0, check_lease=check)
        try:
            live.start_from(self._projector.look(signal.run_id).snapshot)
            self._effects.settle(live)
        except LateWrite:
            _log.info("run %s was taken by a worker, which applies the signal", signal.run_id)
        finally:
            self._stores.leases.release(claim.lease, seen_seq=live.snapshot.last_event_seq)


def _accepted(signal: Signal, actor: Actor) -> SignalAccepted:
    return SignalAccepted(
        signal_id=signal.signal_id,
        signal=signal.type.value,
        actor=actor.name,
        role=actor.role.label,
        step_id=signal.step_id,
        reason=signal.reason,
        payload=dict(signal.payload),
        digest=signal.digest,
    )


def _rejected(signal: Signal, actor: Actor, refused: Refused) -> SignalRejected:
    return SignalRejected(
        signal_id=signal.signal_id,
        signal=signal.type.value,
        actor=actor.name[:_KEPT_TEXT],
        role=actor.role.label,
        refusal=refused.refusal.value,
        detail=refused.detail[:_KEPT_TEXT],
        step_id=signal.step_id[:_KEPT_TEXT] if signal.step_id is not None else None,
        digest=signal.digest,
    )


def _unusable_id(signal: Signal) -> SignalDecision | None:
    """A refusal that cannot be recorded, since the id would be part of the record."""
    if 0 < len(signal.signal_id) <= _LONGEST_ID:
        return None
    detail = f"a signal id has 1 to {_LONGEST_ID} characters, this one has {len(signal.signal_id)}"
    return SignalDecision(Refused(Refusal.TOO_LARGE, detail), None)


def _is_repeated(signal: Signal, known: StoredEvent) -> bool:
    """Whether an event records the decision on this very signal."""
    body = known.body
    if not isinstance(body, SignalAccepted | SignalRejected):
        return False
    if body.digest is None:
        return (body.signal, body.step_id) == (signal.type.value, signal.step_id)
    return body.digest == signal.digest


def _recorded(event: StoredEvent) -> SignalDecision:
    if isinstance(event.body, SignalRejected):
        return SignalDecision(Refused(Refusal(event.body.refusal), event.body.detail), event)
    return SignalDecision(None, event)
