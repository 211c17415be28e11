"""Sending signals: as the one user of an embedded environment, who may do everything in its tenant, or for others."""

import uuid

from clew.app.running.actor import actor_name
from clew.app.running.environment import RunEnvironment
from clew.app.running.state import State, queue_of
from clew.runs.signal_service import SignalDecision, SignalService
from clew.runs.signals import Actor, Role, Signal, SignalType

LOAD_STEP = "load"


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
) -> SignalDecision:
    """Tell a run something. The decision is recorded, and takes effect at once where nobody drives the run.

    `step` is a seq; 0 is the step that loads.
    """
    service = SignalService(state.stores, queue_of(state, environment), limits=environment.store_limits())
    told = Signal(
        signal_id=signal_id or str(uuid.uuid4()),
        run_id=run_id,
        type=signal,
        step_id=LOAD_STEP if step == "0" else step,
        reason=reason,
    )
    return service.send(told, actor or Actor(actor_name(), Role.ADMIN, environment.settings.tenant))
