"""Signals: which there are, who may send them, why one is refused, and what it does.

The rules are pure: from a snapshot to a refusal or to events.
"""

import hashlib
import os
import pwd
from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum, StrEnum
from typing import Protocol

from clew.deferred import dataclass
from clew.events.bodies import EventBody, RunApproved, RunCancelled, RunPaused, RunResumed, StepSkipped
from clew.events.codec import canonical_json, encode
from clew.events.envelope import RUN_STEP, NewEvent
from clew.events.snapshot import PendingSignal, RunSnapshot, RunStatus, StepSnapshot, StepStatus
from clew.events.values import LOAD_STEP
from clew.runs.clock import Clock
from clew.runs.request import RunRecord


class SignalType(StrEnum):
    """The signals that a run understands."""

    PAUSE = "PAUSE"
    RESUME = "RESUME"
    CANCEL = "CANCEL"
    RETRY_STEP = "RETRY_STEP"
    SKIP_STEP = "SKIP_STEP"
    RETRY_RUN = "RETRY_RUN"
    APPROVE = "APPROVE"


class Role(IntEnum):
    """What a person may do; each role includes the one before it."""

    VIEWER = 0
    OPERATOR = 1
    ENGINEER = 2
    ADMIN = 3

    @property
    def label(self) -> str:
        """The role as it is configured and recorded."""
        return self.name.lower()


NEEDED_ROLE: Mapping[SignalType, Role] = {
    SignalType.PAUSE: Role.OPERATOR,
    SignalType.RESUME: Role.OPERATOR,
    SignalType.CANCEL: Role.OPERATOR,
    SignalType.RETRY_STEP: Role.OPERATOR,
    SignalType.RETRY_RUN: Role.OPERATOR,
    SignalType.SKIP_STEP: Role.ENGINEER,
    SignalType.APPROVE: Role.ADMIN,
}
"""The least role that may send a signal. Skipping changes results, so it takes a person who knows the project."""


class Refusal(StrEnum):
    """Why a signal is refused."""

    NOT_AUTHORIZED = "NOT_AUTHORIZED"
    WRONG_TENANT = "WRONG_TENANT"
    TOO_LARGE = "TOO_LARGE"
    RATE_LIMITED = "RATE_LIMITED"
    SIGNAL_ID_TAKEN = "SIGNAL_ID_TAKEN"
    RUN_TERMINAL = "RUN_TERMINAL"
    RUN_NOT_TERMINAL = "RUN_NOT_TERMINAL"
    RUN_NOT_RUNNING = "RUN_NOT_RUNNING"
    RUN_NOT_PAUSED = "RUN_NOT_PAUSED"
    APPROVAL_NOT_PENDING = "APPROVAL_NOT_PENDING"
    STEP_NOT_FOUND = "STEP_NOT_FOUND"
    STEP_NOT_TERMINAL = "STEP_NOT_TERMINAL"
    STEP_TERMINAL = "STEP_TERMINAL"
    STEP_NOT_FAILED = "STEP_NOT_FAILED"
    STEP_RUNNING = "STEP_RUNNING"
    STEP_NEEDED = "STEP_NEEDED"
    PERIOD_BUSY = "PERIOD_BUSY"
    SAME_PERSON = "SAME_PERSON"


