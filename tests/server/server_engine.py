"""Runs of the sample without Spark: the close leaves the trace that the interpreter gives, all else made-up counts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

from clew.events.snapshot import RunSnapshot
from clew.events.values import ArtifactRef, PlannedStep
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.request import RunRecord
from clew.storage.parts import part_to_json
from clew.storage.plans import kept_plan
from clew.storage.roots import storage_at
from tests.cli.cli_fake_engine import COUNTS, FakeEngine, FakeExecutor
from tests.explain.sample_traces import MONTH, sample_data, sample_plans
from tests.trace.recorded_interpretation import Recorded
from tests.trace.trace_writer import Style, Writer

WRONG_RATE = Decimal("1.192000")
"""What one engine took for the rate from euros to dollars, which is 1.092."""


@cache
def _interpreted_close(*, has_wrong_rate: bool = False) -> Recorded:
    data = sample_data()
    if has_wrong_rate:
        [rate] = [row for row in data["fx-rates"] if _is_euro_of_january(row)]
        rate["rate"] = WRONG_RATE
    return Recorded(sample_plans()["gl-close"], data, MONTH, date(2026, 1, 1)).run()


def _is_euro_of_january(row: Mapping[str, object]) -> bool:
    named = (row["from_currency"], row["to_currency"], row["rate_type"], str(row["_period_from"]))
    return named == ("EUR", "USD", "closing", "2026-01-01") and row["rate"] == Decimal("1.092")


@dataclass
class TracingEngine(FakeEngine):
    """Writes the trace of a close when it loads."""

    has_wrong_rate: bool = False

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> "FakeExecutor | TracingExecutor":
        opened = super().open(run, snapshot)
        plan = kept_plan(storage_at(self.storage_root), run.request.plan.digest or "")
        if plan.name != "gl-close" or run.request.period != MONTH:
            return opened
        return TracingExecutor(self, opened.steps, run_id=run.run_id)


@dataclass
class TracingExecutor(FakeExecutor):
    engine: FakeEngine
    steps: Sequence[PlannedStep]
    engine_run_ref: Mapping[str, object] | None = None
    run_id: str = ""
    written: list[ArtifactRef] = field(default_factory=list)

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        [attempt] = attempts
        if attempt.step.step_id != "load" or self.written:
            return super().execute(attempts, context)
        is_wrong = isinstance(self.engine, TracingEngine) and self.engine.has_wrong_rate
        self.written = write_close_trace(self.engine.storage_root, self.run_id, has_wrong_rate=is_wrong)
        return [StepOutput.success(*self.written, **COUNTS["load"])]


def write_close_trace(root: Path, run_id: str, *, has_wrong_rate: bool = False) -> list[ArtifactRef]:
    """What a run of the close leaves behind, and the references that its events name."""
    writer = Writer(
        root, _interpreted_close(has_wrong_rate=has_wrong_rate), Style(files=2, row_group=500), run_id=run_id
    )
    writer.write()
    references = list[ArtifactRef]()
    for part in writer.parts:
        path = root / "runs" / run_id / part.kind / part.name / "part.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(part_to_json(part)), encoding="utf-8")
        references.append(ArtifactRef(f"storage:{path.relative_to(root)}", "trace-part"))
    return references
