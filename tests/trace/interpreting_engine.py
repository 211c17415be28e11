"""An engine without Spark that really runs plans: the interpreter computes, and the small writer leaves the files."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from clew.events.snapshot import RunSnapshot
from clew.events.values import ArtifactRef, PlannedStep
from clew.plan import Plan
from clew.plan.operations import OutputStep
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.registry import DatasetFile, DatasetRegistry, DatasetVersion, Registration
from clew.runs.request import RunRecord
from clew.storage.committed import publish_part
from clew.storage.drafts import draft
from clew.storage.layout import part_folder
from clew.storage.parts import Part, PartFile
from clew.storage.plans import kept_plan
from clew.storage.root import StorageRoot
from tests.plan.plan_interpreter import Cells
from tests.trace.recorded_interpretation import Recorded
from tests.trace.trace_writer import SYSTEM, Style, Writer, stored_type

FIRST_DAY = date(2026, 1, 1)
_OTHERS = 1_000
"""Ordinals of files whose rows the run does not take, out of the way of those that it writes."""


@dataclass
class InterpretingEngine:
    """Opens executors that interpret. Registered datasets become data for the runs after them."""

    storage_root: StorageRoot
    registry: DatasetRegistry
    data: Mapping[str, Sequence[Mapping[str, Any]]]
    failing: frozenset[str] = frozenset()
    """Steps that fail, by id."""

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> "InterpretingExecutor":
        return InterpretingExecutor(self, run, kept_plan(self.storage_root, run.request.plan.digest or ""))


@dataclass
class InterpretingExecutor:
    engine: InterpretingEngine
    run: RunRecord
    plan: Plan
    engine_run_ref: Mapping[str, object] | None = None
    writer: Writer | None = None

    @property
    def root(self) -> Path:
        return Path(self.engine.storage_root.address)

    @property
    def steps(self) -> list[PlannedStep]:
        planned = [PlannedStep(str(step.seq), step.seq, step.name, step.type) for step in self.plan.steps]
        return [PlannedStep("load", 0, "Load", "load"), *planned]

    def group_size(self, remaining: Sequence[PlannedStep]) -> int:
        return 1

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        [attempt] = attempts
        step = attempt.step
        if step.step_id in self.engine.failing:
            raise RuntimeError("as the test wants it")
        if self.writer is None:
            self.writer = self._interpreted()
        artifacts = [self._described(part) for part in self.writer.parts if _seq_of(part) == step.seq]
        operation = next((each for each in self.plan.steps if each.seq == step.seq), None)
        counts = {"loaded": len(self.writer.recorded.states[0])} if operation is None else {}
        if isinstance(operation, OutputStep):
            counts["rows_written"] = len(self.writer.recorded.outputs[str(operation.seq)])
            artifacts.append(ArtifactRef(f"path:out/{step.seq}", "output"))
            if operation.registers is not None:
                version = self._registered(operation, operation.registers)
                artifacts.append(ArtifactRef(f"dataset:{operation.registers}@{version}", "dataset-version"))
        return [StepOutput.success(*artifacts, **counts)]

    def close(self) -> None:
        pass

    def _interpreted(self) -> Writer:
        managed = {dataset: self._version(dataset) for dataset in self._managed()}
        data = {**self.engine.data, **{dataset: _rows(self.root, v) for dataset, v in managed.items()}}
        recorded = Recorded(self.plan, data, self.run.request.period, FIRST_DAY).run()
        writer = Writer(self.root, recorded, Style(files=1 if managed else 2), run_id=self.run.run_id)
        writer.write()
        writer.parts = [self._as_pinned(part, managed) for part in writer.parts]
        return writer

    def _managed(self) -> set[str]:
        return {use.dataset_id for use in self.plan.datasets_read if use.resolver_source == "managed"}

    def _version(self, dataset: str) -> DatasetVersion:
        wanted = next(use.pinned_version for use in self.plan.datasets_read if use.dataset_id == dataset)
        return next(v for v in self.engine.registry.versions(dataset) if wanted in {None, v.version})

    def _as_pinned(self, part: Part, managed: Mapping[str, DatasetVersion]) -> Part:
        """A managed dataset is read where it lies, and its files hold other periods too."""
        dataset = part.name.partition("@")[0]
        if part.kind != "input" or dataset not in managed:
            return part
        version, period = managed[dataset], self.run.request.period
        files = [
            PartFile(file.path, file.rows, file.size, file.sha256, 0 if file.period == period else _OTHERS + index)
            for index, file in enumerate(sorted(version.files, key=lambda file: file.period != period))
        ]
        details: dict[str, str | int | None] = {"dataset": dataset, "version": version.version}
        return replace(part, files=tuple(files), details={**details, "format": "managed", "periods": period})

    def _described(self, part: Part) -> ArtifactRef:
        folder = part_folder(self.run.run_id, part.kind, part.name)
        return publish_part(draft(self.engine.storage_root, folder), part).artifact

    def _registered(self, step: OutputStep, dataset: str) -> int:
        assert self.writer is not None
        rows, period = self.writer.recorded.outputs[str(step.seq)], self.run.request.period
        types = {column.name: column.type for column in self.plan.columns_after(step.seq)} | SYSTEM
        columns = {name: pa.array([row[name] for row in rows], stored_type(types[name])) for name in step.columns}
        state = self.writer.recorded.states[step.seq]
        origins = [ordinal for ordinal, row in zip(self.writer.ordinals, state, strict=False) if not row["_deleted"]]
        columns["__origin"] = pa.array(origins[: len(rows)], pa.int64())
        name = f"datasets/{dataset}/{self.run.run_id}-{step.seq}/part-0.parquet"
        path = self.root / name
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(columns), path)
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        file = DatasetFile(name, len(rows), len(content), digest, period, self.run.run_id, step.seq)
        described = tuple((column, str(types[column])) for column in step.columns)
        table = self.plan.input.table
        registration = Registration(dataset, self.run.run_id, step.seq, period, table, described, (file,))
        return self.engine.registry.register(registration).version


def _seq_of(part: Part) -> int:
    return 0 if part.kind == "input" else part.seq


def _rows(root: Path, version: DatasetVersion) -> list[Cells]:
    return [row for file in version.files for row in pq.read_table(root / file.path).to_pylist()]
