"""Signals: what people may tell a run, who may, and why one is refused.

Who is at the keyboard.
"""

import getpass
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Protocol

from clew.runs.request import RunRecord


class SignalType(StrEnum):
    """What a run can be told."""

    PAUSE = "PAUSE"
    RESUME = "RESUME"
    CANCEL = "CANCEL"
    RETRY_STEP = "RETRY_STEP"
    SKIP_STEP = "SKIP_STEP"
    RETRY_RUN = "RETRY_RUN"
    APPROVE = "APPROVE"


class Role(IntEnum):
    """What somebody may do; each role may do all that the one before it may."""

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
"""The least role that may send a signal. Skipping changes results, so it takes somebody who knows the project."""


class Refusal(StrEnum):
    """Why a signal is refused."""

    NOT_AUTHORIZED = "NOT_AUTHORIZED"
    WRONG_TENANT = "WRONG_TENANT"
    TOO_LARGE = "TOO_LARGE"
    RATE_LIMITED = "RATE_LIMITED"
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


@dataclass(frozen=True, slots=True)
class Actor:
    """Who sends a signal."""

    name: str
    role: Role
    tenant_id: str = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """Something a run is told. Sent again with the same id, it is the same signal."""

    signal_id: str
    run_id: str
    type: SignalType
    step_id: str | None = None
    reason: str | None = None
    payload: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Refused:
    """A refusal with a sentence that says why."""

    refusal: Refusal
    detail: str


class Authorizer(Protocol):
    """Decides who may send what."""

    def refusal(self, actor: Actor, signal: Signal, run: RunRecord) -> Refused | None:
        """Why this is not allowed, or None where it is."""
        ...


class RoleAuthorizer:
    """Everybody within their tenant, and by their role."""

    def refusal(self, actor: Actor, signal: Signal, run: RunRecord) -> Refused | None:
        """Why this is not allowed, or None where it is."""
        if actor.tenant_id != run.request.tenant_id:
            return Refused(Refusal.WRONG_TENANT, "the run belongs to another tenant")
        needed = NEEDED_ROLE[signal.type]
        if actor.role < needed:
            return Refused(Refusal.NOT_AUTHORIZED, f"{signal.type} needs the role {needed.label}")
        return None


def actor_name() -> str:
    """The name of the user, for the record."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
