"""Runs start and go on only if nobody has edited them while they waited or rested."""

from dataclasses import replace

from clew.api.sealed_reading import forged
from clew.api.state import State
from clew.deferred import dataclass
from clew.events.reducer import waits_for_approval
from clew.events.snapshot import RunSnapshot
from clew.runs.environment import RunEnvironment
from clew.runs.executor import ExecutorFactory, StepExecutor
from clew.runs.request import RunRecord
from clew.runs.seal_keys import known_seal_key


def require_sealed_start(state: State, environment: RunEnvironment, run: RunRecord) -> None:
    """Raise UserError ForgedHistory if a run that is about to start or go on is not what was recorded.

    Above all: that it was approved. More events may follow those that its record knows, such as signals.
    """
    key = known_seal_key(environment)
    if key is None or not state.sealed_runs.has_begun():
        return
    events = state.sealed_runs.events(run.run_id)
    problem = state.sealed_runs.problem(replace(run, last_hash=None), events, key)
    if problem is None and waits_for_approval([event.read() for event in events]):
        problem = "its record says that it was approved, its events do not"
    if problem is not None:
        raise forged(run.run_id, problem)


@dataclass(frozen=True, slots=True)
class SealedExecutors:
    """Executors for runs that are what was recorded, and for no others."""

    executors: ExecutorFactory
    state: State
    environment: RunEnvironment

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> StepExecutor:
        """The executor of a run. UserError ForgedHistory if it was edited while it waited or rested."""
        require_sealed_start(self.state, self.environment, run)
        return self.executors.open(run, snapshot)