@dataclass(frozen=True, slots=True)
class Actor:
    """Who sends a signal."""

    name: str
    role: Role
    tenant_id: str = "default"
    token_creator: str | None = None
    """Who created the token that they use; None without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A message to a run. A signal sent twice with the same id is one signal."""

    signal_id: str
    run_id: str
    type: SignalType
    step_id: str | None = None
    reason: str | None = None
    payload: Mapping[str, object] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """A hash of the content, which tells a repetition from another signal with the same id."""
        content = [self.type.value, self.step_id, self.reason, dict(self.payload)]
        return hashlib.sha256(canonical_json(encode(content)).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal with a sentence that says why."""

    refusal: Refusal
    detail: str


class Authorizer(Protocol):
    """Decides who may send what."""

    def refusal(self, actor: Actor, signal: Signal, run: RunRecord) -> Refused | None:
        """Why this is not allowed; None if it is."""
        ...


class RoleAuthorizer:
    """Allows signals within the tenant, by role."""

    def refusal(self, actor: Actor, signal: Signal, run: RunRecord) -> Refused | None:
        """Why this is not allowed; None if it is."""
        if actor.tenant_id != run.request.tenant_id:
            return Refused(Refusal.WRONG_TENANT, "the run belongs to another tenant")
        needed = NEEDED_ROLE[signal.type]
        if actor.role < needed:
            return Refused(Refusal.NOT_AUTHORIZED, f"{signal.type} needs the role {needed.label}")
        return None


def actor_name() -> str:
    """The name of the operating system's user. Environment variables do not change it."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"uid {os.getuid()}"


def rule_refusal(signal: Signal, run: RunRecord, snapshot: RunSnapshot) -> Refused | None:
    """Why the signal is not valid in the current state; None if it is."""
    match signal.type:
        case SignalType.RETRY_RUN:
            if snapshot.status.is_terminal:
                return None
            return Refused(Refusal.RUN_NOT_TERMINAL, f"the run is {snapshot.status}")
        case SignalType.RETRY_STEP | SignalType.SKIP_STEP:
            return _step_refusal(signal, snapshot)
        case _ if snapshot.status.is_terminal:
            return Refused(Refusal.RUN_TERMINAL, f"the run is {snapshot.status}")
        case SignalType.CANCEL:
            return None
        case SignalType.PAUSE if snapshot.status is not RunStatus.RUNNING:
            return Refused(Refusal.RUN_NOT_RUNNING, f"the run is {snapshot.status}")
        case SignalType.RESUME if snapshot.status is not RunStatus.PAUSED and not _pause_pending(snapshot):
            return Refused(Refusal.RUN_NOT_PAUSED, f"the run is {snapshot.status}")
        case SignalType.APPROVE if not run.approval_pending:
            return Refused(Refusal.APPROVAL_NOT_PENDING, "the run does not wait for approval")
        case _:
            return None


def _step_refusal(signal: Signal, snapshot: RunSnapshot) -> Refused | None:
    if snapshot.status in {RunStatus.COMPLETED, RunStatus.CANCELLED}:
        return Refused(Refusal.RUN_TERMINAL, f"the run is {snapshot.status}")
    step = snapshot.step(signal.step_id) if signal.step_id is not None else None
    if step is None:
        return Refused(Refusal.STEP_NOT_FOUND, f"the run has no step {signal.step_id}")
    if signal.type is SignalType.RETRY_STEP:
        return _retry_refusal(step, snapshot)
    return _skip_refusal(step, snapshot)


def _retry_refusal(step: StepSnapshot, snapshot: RunSnapshot) -> Refused | None:
    if not step.status.is_terminal:
        return Refused(Refusal.STEP_NOT_TERMINAL, f"step {step.step_id} is {step.status}")
    if step.status is not StepStatus.FAILED:
        return Refused(Refusal.STEP_NOT_FAILED, f"step {step.step_id} is {step.status}; RETRY_RUN starts a new run")
    if snapshot.status is not RunStatus.FAILED:
        return Refused(Refusal.STEP_NOT_TERMINAL, f"another attempt at step {step.step_id} is already in progress")
    return None


def _skip_refusal(step: StepSnapshot, snapshot: RunSnapshot) -> Refused | None:
    if step.status is StepStatus.RUNNING:
        return Refused(Refusal.STEP_RUNNING, f"step {step.step_id} is running; CANCEL interrupts it")
    if step.status.is_done:
        return Refused(Refusal.STEP_TERMINAL, f"step {step.step_id} is {step.status}")
    if snapshot.status is RunStatus.FAILED and step.status is not StepStatus.FAILED:
        return Refused(Refusal.STEP_NOT_FAILED, f"the run failed at step {snapshot.failed_step}")
    if step.type == LOAD_STEP:
        return Refused(Refusal.STEP_NEEDED, "without what is loaded there is nothing for the other steps to work on")
    return None


def _pause_pending(snapshot: RunSnapshot) -> bool:
    return any(signal.signal == SignalType.PAUSE for signal in snapshot.pending_signals)


def effects(pending: PendingSignal, snapshot: RunSnapshot, clock: Clock) -> tuple[NewEvent, ...]:
    """What an accepted signal does to the run between two steps; nothing, where the run has moved on since.

    RETRY_RUN is not here: it makes another run and leaves this one alone.
    """

    def event(body: EventBody, *, step_id: str = RUN_STEP, attempt: int = 1) -> NewEvent:
        return NewEvent(
            body,
            emitted_at=clock(),
            step_id=step_id,
            logical_attempt_id=attempt,
            caused_by_signal_id=pending.signal_id,
        )

    step = snapshot.step(pending.step_id) if pending.step_id is not None else None
    failed = snapshot.status is RunStatus.FAILED and step is not None and step.status is StepStatus.FAILED
    match SignalType(pending.signal):
        case SignalType.PAUSE if snapshot.status is RunStatus.RUNNING:
            return (event(RunPaused(), attempt=snapshot.cycle),)
        case SignalType.RESUME if snapshot.status is RunStatus.PAUSED:
            return (event(RunResumed(), attempt=snapshot.cycle),)
        case SignalType.CANCEL if not snapshot.status.is_terminal:
            return (event(RunCancelled(pending.reason)),)
        case SignalType.APPROVE if snapshot.status is RunStatus.PENDING:
            return (event(RunApproved(pending.actor)),)
        case SignalType.RETRY_STEP if failed and step is not None:
            return (event(RunResumed(step.step_id), attempt=snapshot.cycle),)
        case SignalType.SKIP_STEP if step is not None and (failed or step.status is StepStatus.PENDING):
            skipped = event(
                StepSkipped(pending.reason or f"skipped by {pending.actor}"),
                step_id=step.step_id,
                attempt=step.logical_attempt_id,
            )
            return (skipped, event(RunResumed(), attempt=snapshot.cycle)) if failed else (skipped,)
        case _:
            return ()
