"""The engine behind a run: what the run loop drives, step by step.

Step "load" pins everything that the plan reads. The others are the steps of the plan, named by their seq.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from typing import Protocol, runtime_checkable

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.engine import TRACE_WRITE_FAILURE
from clew.diagnostics.codes.trace import DAMAGED_TRACE
from clew.diagnostics.file_system import OutOfReach, unavailable
from clew.engine.blame import SPARK_ERRORS, culprit, is_value_error, of_unknown_cause, reads_restricted, translated
from clew.engine.checking import CheckContext, PointWatch, stopped_by
from clew.engine.concluding import check_alerts, concluded
from clew.engine.expressing import Expressing
from clew.engine.joins import UniqueKeys
from clew.engine.names import SYSTEM_TYPES, with_sql
from clew.engine.output.publishing import Publisher
from clew.engine.output.registering import Registrar
from clew.engine.parts import DraftedPart
from clew.engine.session import leaving_active_session
from clew.engine.sharing import require_shared
from clew.engine.spark_work import SparkWork
from clew.engine.sql import spark_type
from clew.engine.step_groups import EngineRun, StepResult, execute, next_group, next_ordinal
from clew.engine.taking_over import TakingOver
from clew.engine.trace_ids import TraceLinking, carrying, read_traced
from clew.engine.windows import ExpandedStep, expand
from clew.engine.working import StepsBehind, Storage, loaded, rebuild
from clew.events.artifacts import dataset_artifact, output_artifact, parts_among
from clew.events.snapshot import RunSnapshot, StepSnapshot, StepStatus
from clew.events.values import LOAD_STEP, ArtifactRef, CheckResult, PlannedStep, Reuse, failure_of
from clew.plan.datasets import DatasetUse
from clew.plan.operations import Step
from clew.plan.plan import Plan
from clew.plan.planned_checks import PlannedCheck
from clew.plan.recorded_controls import recorded_amounts
from clew.runs.alerts import RaisedAlert
from clew.runs.clock import utc_now
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.storage.committed import DescribedPart, committed_part
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, TAKEN_OVER, Part
from clew.storage.quarantine import EMPTIED
from clew.storage.root import StorageRoot
from clew.trace.reader import RunTrace
from clew.trace.reconciliation import Reconciliation, Waterfall, reconcile
from clew.trace.run_parts import periods_of
from clew.trace.run_trace import steps_not_done


class InputPinner(Protocol):
    """Finds and pins the datasets that a plan reads."""

    def pin(self, use: DatasetUse, first_file_ordinal: int) -> DraftedPart:
        """Pin a dataset for the run. What is given counts once it is published and named."""
        ...


@runtime_checkable
class ComparingPinner(Protocol):
    """An input pinner that can tell, without Spark, whether sources are what an earlier run has read."""

    def changed(self, use: DatasetUse, earlier: Part) -> str | None:
        """Why the rows may be others, where `earlier` is what was read then; None if digests say that they are not."""
        ...


@dataclass(frozen=True, slots=True)
class SparkRun:
    """One run and everything that its steps need."""

    spark: SparkSession
    run_id: str
    plan: Plan
    period: str
    storage_root: StorageRoot
    inputs: InputPinner
    publisher: Publisher
    registrar: Registrar
    linking: TraceLinking = field(default_factory=TraceLinking)
    taking_over: TakingOver | None = None
    """What the run takes over from the run that it repeats; None where it repeats none."""
    today: date | None = None
    """What TODAY() means where that is not the day on which the run starts."""


def planned_steps(plan: Plan) -> tuple[PlannedStep, ...]:
    """The steps of a run, loading first."""
    load = PlannedStep(LOAD_STEP, 0, f"Load {plan.input.name}", LOAD_STEP)
    return (load, *(PlannedStep(str(step.seq), step.seq, step.name, step.type) for step in plan.steps))


class SparkExecutor:
    """Executes the steps of one run on Spark."""

    def __init__(self, run: SparkRun) -> None:
        self._run = run
        self._parts: dict[str, Part] = {}
        self._unique = UniqueKeys()
        self._steps = {step.seq: step for step in run.plan.steps}
        self._settled: dict[int, tuple[Waterfall, ...]] = {}
        """What was found about outputs before they were published, by step."""

    @property
    def steps(self) -> Sequence[PlannedStep]:
        """All steps, in order."""
        return planned_steps(self._run.plan)

    @property
    def engine_run_ref(self) -> Mapping[str, object] | None:
        """Spark's application."""
        return {"engine": "spark", "version": self._run.spark.version}

    def group_size(self, remaining: Sequence[PlannedStep]) -> int:
        """Loading is a separate job; narrow steps run together with the writing step that follows them."""
        if remaining[0].step_id == LOAD_STEP:
            return 1
        steps, taking = [self._steps[step.seq] for step in remaining], self._run.taking_over
        if taking is not None:
            taken = taking.taken(steps[0].seq)
            if taken is not None:
                return len(taken.seqs)
            until = (number for number, step in enumerate(steps) if taking.taken(step.seq) is not None)
            steps = steps[: next(until, len(steps))]
        return len(next_group(self._run.plan, steps))

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> Sequence[StepOutput]:
        """Do a group of steps."""
        with leaving_active_session():
            return self._execute(attempts, context)

    def _execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> Sequence[StepOutput]:
        work = SparkWork(self._run.spark, f"clew-{self._run.run_id}")
        with work.here():
            context.cancel.on_cancel(work.interrupt)
            return self._attempt(attempts, context)

    def _attempt(self, attempts: Sequence[StepAttempt], context: StepContext) -> Sequence[StepOutput]:
        try:
            if attempts[0].step.step_id == LOAD_STEP:
                return [self._load(context)]
            group = [self._steps[attempt.step.seq] for attempt in attempts]
            again = any(attempt.logical_attempt_id > 1 for attempt in attempts)
            taken = self._taken_over(group, context)
            if taken is not None:
                return taken
            return self._do(group, context, again=again)
        except SPARK_ERRORS as error:
            context.cancel.check()
            step = self._steps.get(attempts[0].step.seq) if len(attempts) == 1 else None
            raise self._explained(error, step, context.snapshot) from error
        except OutOfReach as error:
            context.cancel.check()
            raise unavailable(error) from error
        except OSError as error:
            context.cancel.check()
            step = self._steps.get(attempts[-1].step.seq)
            if isinstance(error, FileNotFoundError):
                place = step.place if step else None
                raise UserError(DAMAGED_TRACE.at(place, file="the storage root", problem=str(error))) from error
            problem = f"{error.filename or 'storage'}: {error.strerror or error}"
            raise UserError(TRACE_WRITE_FAILURE.at(step.place if step else None, problem=problem)) from error
        except ClewError:
            raise
        except Exception as error:
            if reads_restricted(self._run.plan):
                raise of_unknown_cause(error) from error
            raise

    def look_back(self, snapshot: RunSnapshot) -> None:
        """For a rerun that has loaded before this worker took it: find out what it takes over from here on."""
        taking = self._run.taking_over
        parts = self._committed(snapshot) if taking is not None else []
        if taking is not None and parts:
            taking.decide(parts, self.progress(snapshot).skipped, self._expressing(snapshot).today)

    def expand_windows(self, snapshot: RunSnapshot) -> list[ExpandedStep]:
        """Derive the source rows of the summaries of a run that has ended, where the run deferred that."""
        return list(expand(self._engine_run(snapshot), self.progress(snapshot)))

    def conclude(self, snapshot: RunSnapshot) -> list[RaisedAlert]:
        """Compare what came in with what went out, in rows and control totals. Reads the trace, without Spark.

        Outputs that this worker has compared before it published them are not compared again.
        """
        stopped = stopped_by(snapshot.checks, self._run.plan)
        if stopped is not None:
            raise stopped
        not_done = steps_not_done(self._run.plan, snapshot)
        settled = [each for seq, found in self._settled.items() if seq not in not_done for each in found]
        wanted = {step.seq for step in self._run.plan.outputs} - self._settled.keys()
        found = self._reconciled(snapshot, self._committed(snapshot), wanted) if wanted else ()
        alerts = concluded(Reconciliation(self._run.run_id, (*settled, *found)), self._run.plan)
        return [*alerts, *check_alerts(snapshot.checks)]

    def _refusal(self, context: StepContext, parts: Sequence[Part], results: Sequence[StepResult]) -> UserError | None:
        """Why the output at the end of a group must not be published: what came in is not what would go out."""
        snapshot = with_results(context.all_steps(), self._run.plan, {each.seq: each for each in results})
        seq, new = results[-1].seq, [described.part for each in results for described in each.parts]
        found = self._reconciled(snapshot, [*parts, *new], {seq})
        try:
            concluded(Reconciliation(self._run.run_id, found), self._run.plan)
        except UserError as error:
            return error
        self._settled[seq] = found
        return None

    def _reconciled(
        self, snapshot: RunSnapshot, parts: Sequence[Part], outputs: Collection[int]
    ) -> tuple[Waterfall, ...]:
        run = self._run
        trace = RunTrace(
            root=run.storage_root,
            run_id=run.run_id,
            plan=run.plan,
            parts=tuple(parts),
            period=run.period,
            today=self._today(snapshot),
            not_done=steps_not_done(run.plan, snapshot),
        )
        try:
            return reconcile(trace, snapshot, outputs=outputs).waterfalls
        except OutOfReach as error:
            raise unavailable(error) from error
        finally:
            trace.close()

    def close(self) -> None:
        """Nothing is held: the session belongs to the process."""

    def _load(self, context: StepContext) -> StepOutput:
        """Pin every dataset that the plan reads, the input first, each once."""
        require_shared(self._run.spark, self._run.storage_root, self._run.run_id)
        taking = self._run.taking_over
        pinned, reasons = list[DescribedPart](), list[str]()
        ordinal = taking.earlier.next_ordinal if taking is not None else 0
        for use in datasets_of(self._run.plan):
            found, reason = self._pin_or_take(use, ordinal)
            ordinal += sum(len(each.part.files) for each in found if each.part.kind == "input")
            pinned += found
            reasons += [f"{use.name}: {reason}"] if reason is not None else []
        rows = pinned[0].part.counted
        done = StepOutput.success(*(each.artifact for each in pinned), loaded=rows, **_not_as_read(pinned))
        done = replace(done, checks=self._checked_at_load(pinned))
        if taking is None:
            return done
        parts = [each.part for each in pinned]
        taking.decide(parts, (), self._expressing(context.snapshot).today)
        is_used = any((part.details or {}).get(TAKEN_OVER) for part in parts)
        return replace(done, reuse=Reuse(taking.earlier.run_id if is_used else None, "; ".join(reasons) or None))

    def _pin_or_take(self, use: DatasetUse, ordinal: int) -> tuple[list[DescribedPart], str | None]:
        """Pin a dataset, or take it over from an earlier run. Also why not, where there is one."""
        taking, inputs = self._run.taking_over, self._run.inputs
        if taking is None:
            return self._pin(use, ordinal), None
        reason = taking.differs(use)
        if reason is not None:
            return self._pin(use, ordinal), reason
        if taking.looks_again:
            reason = "its sources have no digests"
            if isinstance(inputs, ComparingPinner):
                reason = inputs.changed(use, taking.input(use))
            if reason is not None:
                drafted = inputs.pin(use, ordinal)
                if not taking.is_same(use, [drafted.part, *(each.part for each in drafted.beside)]):
                    return self._published(use, drafted), reason
                drafted.abandon()
        return taking.take_input(use), None

    def _checked_at_load(self, pinned: Sequence[DescribedPart]) -> tuple[CheckResult, ...]:
        """The checks of datasets that are joined or appended; those of the input too if no step ever reads it."""
        plan, parts = self._run.plan, {each.part.name: each.part for each in pinned}

        def rows_of(use: DatasetUse) -> DataFrame:
            return pinned_rows(self._run.spark, self._run.storage_root, parts[use.key], use)

        today = self._run.today or utc_now().date()
        context = CheckContext(self._run.run_id, plan, Expressing(self._run.run_id, plan.input.table, today), rows_of)
        found = list[CheckResult]()
        if not plan.steps:
            rows = loaded(rows_of(plan.input), plan, self._run.period).rows
            found += PointWatch(context, [check for check in plan.checks if not check.of_dataset]).results(rows)
        by_dataset = dict[str, list[PlannedCheck]]()
        taking = self._run.taking_over
        taken = {name for name, part in parts.items() if (part.details or {}).get(TAKEN_OVER)}
        for check in plan.checks:
            if check.of_dataset and check.dataset is not None:
                known = taking.answer_at_load(check, taken) if taking is not None else None
                if known is not None:
                    found.append(known)
                    continue
                by_dataset.setdefault(check.dataset.key, []).append(check)
        for checks in by_dataset.values():
            use = checks[0].dataset
            assert use is not None  # noqa: S101 - collected above
            found += PointWatch(context, checks).results(rows_of(use))
        return tuple(found)

    def _pin(self, use: DatasetUse, first_file_ordinal: int) -> list[DescribedPart]:
        """Pin a dataset. Rows that join the working dataset get trace ids, unless they carry them already."""
        return self._published(use, self._run.inputs.pin(use, first_file_ordinal))

    def _published(self, use: DatasetUse, drafted: DraftedPart) -> list[DescribedPart]:
        beside = [each.publish() for each in drafted.beside]
        if not joins_working_dataset(use, self._run.plan):
            return [drafted.publish(), *beside]
        identified = self._run.linking.identified(carrying(drafted.part, self._run.storage_root))
        described = replace(drafted, part=identified).publish()
        self._run.linking.publish(self._run.run_id, [identified])
        return [described, *beside]

    def _read_anew(self, group: Sequence[Step], snapshot: RunSnapshot) -> RunSnapshot:
        """Pin again what the steps look up or append, as far as no step that counts has read it.

        A step is retried after its cause was corrected, which may have been this very data. What was pinned anew counts
        for the steps at once, and for the run when the first of them commits and names it.
        """
        done = {step.seq for step in snapshot.steps if step.status is StepStatus.SUCCESS}
        seen = {use.key for step in self._run.plan.steps if step.seq in done for use in datasets_of_step(step)}
        seen.add(self._run.plan.input.key)
        for use in [use for step in group for use in datasets_of_step(step)]:
            if use.key not in seen:
                seen.add(use.key)
                pinned = self._pin(use, next_ordinal(self.progress(snapshot)))
                new = (each.artifact for each in pinned)
                snapshot = replace(snapshot, artifacts=(*snapshot.artifacts, *new))
                self._unique = UniqueKeys()
                if self._run.taking_over is not None:
                    self._run.taking_over.forget()
        return snapshot

    def _taken_over(self, group: Sequence[Step], context: StepContext) -> list[StepOutput] | None:
        """Take over what an earlier run has done in these steps; None if they have to be computed."""
        taking = self._run.taking_over
        taken = taking.taken(group[0].seq) if taking is not None else None
        if taking is None or taken is None or taken.seqs != tuple(step.seq for step in group):
            return None
        due = self._due(context, group[-1].seq)
        answers = taking.answers(due)
        if answers is None:
            taking.forget()
            return None
        context.cancel.check()
        described = taking.take(taken, next_ordinal(self.progress(context.snapshot)))
        here, reuse = set(taken.seqs), Reuse(taking.earlier.run_id)
        outputs = list[StepOutput]()
        for step in group:
            is_first = step.seq == taken.seqs[0]
            found = [each for each in answers if each.at == step.seq or (is_first and each.at not in here)]
            counts = taking.counts(step.seq)
            quarantined = self._quarantined(step.seq, counts.get("rows_deleted", 0))
            artifacts = [described.artifact] if step.seq == taken.seqs[-1] else []
            done = StepOutput.success(*artifacts, **counts)
            outputs.append(replace(done, checks=(*quarantined, *found), reuse=reuse))
        return outputs

    def _do(self, group: Sequence[Step], context: StepContext, *, again: bool) -> list[StepOutput]:
        stopped = stopped_by(context.all_steps().checks, self._run.plan) if self._run.plan.checks else None
        if stopped is not None:
            return [StepOutput.failed(failure_of(stopped))]
        before = len(context.snapshot.artifacts)
        snapshot = self._read_anew(group, context.snapshot) if again else context.snapshot
        progress = self.progress(snapshot)
        engine_run = replace(
            self._engine_run(snapshot),
            lease=context.lease,
            fence=context.fence,
            due=self._due(context, group[-1].seq),
            settle=lambda results: self._refusal(context, progress.parts, results),
        )
        results = execute(engine_run, group, progress)
        parts = [described.part for result in results for described in result.parts]
        self._run.linking.publish(self._run.run_id, parts)
        pinned_anew = snapshot.artifacts[before:]
        return [self._output(result, pinned_anew if result is results[0] else ()) for result in results]

    def _output(self, result: StepResult, pinned_anew: Sequence[ArtifactRef]) -> StepOutput:
        if result.refusal is not None:
            return StepOutput.failed(failure_of(result.refusal), result.checks)
        artifacts = [*pinned_anew, *(described.artifact for described in result.parts)]
        if result.published is not None:
            published = result.published
            digest = published.digest
            artifacts.append(
                output_artifact(
                    table=published.table,
                    path=published.path,
                    sha256=digest.sha256 if digest is not None else None,
                    size=digest.size if digest is not None else None,
                )
            )
            version = published.registered
            if version is not None:
                artifacts.append(dataset_artifact(version.dataset, version.version, version.digest, version.size))
        checks = (*self._quarantined(result.seq, result.counts.deleted), *result.checks)
        amounts = recorded_amounts(self._run.plan, result.amounts)
        done = replace(StepOutput.success(*artifacts, **counts_of(result)), amounts=amounts, checks=checks)
        taking = self._run.taking_over
        return done if taking is None else replace(done, reuse=Reuse(reason=taking.reason(result.seq)))

    def _due(self, context: StepContext, until: int) -> tuple[PlannedCheck, ...]:
        """The checks up to a step that no step has recorded; those that quarantine are steps themselves."""
        if not self._run.plan.checks:
            return ()
        recorded = {(each.name, each.at) for each in context.all_steps().checks}
        return tuple(
            check
            for check in self._run.plan.checks
            if check.at <= until and check.quarantined_by is None and (check.name, check.at) not in recorded
        )

    def _quarantined(self, seq: int, deleted: int) -> Iterator[CheckResult]:
        """What a check found whose rows a step has deleted."""
        for check in self._run.plan.checks:
            if check.quarantined_by == seq:
                message = f"{deleted:,} rows are quarantined: {check.text}" if deleted else ""
                yield CheckResult(check.name, check.kind, check.severity, seq, deleted == 0, deleted, message=message)

    def _explained(self, error: Exception, step: Step | None, snapshot: RunSnapshot) -> ClewError:
        if step is not None and is_value_error(error):
            before = max((seq for seq in self._steps if seq < step.seq), default=0)
            working = rebuild(
                self._run.plan,
                self.progress(snapshot),
                self._run.period,
                self._storage(snapshot),
                self._expressing(snapshot),
                until=before,
            )
            found = culprit(working, step, self._run.plan, self._storage(snapshot), self._expressing(snapshot))
            if found is not None:
                return found
        return translated(error, step, self._run.plan)

    # What a run has committed

    def progress(self, snapshot: RunSnapshot) -> StepsBehind:
        """What the run has done so far, from its history."""
        skipped = frozenset(step.seq for step in snapshot.steps if step.status is StepStatus.SKIPPED)
        return StepsBehind(tuple(self._committed(snapshot)), skipped)

    def _committed(self, snapshot: RunSnapshot) -> list[Part]:
        return [self._part(artifact) for artifact in parts_among(snapshot.artifacts)]

    def _part(self, artifact: ArtifactRef) -> Part:
        if artifact.uri not in self._parts:
            self._parts[artifact.uri] = committed_part(self._run.storage_root, artifact)
        return self._parts[artifact.uri]

    def _engine_run(self, snapshot: RunSnapshot) -> EngineRun:
        return EngineRun(
            run_id=self._run.run_id,
            plan=self._run.plan,
            period=self._run.period,
            expressing=self._expressing(snapshot),
            storage=self._storage(snapshot),
            publisher=self._run.publisher,
            registrar=self._run.registrar,
            unique=self._unique,
            linking=self._run.linking,
        )

    def _expressing(self, snapshot: RunSnapshot) -> Expressing:
        return Expressing(self._run.run_id, self._run.plan.input.table, self._today(snapshot))

    def _today(self, snapshot: RunSnapshot) -> date:
        """TODAY() is the day on which the run started, however often it is resumed, or the day that it goes back to."""
        return self._run.today or (snapshot.started_at or utc_now()).date()

    def _storage(self, snapshot: RunSnapshot) -> Storage:
        return Storage(self._run.spark, self._run.storage_root, self._pinned(snapshot))

    def _pinned(self, snapshot: RunSnapshot) -> Callable[[DatasetUse], DataFrame]:
        inputs = {part.name: part for part in self._committed(snapshot) if part.kind == "input"}

        def pinned(use: DatasetUse) -> DataFrame:
            return pinned_rows(self._run.spark, self._run.storage_root, inputs[use.key], use)

        return pinned


