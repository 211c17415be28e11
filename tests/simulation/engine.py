"""The engine of a simulation. It keeps to the rules of the real one, over the real `storage` package.

A part lies in a folder that no other attempt has, and counts only if an event names its description. Every part says
under which token it was written, and what is in it follows from what was committed before.
"""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from clew.diagnostics import TransientFailure, UserError
from clew.diagnostics.codes.runs import STORE_UNAVAILABLE
from clew.events.artifacts import dataset_artifact
from clew.events.snapshot import RunSnapshot, StepStatus
from clew.events.values import LOAD_STEP, ArtifactRef, Failure, FailureCategory, PlannedStep
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.registry import DatasetFile, DatasetRegistry, Registration
from clew.runs.request import RunRecord
from clew.storage.committed import committed_parts, publish_part
from clew.storage.drafts import attempt_name, draft
from clew.storage.layout import part_folder, registered_folder
from clew.storage.parts import Part, PartFile
from clew.storage.root import StorageRoot
from tests.simulation.kernel import Kernel

SHAPE = "shape"
"""The key, among the parameters of a request, of what its steps do."""


def _away(error: OSError) -> TransientFailure:
    return TransientFailure(STORE_UNAVAILABLE.anywhere(reason=f"storage: {error}"))


@dataclass
class SimulatedExecutor:
    """The steps of one run."""

    kernel: Kernel
    root: StorageRoot
    registry: DatasetRegistry
    run: RunRecord
    steps: Sequence[PlannedStep]
    shape: Mapping[str, object]
    engine_run_ref: Mapping[str, object] | None = None

    def group_size(self, remaining: Sequence[PlannedStep]) -> int:
        if remaining[0].type == LOAD_STEP:
            return 1
        fuse = self.shape["fuse"]
        assert isinstance(fuse, int)
        return min(fuse, len(remaining))

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> Sequence[StepOutput]:
        kernel = self.kernel
        names = " ".join(f"{a.step.step_id}.{a.logical_attempt_id}.{a.engine_attempt_id}" for a in attempts)
        kernel.call("engine", f"execute {names} of {self.run.run_id} under {context.lease.token}")
        if kernel.strikes("engine fails"):
            raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="the cluster is gone"))
        try:
            found = committed_parts(self.root, context.all_steps())
            before = [self.root.read_bytes(file.path) for part in found for file in part.files]
        except OSError as error:
            raise _away(error) from error
        outputs = list[StepOutput]()
        for attempt in attempts:
            output, content = self._step(attempt, context, before)
            outputs.append(output)
            if output.status is StepStatus.FAILED:
                break
            before.append(content)
        return outputs

    def _step(self, attempt: StepAttempt, context: StepContext, before: Sequence[bytes]) -> tuple[StepOutput, bytes]:
        kernel, step = self.kernel, attempt.step
        longest = 30.0 if kernel.strikes("engine slow") else 3.0
        if context.cancel.wait(kernel.random.uniform(0.01, longest)):
            context.cancel.check()
        kernel.may_crash()
        if self.shape.get("bad") == step.step_id and attempt.logical_attempt_id == 1:
            return StepOutput.failed(Failure("DivisionByZero", "a bad step", FailureCategory.USER)), b""
        content = hashlib.sha256(b"|".join([*before, step.step_id.encode()])).hexdigest().encode()
        try:
            if step.type == LOAD_STEP:
                artifacts = self._load(attempt, context, content)
            else:
                artifacts = [self._write(attempt, context, content)]
                if step.type == "output":
                    artifacts += self._publish(attempt, context, content)
        except OSError as error:
            raise _away(error) from error
        return StepOutput.success(*artifacts, rows_updated=len(content)), content

    def _details(self, attempt: StepAttempt, context: StepContext) -> dict[str, str | int | None]:
        return {"token": context.lease.token, "attempt": attempt.engine_attempt_id}

    def _load(self, attempt: StepAttempt, context: StepContext, content: bytes) -> list[ArtifactRef]:
        """Pin the newest version of a dataset, whose files are read in place, or read a file of one's own."""
        dataset = self.shape.get("reads")
        versions = self.registry.versions(dataset) if isinstance(dataset, str) else ()
        if not versions:
            return [self._write(attempt, context, content, kind_name="input")]
        newest = versions[0]
        files = tuple(PartFile(file.path, file.rows, file.size, file.sha256, 1) for file in newest.files)
        for file in files:
            if self.root.sha256(file.path) != file.sha256:
                raise UserError(STORE_UNAVAILABLE.anywhere(reason="a registered file was changed"))
        started = draft(self.root, part_folder(self.run.run_id, "input", newest.dataset))
        details = {**self._details(attempt, context), "dataset": newest.dataset, "version": newest.version}
        return [publish_part(started, Part("input", newest.dataset, files, (), 0, details=details)).artifact]

    def _write(
        self, attempt: StepAttempt, context: StepContext, content: bytes, kind_name: str = "created"
    ) -> ArtifactRef:
        step = attempt.step
        kind = "input" if kind_name == "input" else "created"
        started = draft(self.root, part_folder(self.run.run_id, kind, step.step_id))  # type: ignore[arg-type]
        try:
            self.root.upload(f"{started.folder}/rows", [content[:20], content[20:]])
            [rows] = started.files("rows")
            if rows.size != len(content):
                raise OSError("the file was cut short")  # noqa: TRY301 - handled as what the storage itself says
            written = PartFile(rows.key, len(content), rows.size, self.root.sha256(rows.key), step.seq)
        except OSError:
            with suppress(OSError):
                started.abandon()
            raise
        part = Part(kind, step.step_id, (written,), (), step.seq, details=self._details(attempt, context))  # type: ignore[arg-type]
        return publish_part(started, part).artifact

    def _publish(self, attempt: StepAttempt, context: StepContext, content: bytes) -> list[ArtifactRef]:
        """Register the rows as a version of a dataset, as the registrar of the engine does."""
        dataset, seq = self.shape.get("registers"), attempt.step.seq
        if not isinstance(dataset, str):
            return []
        made = next((v for v in self.registry.versions(dataset) if (v.run_id, v.seq) == (self.run.run_id, seq)), None)
        if made is None:
            key = f"{registered_folder(dataset, self.run.run_id, seq)}/{attempt_name()}/rows"
            with self.root.create(key) as file:
                file.write(content)
            request = self.run.request
            written = DatasetFile(key, 1, len(content), self.root.sha256(key), request.period, self.run.run_id, seq)
            context.fence()
            registration = Registration(dataset, self.run.run_id, seq, request.period, "t", (), (written,))
            made = self.registry.register(registration, context.lease)
        return [dataset_artifact(dataset, made.version)]

    def close(self) -> None:
        """Nothing to release."""


@dataclass
class SimulatedExecutors:
    """Opens executors in one process."""

    kernel: Kernel
    root: StorageRoot
    registry: DatasetRegistry

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> SimulatedExecutor:
        del snapshot
        self.kernel.call("engine", f"open {run.run_id}")
        if self.kernel.strikes("engine fails"):
            raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="no session"))
        shape = run.request.parameters[SHAPE]
        assert isinstance(shape, Mapping)
        count = shape["steps"]
        assert isinstance(count, int)
        planned = [PlannedStep(LOAD_STEP, 0, "load", LOAD_STEP)]
        planned += [PlannedStep(str(n * 10), n * 10, f"step {n}", "update") for n in range(1, count)]
        planned.append(PlannedStep(str(count * 10), count * 10, f"step {count}", "output"))
        return SimulatedExecutor(self.kernel, self.root, self.registry, run, tuple(planned), shape, {"run": run.run_id})
