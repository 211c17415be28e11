"""An engine without Spark: steps succeed with made-up counts, or fail, pause and wait as a test says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from clew.diagnostics import ClewError
from clew.events.snapshot import RunSnapshot
from clew.events.values import ArtifactRef, PlannedStep
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.request import RunRecord
from clew.storage.plans import kept_plan
from clew.storage.roots import storage_at

COUNTS = {
    "load": {"loaded": 1455},
    "update": {"rows_updated": 34},
    "delete": {"rows_deleted": 17},
    "aggregate": {"rows_created": 4},
    "append": {"rows_created": 127},
    "output": {"rows_written": 1569},
}


@dataclass
class FakeEngine:
    """Opens executors for the plans of runs."""

    storage_root: Path = Path()
    failing: dict[str, ClewError] = field(default_factory=dict)
    """Steps that fail, by id; "open" for the executor itself."""
    during: dict[str, Callable[[StepContext], None]] = field(default_factory=dict)
    """What happens while a step runs."""
    on_close: Callable[[], None] = lambda: None
    executed: list[str] = field(default_factory=list)

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> "FakeExecutor":
        from clew.engine.executor import planned_steps

        if "open" in self.failing:
            raise self.failing["open"]
        return FakeExecutor(
            self, planned_steps(kept_plan(storage_at(self.storage_root), run.request.plan.digest or ""))
        )


@dataclass
class FakeExecutor:
    engine: FakeEngine
    steps: Sequence[PlannedStep]
    engine_run_ref: Mapping[str, object] | None = None

    def group_size(self, remaining: Sequence[PlannedStep]) -> int:
        return 1

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        [attempt] = attempts
        step = attempt.step
        self.engine.executed.append(step.step_id)
        if step.step_id in self.engine.during:
            self.engine.during[step.step_id](context)
        if step.step_id in self.engine.failing:
            raise self.engine.failing[step.step_id]
        published = [ArtifactRef(f"path:out/{step.seq}", "output")] if step.type == "output" else []
        return [StepOutput.success(*published, **COUNTS[step.type])]

    def close(self) -> None:
        self.engine.on_close()