def _not_as_read(pinned: Sequence[DescribedPart]) -> dict[str, int]:
    """What loading has left out or emptied, in all datasets; nothing where it has not."""
    emptied = [(each.part.details or {}).get(EMPTIED) for each in pinned]
    counts = {
        "quarantined": sum(each.part.counted for each in pinned if each.part.kind == "quarantine"),
        "values_emptied": sum(count for count in emptied if isinstance(count, int)),
    }
    return {name: count for name, count in counts.items() if count}


def counts_of(result: StepResult) -> dict[str, int]:
    """What a step counted, as events name it."""
    counts = result.counts
    left_out = {} if counts.left_out is None else {"rows_left_out": counts.left_out}
    return {
        "rows_updated": counts.updated,
        "rows_created": counts.created,
        "rows_deleted": counts.deleted,
        "rows_written": counts.written,
        **left_out,
    }


def with_results(snapshot: RunSnapshot, plan: Plan, results: Mapping[int, StepResult]) -> RunSnapshot:
    """The state that a run will have once the results of steps are committed."""
    others = tuple(step for step in snapshot.steps if step.step_id == LOAD_STEP or step.seq not in results)
    done = tuple(
        StepSnapshot(
            str(step.seq),
            step.seq,
            step.name,
            step.type,
            StepStatus.SUCCESS,
            counts=counts_of(results[step.seq]),
            amounts=results[step.seq].amounts,
            checks=results[step.seq].checks,
        )
        for step in plan.steps
        if step.seq in results
    )
    return replace(snapshot, steps=(*others, *done))


