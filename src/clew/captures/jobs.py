"""One postlude job, which the plan runs on the rows at a breakpoint after the run: narrow the rows down, look at them,
write them to files, send these to sinks, all within a budget.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import date, timedelta
from typing import BinaryIO

from clew import budgets
from clew.budgets import Allowance, QuestionLimits
from clew.captures.freezing import Reason
from clew.captures.job_rows import JobRows, Payload, as_parquet
from clew.captures.manifests import Manifest, Places
from clew.captures.policy import CapturePolicy
from clew.captures.queue import CaptureOutcome, CaptureRecord, Emission, EmissionStatus, JobReport, Overtaken
from clew.captures.requests import OmittedColumn
from clew.captures.writing import EndedRun, digest_of_files, in_view
from clew.deferred import dataclass
from clew.definitions import CaptureMode, Mask
from clew.definitions.settings import PersonalColumns
from clew.diagnostics import EngineBug, UserError
from clew.diagnostics.codes.captures import BUDGET_EXCEEDED
from clew.diagnostics.codes.engine import ENGINE_FAILURE
from clew.engine.blame import SPARK_ERRORS
from clew.engine.spark_work import SparkWork
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Value, columns_of
from clew.lang.types import STRING, Type
from clew.plan.postlude import (
    DescribeTask,
    EmitCaptureStoreTask,
    EmitTrainingLogTask,
    FilterTask,
    HistogramTask,
    PostludeJob,
    PostludeTask,
    ProjectTask,
    SampleTask,
    SerializeTask,
    TakeTask,
    TopKTask,
)
from clew.plan.privacy import LABELS
from clew.runs.clock import Clock
from clew.runs.view import RunFacts
from clew.storage.drafts import Draft, attempt_name, draft
from clew.storage.layout import MANIFEST_FILE, worked_on_folder

RUN = "run"


def wants_failed_runs(job: PostludeJob) -> bool:
    """Whether a job looks at the status of the run. Those that do not are only for runs that completed."""
    return job.when is not None and (RUN, "status") in columns_of(job.when.tree)


def is_due(job: PostludeJob, facts: dict[str, Value], count_rows: Callable[[], int], today: date) -> bool:
    """Whether to do a job. Rows are counted only if the condition needs the count."""
    if job.when is None:
        return True
    if (RUN, "rows") in columns_of(job.when.tree):
        facts = {**facts, "rows": count_rows()}
    return evaluator(job.when.tree)(Row({RUN: facts}, today)) is True


@dataclass(slots=True)
class JobRunner:
    """Does one job."""

    places: Places
    policy: CapturePolicy
    view: RunFacts
    ended: EndedRun
    record: CaptureRecord
    job: PostludeJob
    wait_ms: int
    note: Callable[[CaptureOutcome], bool]
    """Records how far the job is; False if another worker has taken it."""
    publish: Callable[[CaptureRecord, Manifest], CaptureRecord]
    """Adds a capture that the job has made. Raises Overtaken."""
    now: Clock
    """By the clock of the state store, which also says what has expired."""
    _started: float = field(default_factory=time.perf_counter)
    _results: list[dict[str, object]] = field(default_factory=list)
    _emissions: list[Emission] = field(default_factory=list)
    _payload: Payload | None = None
    _hidden: dict[str, Mask | None] = field(default_factory=dict)

    def run(self) -> CaptureOutcome:
        """Do the job, or say why not. What earlier attempts have sent stays on record."""
        if self.record.outcome.job is not None:
            self._emissions = list(self.record.outcome.job.emissions)
        base = self.ended.rows_at(self.record.seq)
        with self._within_time():
            if not is_due(self.job, self._facts(), in_view(base).count, self.ended.today):
                return CaptureOutcome(job=self._report(), drop_reason=Reason.WHEN_NOT_TRUE.value)
            self._hidden = self._what_to_hide()
            budget, limits = self.job.budget, self.policy.limits
            rows = JobRows(
                ended=self.ended,
                rows=base,
                types=self._types(),
                hidden=self._hidden,
                begin=self._begin,
                salt=self.places.salt(),
                max_rows=min(budget.max_rows or limits.max_rows, limits.max_rows),
                max_bytes=min(budget.max_bytes or limits.max_bytes, limits.max_bytes),
                may_handle=budget.max_rows,
            )
            try:
                for task in self.job.tasks:
                    budgets.check()
                    self._do(task, rows)
                budgets.check()
            finally:
                rows.discard()
        return CaptureOutcome(job=self._report())

    def _begin(self, name: str) -> Draft:
        return draft(self.places.captures(None), worked_on_folder(self.record.run_id, self.job.id, name))

    def _do(self, task: PostludeTask, rows: JobRows) -> None:
        match task:
            case FilterTask(condition):
                rows.filter(condition)
            case TakeTask(count):
                rows.take(count)
            case SampleTask(count):
                rows.sample(count)
            case ProjectTask(columns):
                rows.project(columns)
            case DescribeTask(columns):
                self._results.append(rows.describe(columns))
            case HistogramTask(column, bins):
                self._results.append(rows.histogram(column, bins))
            case TopKTask(column, count):
                self._results.append(rows.top(column, count))
            case SerializeTask():
                self._payload = rows.serialize(task)
            case EmitTrainingLogTask() | EmitCaptureStoreTask():
                self._emit(task)

    # Sending

    def _emit(self, task: EmitTrainingLogTask | EmitCaptureStoreTask) -> None:
        payload = self._payload
        if payload is None:
            problem = f"{task.task} of {self.job.id} has nothing to send"
            raise EngineBug(ENGINE_FAILURE.anywhere(problem=problem))
        sending = self._training_log if isinstance(task, EmitTrainingLogTask) else self._capture_store
        days = task.ttl_days or self.places.environment.settings.sinks[task.sink].max_ttl_days
        emission, send = sending(payload, task.sink, days)
        self._emissions.append(emission)
        self._note()
        started = time.perf_counter()
        send()
        took = int((time.perf_counter() - started) * 1000)
        self._emissions[-1] = replace(emission, emit_ms=took, status=EmissionStatus.SENT)
        self._note()

    def _note(self) -> None:
        """Before anything is written, and again when it is there: a worker that dies leaves nothing unknown."""
        budgets.check()
        if not self.note(replace(self.record.outcome, job=self._report())):
            raise Overtaken

    def _training_log(self, payload: Payload, sink: str, days: int) -> tuple[Emission, Callable[[], None]]:
        """A file for each emission, under a name that no other attempt has, and beside it what it is."""
        root = self.places.sink(sink, self.view.record.request.project_version)
        name = f"{self.record.run_id}/{self.job.id}-{len(self._emissions)}-{attempt_name()}"
        file = f"{name}{payload.path.suffix}"
        place = self.places.shown(root.below(self.record.run_id))
        manifest = self._manifest(payload, self.record.capture_id, place, days, None)

        def send() -> None:
            with root.create(file) as target, payload.path.open("rb") as source:
                copy_within_budget(source, target)
            root.write_new(f"{name}.json", manifest.to_bytes())

        return self._emission(payload, sink, "training_log", f"{self.places.shown(root)}/{file}", manifest), send

    def _capture_store(self, payload: Payload, sink: str, days: int) -> tuple[Emission, Callable[[], None]]:
        """A capture, which expires by itself."""
        kept = as_parquet(payload)
        new = CaptureRecord(
            kind="capture",
            slot=f"{self.job.id}:{len(self._emissions)}",
            tenant_id=self.record.tenant_id,
            run_id=self.record.run_id,
            request_id=self.record.request_id,
            breakpoint=self.record.breakpoint,
            seq=self.record.seq,
        )
        store = self.places.captures(sink, project_version=self.view.record.request.project_version)
        started = Draft(store, f"{new.capture_id}/{self.record.attempts}-{attempt_name()}")
        shown = self.places.shown(store.below(started.folder))
        manifest = self._manifest(kept, new.capture_id, shown, days, sink)

        def send() -> None:
            with started.create(kept.path.name) as target, kept.path.open("rb") as source:
                copy_within_budget(source, target)
            started.publish(MANIFEST_FILE, manifest.to_bytes())
            self.publish(new, manifest)

        emission = self._emission(kept, sink, "capture_store", shown, manifest)
        return replace(emission, capture_id=new.capture_id), send

    def _emission(self, payload: Payload, sink: str, type_: str, path: str, manifest: Manifest) -> Emission:
        return Emission(
            sink=sink,
            type=type_,
            path=path,
            rows=payload.file.rows,
            size=payload.file.size,
            emit_ms=0,
            expires_at=manifest.expires_at,
            attempt=self.record.attempts,
            status=EmissionStatus.STARTED,
        )

    def _manifest(self, payload: Payload, capture_id: str, folder: str, days: int, sink: str | None) -> Manifest:
        now, request, frozen = self.now(), self.view.record.request, self.record.frozen
        privacy = self.policy.classes(self.ended.plan)
        mode = self._mode(payload)
        return Manifest(
            capture_id=capture_id,
            run_id=self.record.run_id,
            request_id=self.record.request_id,
            environment=self.places.environment.name,
            project=request.project_id,
            period=request.period,
            breakpoint=self.record.breakpoint,
            seq=self.record.seq,
            plan_digest=self.ended.plan.digest,
            mode=mode,
            asked=mode,
            columns=payload.columns,
            left_out=tuple(OmittedColumn(name, privacy[name].upper()) for name in self._left_out()),
            natural_key=self.ended.plan.input.natural_key,
            rows=payload.file.rows,
            size=payload.file.size,
            files=(payload.file,),
            digest=digest_of_files((payload.file,)),
            folder=folder,
            store=sink,
            shows_personal=any(column.mask is None and column.name in privacy for column in payload.columns),
            job_id=self.job.id,
            wait_ms=self.wait_ms,
            attempts=self.record.attempts,
            frozen_at=frozen.ticket.frozen_at if frozen is not None else None,
            freeze_us=frozen.freeze_us if frozen is not None else 0,
            created_at=now,
            expires_at=now + timedelta(days=days),
        )

    def _mode(self, payload: Payload) -> CaptureMode:
        """The mode of a capture that would keep the same: a sample is one, however it was drawn."""
        if any(isinstance(task, SampleTask) for task in self.job.tasks):
            return CaptureMode.SAMPLE_RAW if payload.is_raw else CaptureMode.SAMPLE_VIEW
        return CaptureMode.FULL_RAW if payload.is_raw else CaptureMode.FULL_VIEW

    # What it sees

    def _facts(self) -> dict[str, Value]:
        request = self.view.record.request
        return {
            "project": request.project_id,
            "period": request.period,
            "environment": request.environment_id,
            "mode": self.places.environment.settings.mode.value,
            "status": self.view.snapshot.status.value,
        }

    def _types(self) -> dict[str, Type]:
        columns = {column.name: column.type for column in self.ended.plan.columns_after(self.record.seq)}
        return {**columns, "_period": STRING, LABELS: STRING}

    def _what_to_hide(self) -> dict[str, Mask | None]:
        if self.policy.personal is PersonalColumns.MASK:
            return dict(self.policy.masks(self.ended.plan))
        privacy = self.policy.classes(self.ended.plan)
        shown = self.policy.personal is PersonalColumns.INCLUDE and not self.policy.include_roles
        return {name: None for name, kind in privacy.items() if kind == "secret" or not shown}

    def _left_out(self) -> list[str]:
        return sorted(name for name, mask in self._hidden.items() if mask is None)

    def _report(self) -> JobReport:
        sent = [emission for emission in self._emissions if emission.status is not EmissionStatus.STARTED]
        return JobReport(
            job_id=self.job.id,
            name=self.job.name,
            rows=sum(emission.rows for emission in sent),
            size=sum(emission.size for emission in sent),
            wait_ms=self.wait_ms,
            run_ms=int((time.perf_counter() - self._started) * 1000),
            results=tuple(self._results),
            emissions=tuple(self._emissions),
            left_out=tuple(self._left_out()),
        )

    @contextmanager
    def _within_time(self) -> Iterator[None]:
        """Stop whatever the job does when its time is over: Spark, the database, and Python between two blocks."""
        seconds = self.job.budget.timeout_seconds
        error = UserError(BUDGET_EXCEEDED.anywhere(problem=f"it takes longer than {seconds} seconds"))
        allowance = Allowance(QuestionLimits(deadline_s=math.inf))
        work = SparkWork(self.ended.spark, f"job-{self.record.capture_id}")

        def stop() -> None:
            allowance.stop(error)
            work.interrupt()

        timer = threading.Timer(seconds, stop)
        timer.daemon = True
        try:
            with budgets.under(allowance), work.here():
                timer.start()
                yield
        except SPARK_ERRORS as failure:
            if allowance.is_over:
                raise error from failure
            raise
        finally:
            timer.cancel()


_BLOCK = 1024 * 1024


def copy_within_budget(source: BinaryIO, target: BinaryIO) -> None:
    """Copy a file block by block, as long as the budget at hand allows."""
    while block := source.read(_BLOCK):
        budgets.check()
        target.write(block)
