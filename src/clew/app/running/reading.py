"""What runs are, were and left behind, read without Spark. One read model for commands, pages and Python."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from clew.app.captures.json_forms import capture_json, job_json
from clew.app.running.environment import RunEnvironment
from clew.app.running.plans import PlanReader, kept_plan
from clew.app.running.state import State
from clew.debug.records import CaptureRecord
from clew.diagnostics import Diagnostic, Span, UserError
from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.runs import AMBIGUOUS_RUN, RUN_NOT_FOUND
from clew.diagnostics.codes.trace import DAMAGED_TRACE
from clew.plan import Plan
from clew.plan.steps import OutputStep
from clew.runs.artifacts import ArtifactRef
from clew.runs.events.chain import ChainReport, verify_chain
from clew.runs.events.envelope import StoredEvent
from clew.runs.projector import Projected, Projector
from clew.runs.request import RunFilter, RunRecord
from clew.runs.snapshot import RunSnapshot, StepSnapshot
from clew.trace.layout import Part
from clew.trace.parts_json import part_from_json

PART_KIND, OUTPUT_KIND, DATASET_KIND = "trace-part", "output", "dataset-version"
LOAD_STEP = "load"
_SHORT_ID = 8
_MOST_LISTED = 10_000


@dataclass(frozen=True, slots=True)
class RunView:
    """A run with where it stands."""

    record: RunRecord
    snapshot: RunSnapshot
    plan: Plan | None
    captures: tuple[CaptureRecord, ...] = ()
    """Captures and postlude jobs of the run, with where they stand."""
    plan_problem: Diagnostic | None = None
    """Why there is no plan, where it was kept once and cannot be read any more. What happened is known without it."""

    def to_json(self) -> dict[str, object]:
        """The form of `run --json` and `show --json`."""
        request = self.record.request
        return {
            "run_id": self.record.run_id,
            "status": self.snapshot.status.value,
            "project": request.project_id,
            "project_version": request.project_version,
            "period": request.period,
            "environment": request.environment_id,
            "request_id": request.request_id,
            "requested_by": request.requested_by,
            "retry_of": request.retry_of,
            "started_at": _iso(self.snapshot.started_at),
            "completed_at": _iso(self.snapshot.completed_at),
            "duration_ms": self.snapshot.total_duration_ms,
            "last_completed_operation": _operation(self.snapshot.last_completed_step),
            "rows_loaded": self._rows_loaded(),
            "steps": [_step_json(step) for step in self.snapshot.steps if step.step_id != LOAD_STEP],
            "outputs": self.outputs(),
            "error": self._error_json(),
            "captures": [capture_json(record) for record in self.captures if record.kind == "capture"],
            "postlude_jobs": self.postlude_jobs(),
        }

    def outputs(self) -> list[dict[str, object]]:
        """What the output steps have published."""
        found = list[dict[str, object]]()
        for step in self.snapshot.steps:
            places = [artifact for artifact in step.artifacts if artifact.kind == OUTPUT_KIND]
            for place in places:
                kind, _, where = place.uri.partition(":")
                output: dict[str, object] = {"seq": step.seq, kind: where, "rows": step.counts.get("rows_written", 0)}
                output |= _dataset_of(step.artifacts)
                found.append(output)
        return found

    def postlude_jobs(self) -> list[dict[str, object]]:
        """The jobs that the plan attaches to breakpoints, with what became of them."""
        jobs = self.plan.extensions.postlude_jobs if self.plan else ()
        records = {record.slot: record for record in self.captures if record.kind == "job"}
        return [job_json(job, records.get(job.id)) for job in jobs]

    @property
    def failure(self) -> Diagnostic | None:
        """Why the run failed, at the place of the operation that did."""
        error = self.snapshot.error
        if error is None:
            return None
        code = CATALOGUE.get(error.code)
        hint = error.hint or (code.remedy if code else None)
        return Diagnostic(error.code, error.message, {}, self._failed_place(), hint)

    @property
    def failed_step(self) -> StepSnapshot | None:
        """The step at which the run failed; None where it failed before its first one."""
        return self.snapshot.step(self.snapshot.failed_step) if self.snapshot.failed_step else None

    def _failed_place(self) -> Span | None:
        failed = self.failed_step
        if failed is None or self.plan is None:
            return None
        return next((step.place for step in self.plan.steps if step.seq == failed.seq), None)

    def _error_json(self) -> dict[str, object] | None:
        failure = self.failure
        if failure is None or self.snapshot.error is None:
            return None
        failed = self.failed_step
        return failure.to_json() | {
            "retryable": self.snapshot.error.retryable,
            "step": failed.seq if failed else None,
        }

    def _rows_loaded(self) -> int | None:
        load = self.snapshot.step(LOAD_STEP)
        return load.counts.get("loaded") if load else None


class RunReader:
    """Reads the runs of an environment, or those of one tenant in it: the others do not exist for this reader."""

    def __init__(
        self,
        state: State,
        environment: RunEnvironment,
        *,
        tenant_id: str | None = None,
        plans: PlanReader = kept_plan,
    ) -> None:
        self._plans = plans
        self._state = state
        self._environment = environment
        self._tenant = tenant_id
        self._projector = Projector(
            state.stores.reader, state.stores.writer, state.stores.snapshots, limits=environment.store_limits()
        )

    def find(self, name: str) -> RunRecord:
        """A run by its id, or by the beginning of it. UserError RunNotFound, or AmbiguousRun where several fit."""
        exact = self._exactly(name)
        if exact is not None:
            return exact
        mine = RunFilter(environment_id=self._environment.name, tenant_id=self._tenant)
        found = [
            run for run in self._state.stores.catalog.runs(mine, limit=_MOST_LISTED) if run.run_id.startswith(name)
        ]
        if not found or not name:
            raise UserError(RUN_NOT_FOUND.anywhere(run_id=name))
        if len(found) > 1 and found[0].run_id != name:
            candidates = ", ".join(run.run_id[:_SHORT_ID] for run in found[:5])
            raise UserError(AMBIGUOUS_RUN.anywhere(run_id=name, candidates=candidates))
        return found[0]

    def _exactly(self, name: str) -> RunRecord | None:
        try:
            run = self._state.stores.catalog.run(name)
        except UserError:
            return None
        is_mine = run.request.environment_id == self._environment.name
        return run if is_mine and self._tenant in {None, run.request.tenant_id} else None

    def runs(self, which: RunFilter, limit: int, before: RunRecord | None = None) -> tuple[RunRecord, ...]:
        """Runs, newest first; `before` is the last one of the page before."""
        scoped = which if self._tenant is None else replace(which, tenant_id=self._tenant)
        return self._state.stores.catalog.runs(scoped, limit=limit, before=before)

    def view(self, name: str) -> RunView:
        """A run with where it stands now."""
        record = self.find(name)
        snapshot = self.projected(record.run_id).snapshot
        captures = self._state.captures.of_run(record.run_id)
        digest = record.request.plan.digest
        try:
            plan = self._plans(self._environment.storage_root, digest) if digest else None
        except UserError as error:
            return RunView(record, snapshot, None, captures, error.diagnostic)
        return RunView(record, snapshot, plan, captures)

    def projected(self, run_id: str) -> Projected:
        """Where a run stands by its events so far, and whether one of them is missing."""
        return self._projector.look(run_id)

    def events(self, name: str, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
        """The history of a run."""
        return self._state.stores.reader.events(self.find(name).run_id, after=after, limit=limit)

    def verify(self, name: str) -> ChainReport:
        """Whether every event of a run is still what was stored."""
        run = self.find(name)
        history = self._state.stores.reader.raw_events(run.run_id)
        return verify_chain(history, last_seq=run.last_seq, last_hash=run.last_hash)

    def parts(self, snapshot: RunSnapshot) -> tuple[Part, ...]:
        """What the steps of a run have written and committed."""
        return committed_parts(self._environment.storage_root, snapshot)


def record_to_json(run: RunRecord) -> dict[str, object]:
    """A run as `runs --json` lists it."""
    request = run.request
    return {
        "run_id": run.run_id,
        "status": run.status.value,
        "project": request.project_id,
        "project_version": request.project_version,
        "period": request.period,
        "environment": request.environment_id,
        "request_id": request.request_id,
        "requested_by": request.requested_by,
        "retry_of": request.retry_of,
        "created_at": _iso(run.created_at),
        "started_at": _iso(run.started_at),
        "completed_at": _iso(run.completed_at),
    }


def committed_parts(root: Path, snapshot: RunSnapshot) -> tuple[Part, ...]:
    """The parts that the events of a run name, read from their descriptions. UserError names one that is damaged."""
    return tuple(_described(root, artifact) for artifact in snapshot.artifacts if artifact.kind == PART_KIND)


def readable_parts(root: Path, snapshot: RunSnapshot) -> tuple[list[Part], list[Diagnostic]]:
    """The parts whose descriptions can be read, and what is wrong with the others."""
    parts, problems = list[Part](), list[Diagnostic]()
    for artifact in snapshot.artifacts:
        if artifact.kind == PART_KIND:
            try:
                parts.append(_described(root, artifact))
            except UserError as error:
                problems += error.diagnostics
    return parts, problems


def input_part(root: Path, artifacts: Sequence[ArtifactRef], name: str) -> Part | None:
    """The description of a pinned dataset among what the loading step left behind."""
    for artifact in artifacts:
        path = root / _place(artifact)
        if artifact.kind == PART_KIND and path.parent.name == name and path.is_file():
            return _described(root, artifact)
    return None


def _described(root: Path, artifact: ArtifactRef) -> Part:
    place = _place(artifact)
    try:
        data = json.loads((root / place).read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(DAMAGED_TRACE.anywhere(file=place, problem=_missing(error))) from error
    except ValueError as error:
        raise UserError(DAMAGED_TRACE.anywhere(file=place, problem=f"it is no JSON: {error}")) from error
    return part_from_json(data, place)


def _missing(error: OSError) -> str:
    return "it is gone" if isinstance(error, FileNotFoundError) else error.strerror or str(error)


def _place(artifact: ArtifactRef) -> str:
    return artifact.uri.removeprefix("storage:")


def sources_of(part: Part) -> str:
    """Where a pinned dataset was read from: the file, or how many there were, or the version that Clew keeps."""
    details = part.details or {}
    if details.get("format") == "managed":
        return f"dataset {details.get('dataset')} v{details.get('version')}"
    sources = str(details.get("sources") or "").split("; ")
    return sources[0] if len(sources) == 1 else f"{details.get('format')}, {len(sources)} files"


def output_of(plan: Plan, seq: int | None) -> OutputStep | None:
    """An output step of a plan, the last one where none is named."""
    outputs = [step for step in plan.steps if isinstance(step, OutputStep) and seq in {None, step.seq}]
    return outputs[-1] if outputs else None


def _step_json(step: StepSnapshot) -> dict[str, object]:
    return {
        "seq": step.seq,
        "name": step.name,
        "type": step.type,
        "status": step.status.value,
        "rows_updated": step.counts.get("rows_updated", 0),
        "rows_created": step.counts.get("rows_created", 0),
        "rows_deleted": step.counts.get("rows_deleted", 0),
        "logical_attempt": step.logical_attempt_id,
        "engine_attempt": step.engine_attempt_id,
        "started_at": _iso(step.started_at),
        "completed_at": _iso(step.completed_at),
        "error": {"code": step.error.code, "message": step.error.message} if step.error else None,
    }


def _dataset_of(artifacts: Sequence[ArtifactRef]) -> dict[str, object]:
    for artifact in artifacts:
        if artifact.kind == DATASET_KIND:
            name, _, version = artifact.uri.removeprefix("dataset:").rpartition("@")
            return {"dataset": name, "dataset_version": int(version)}
    return {}


def _operation(step_id: str | None) -> int | None:
    return int(step_id) if step_id is not None and step_id.isdigit() else None


def _iso(moment: object) -> str | None:
    return moment.isoformat() if hasattr(moment, "isoformat") else None