def pinned_rows(spark: SparkSession, root: StorageRoot, part: Part, use: DatasetUse) -> DataFrame:
    """The rows of a pinned dataset, deleted ones among them, with system columns, source, ordinal and trace id.

    `_period` is NULL where rows have none. Only rows of registered datasets have labels and can be deleted.
    """
    columns = [(column.name, spark_type(column.type)) for column in use.columns if column.name != "_period"]
    columns += [("_period", "STRING"), (SOURCE_FILE, "STRING"), (SOURCE_LINE, "BIGINT")]
    is_registered = (part.details or {}).get("format") == "managed"
    system = ("_labels", "_deleted")
    rows = read_traced(spark, root, part, [*columns, *((name, SYSTEM_TYPES[name]) for name in system if is_registered)])
    rows = with_sql(rows, initial_state(is_registered=is_registered))
    periods = periods_of(part, use)
    return rows if periods is None else rows.where(F.col("_period").isin(sorted(periods)))


def initial_state(*, is_registered: bool) -> dict[str, str]:
    """The SQL of labels and deletion as rows are loaded; older registered files have neither."""
    if not is_registered:
        return {"_labels": "''", "_deleted": "FALSE"}
    return {"_labels": "coalesce(`_labels`, '')", "_deleted": "coalesce(`_deleted`, FALSE)"}


def datasets_of(plan: Plan) -> list[DatasetUse]:
    """Every dataset that a plan reads, the input first, each once."""
    uses = dict[str, DatasetUse]()
    for use in plan.datasets_read:
        uses.setdefault(use.key, use)
    return list(uses.values())


def joins_working_dataset(use: DatasetUse, plan: Plan) -> bool:
    """Whether rows of a dataset become rows of the working dataset, or are summed up into such."""
    return use.key in {each.key for each in plan.datasets_becoming_rows}


def datasets_of_step(step: Step) -> list[DatasetUse]:
    """The datasets that a step looks up in or appends."""
    return [each.use for each in step.datasets]
