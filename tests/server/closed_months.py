"""Closes and reports of several months without Spark: what each run registers, and what it reads of others."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from clew.events.artifacts import dataset_artifact, output_artifact
from clew.events.snapshot import RunSnapshot
from clew.events.values import ArtifactRef
from clew.plan import Plan
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.registry import DatasetFile, DatasetRegistry, Registration
from clew.runs.request import RunRecord
from clew.storage.parts import Part, PartFile, part_to_json
from clew.storage.plans import kept_plan
from clew.storage.roots import storage_at
from tests.cli.cli_fake_engine import FakeEngine, FakeExecutor

CLOSED = "gl-closed"
ROWS_CLOSED = {"2026-01": 1569, "2026-02": 1490, "2026-03": 1502}


@dataclass
class MonthsEngine(FakeEngine):
    """Registers what a close publishes; a report reads the newest version, of its own period only."""

    registry: DatasetRegistry | None = None

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> "FakeExecutor":
        opened = super().open(run, snapshot)
        plan = kept_plan(storage_at(self.storage_root), run.request.plan.digest or "")
        return MonthExecutor(self, opened.steps, run=run, plan=plan)


@dataclass(kw_only=True)
class MonthExecutor(FakeExecutor):
    run: RunRecord
    plan: Plan

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        [attempt] = attempts
        if attempt.step.step_id == "load" and self.plan.input.dataset_id == CLOSED:
            return [StepOutput.success(self._read(), loaded=ROWS_CLOSED[self.run.request.period])]
        if attempt.step.type == "output" and attempt.step.seq == 60 and self.plan.name == "gl-close":
            return [self._published(attempt.step.seq)]
        return super().execute(attempts, context)

    @property
    def _registry(self) -> DatasetRegistry:
        assert isinstance(self.engine, MonthsEngine)
        assert self.engine.registry is not None
        return self.engine.registry

    def _published(self, seq: int) -> StepOutput:
        period, run_id = self.run.request.period, self.run.run_id
        rows = ROWS_CLOSED[period]
        file = DatasetFile(f"datasets/{CLOSED}/{run_id}.parquet", rows, 1, "0" * 64, period, run_id, seq)
        made = self._registry.register(
            Registration(CLOSED, run_id, seq, period, "transactions", (("_period", "string"),), (file,))
        )
        place = output_artifact(table=None, path=f"datasets/{CLOSED}")
        return StepOutput.success(place, dataset_artifact(CLOSED, made.version), rows_written=rows)

    def _read(self) -> ArtifactRef:
        newest, period = self._registry.versions(CLOSED)[0], self.run.request.period
        part = Part(
            kind="input",
            name=self.plan.input.key,
            files=tuple(PartFile(each.path, each.rows, each.size, each.sha256) for each in newest.files),
            columns=newest.columns,
            details={
                "dataset": CLOSED,
                "version": newest.version,
                "period": period,
                "periods": period,
                "format": "managed",
                "counted_rows": ROWS_CLOSED[period],
            },
        )
        path = self.engine.storage_root / "runs" / self.run.run_id / part.kind / part.name / "part.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(part_to_json(part)), encoding="utf-8")
        return ArtifactRef(f"storage:{path.relative_to(self.engine.storage_root)}", "trace-part")
