"""A run that has been begun: what its driver, its heartbeat and its steps share."""

from dataclasses import dataclass, field

from clew.runs.cancel import CancelToken
from clew.runs.executor import StepContext, StepExecutor
from clew.runs.live_run import LiveRun
from clew.runs.secrets import StepSecrets


@dataclass(frozen=True, slots=True, eq=False)
class ActiveRun:
    """One run, its executor and its cancel token. No two of them are the same, whatever they hold."""

    live: LiveRun
    executor: StepExecutor
    secrets: StepSecrets
    cancel: CancelToken = field(default_factory=CancelToken)

    def context(self) -> StepContext:
        """What the next steps may use."""
        return StepContext(self.live.run, self.live.snapshot, self.cancel, self.secrets)
