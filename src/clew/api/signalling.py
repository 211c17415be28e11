"""Sends signals, for the user of an embedded environment (who may do everything in its tenant) or another actor."""

import uuid

from clew.api.state import State, queue_of
from clew.auth.roles import AccessRole, Permission
from clew.deferred import dataclass
from clew.events.bodies import RunRetried
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.events.values import LOAD_STEP
from clew.runs.approving import PolicyAuthorizer
from clew.runs.environment import RunEnvironment
from clew.runs.renewal import Renewal
from clew.runs.request import RunRecord
from clew.runs.signal_service import SignalDecision, SignalService
from clew.runs.signals import Actor, Authorizer, Refused, Role, Signal, SignalType, actor_name, rule_refusal

_OF_A_STEP = frozenset({SignalType.RETRY_STEP, SignalType.SKIP_STEP})


def send_signal(
    state: State,
    environment: RunEnvironment,
    run_id: str,
    signal: SignalType,
    *,
    step: str | None = None,
    reason: str | None = None,
    signal_id: str | None = None,
    actor: Actor | None = None,
    renewal: Renewal | None = None,
) -> "SignalOutcome":
    """Send a signal to a run. The decision is recorded, and takes effect immediately if no worker is driving the run.

    `step` is a seq; step 0 loads the input. RETRY_RUN takes the plan of the `renewal`, if there is one.
    """
    service = SignalService(
        state.stores,
        queue_of(state, environment),
        authorizer=authorizer_of(state, environment),
        limits=environment.store_limits(),
        lease=environment.lease_policy(),
    )
    told = Signal(
        signal_id=signal_id or str(uuid.uuid4()),
        run_id=run_id,
        type=signal,
        step_id=LOAD_STEP if step == "0" else step,
        reason=reason,
        payload={} if renewal is None else renewal.to_payload(),
    )
    decision = service.send(told, actor or Actor(actor_name(), Role.ADMIN, environment.settings.tenant))
    return SignalOutcome(run_id, signal, decision, _next_run(state, run_id, signal, decision), _status(state, run_id))


def authorizer_of(state: State, environment: RunEnvironment) -> PolicyAuthorizer:
    """Decides who may send what, by the approval policy of an environment."""

    def creators(name: str) -> frozenset[str]:
        return frozenset(
            token.created_by for token in state.tokens.tokens() if token.name.casefold() == name.casefold()
        )

    return PolicyAuthorizer(environment.approval_policy(), creators)


@dataclass(frozen=True, slots=True)
class PossibleSignal:
    """A signal that is valid in the current state of a run."""

    signal: SignalType
    step_id: str | None = None
    """The step that it applies to."""


def possible_signals(
    run: RunRecord, snapshot: RunSnapshot, role: AccessRole, actor: Actor, authorizer: Authorizer
) -> tuple[PossibleSignal, ...]:
    """The signals that someone may send to a run in its current state."""
    if Permission.SEND_SIGNALS not in role.permissions:
        return ()
    found = list[PossibleSignal]()
    for signal in SignalType:
        step = snapshot.failed_step if signal in _OF_A_STEP else None
        told = Signal(signal_id="", run_id=run.run_id, type=signal, step_id=step)
        if authorizer.refusal(actor, told, run) is not None or (signal in _OF_A_STEP and step is None):
            continue
        if rule_refusal(told, run, snapshot) is None:
            found.append(PossibleSignal(signal, step))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class SignalOutcome:
    """The outcome of a signal, and the state of the run."""

    run_id: str
    signal: SignalType
    decision: SignalDecision
    next_run: str | None
    """The run that continues because of the signal: this one, or the new run that repeats its work."""
    status: RunStatus

    @property
    def is_accepted(self) -> bool:
        """Whether the signal takes effect."""
        return self.decision.is_accepted

    @property
    def refused(self) -> Refused | None:
        """Why it was refused, if it was."""
        return self.decision.refused

    def to_json(self) -> dict[str, object]:
        """The form of `clew signal --json`."""
        refused = self.decision.refused
        return {
            "run_id": self.run_id,
            "signal": self.signal.value,
            "accepted": self.is_accepted,
            "refusal": refused.refusal.value if refused else None,
            "detail": refused.detail if refused else None,
            "new_run_id": self.next_run if self.next_run != self.run_id else None,
            "status": self.status.value,
        }


def _next_run(state: State, run_id: str, signal: SignalType, decision: SignalDecision) -> str | None:
    if not decision.is_accepted:
        return None
    if signal is SignalType.RETRY_RUN:
        retried = [event.body for event in state.stores.reader.events(run_id) if isinstance(event.body, RunRetried)]
        return retried[-1].new_run_id if retried else None
    goes_on = signal in {SignalType.RETRY_STEP, SignalType.RESUME, SignalType.SKIP_STEP, SignalType.APPROVE}
    return run_id if goes_on and _status(state, run_id) in {RunStatus.RUNNING, RunStatus.APPROVED} else None


def _status(state: State, run_id: str) -> RunStatus:
    return state.stores.catalog.run(run_id).status
