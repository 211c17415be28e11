"""Groups of steps on Spark: what runs together, what is written, what is counted.

A group is a run of narrow steps with at most one step behind them that writes: an aggregate, an append or an output.
The changes of the narrow steps are one job, the writing step is another, and both run at the same time. They commit
together, in order.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from clew.plan.plan import Plan
from clew.plan.steps import AggregateStep, AppendStep, DeleteStep, OutputStep, Step, UpdateStep
from clew.spark.creating import appended_rows, summary_rows
from clew.spark.joins import require_unique
from clew.spark.narrow import Expressing, NarrowStep, change_columns, mask_columns
from clew.spark.parts import write_part
from clew.spark.publishing import Published, Publisher
from clew.spark.registering import Registrar
from clew.spark.sql import quoted
from clew.spark.working import Progress, Storage, Working, joined_for, rebuild
from clew.trace.layout import ORDINAL, Part, TracedStep

LONGEST_CHAIN = 12
"""Narrow steps on top of each other before the state is written down. Longer chains outgrow the JIT compiler."""

LONGEST_FILTERED_CHAIN = 6
"""Up to here unchanged rows are left out of the changes: the filter copies every step, so it explodes beyond."""


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What a step did."""

    updated: int = 0
    created: int = 0
    deleted: int = 0
    written: int = 0


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step that is done: its counts, and what it has written."""

    seq: int
    counts: StepCounts
    parts: tuple[Part, ...] = ()
    published: Published | None = None


@dataclass(frozen=True, slots=True)
class EngineRun:
    """One run as the engine sees it."""

    run_id: str
    plan: Plan
    period: str
    expressing: Expressing
    storage: Storage
    publisher: Publisher
    registrar: Registrar

    @property
    def folder(self) -> str:
        """The folder of the run below the storage root."""
        return f"runs/{self.run_id}"


def next_group(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps at the beginning of the ones that are left which are done together."""
    group = list[Step]()
    for step in steps:
        group.append(step)
        if not isinstance(step, UpdateStep | DeleteStep) or len(group) >= LONGEST_CHAIN:
            break
    return tuple(group)


def execute(run: EngineRun, group: Sequence[Step], progress: Progress) -> tuple[StepResult, ...]:
    """Do a group of steps and say what it did. Nothing counts until the caller commits it."""
    before = rebuild(
        run.plan, progress, run.period, run.storage, run.expressing, until=_seq_before(run.plan, group[0].seq)
    )
    narrow = [step for step in group if isinstance(step, UpdateStep | DeleteStep)]
    working = before
    for step in narrow:
        working = _apply(run, working, step)
    jobs = list[Callable[[], list[StepResult]]]()
    if narrow:
        jobs.append(lambda: _write_changes(run, working, narrow))
    last = group[-1]
    if isinstance(last, AggregateStep | AppendStep | OutputStep):
        jobs.append(lambda: [_write_step(run, working, last, progress)])
    results = [result for found in _together(jobs) for result in found]
    return tuple(sorted(results, key=lambda result: result.seq))


def _seq_before(plan: Plan, seq: int) -> int:
    return max((step.seq for step in plan.steps if step.seq < seq), default=0)


def _apply(run: EngineRun, working: Working, step: NarrowStep) -> Working:
    joined = joined_for(step, run.storage) if isinstance(step, UpdateStep) else {}
    if isinstance(step, UpdateStep):
        rows = working.rows
        for join in step.joins:
            require_unique(rows, step, join, joined[join.alias], run.expressing)
            if len(step.joins) > 1:
                rows = rows.join(joined[join.alias], F.expr(run.expressing.sql(join.on.tree)), "left")
    return working.after(step, run.expressing, joined)


def _together(jobs: Sequence[Callable[[], list[StepResult]]]) -> list[list[StepResult]]:
    """Run jobs at the same time. The first failure is raised when all have ended."""
    if len(jobs) == 1:
        return [jobs[0]()]
    with ThreadPoolExecutor(max_workers=max(1, len(jobs))) as threads:
        futures = [threads.submit(job) for job in jobs]
    return [future.result() for future in futures]


def _write_changes(run: EngineRun, working: Working, steps: Sequence[NarrowStep]) -> list[StepResult]:
    """Write what narrow steps changed, with the state where the chain has become long."""
    holds_state = working.chain >= LONGEST_CHAIN
    columns = run.plan.columns_after(steps[-1].seq)
    counted, observation = _observed(working.rows, steps)
    change = [quoted(name) for step in steps for name in change_columns(step)]
    if holds_state:
        state = [quoted(column.name) for column in columns] + ["_period", "_labels", "_deleted"]
        rows = counted.select(ORDINAL, *state, *change)
    else:
        rows = counted.select(ORDINAL, *change)
        if working.chain <= LONGEST_FILTERED_CHAIN:
            masks = ", ".join(quoted(name) for step in steps for name in mask_columns(step))
            rows = rows.where(f"coalesce({masks}) IS NOT NULL")
    part = Part(
        kind="changes",
        name=f"{steps[0].seq}-{steps[-1].seq}",
        files=(),
        columns=tuple((column.name, str(column.type)) for column in columns) if holds_state else (),
        seq=steps[-1].seq,
        steps=tuple(_traced(step) for step in steps),
    )
    written = write_part(rows, run.storage.root, f"{run.folder}/changes/{part.name}", part)
    found = observation.get
    results = [StepResult(step.seq, _narrow_counts(step, int(found[f"s{step.seq}"] or 0))) for step in steps]
    return [*results[:-1], replace(results[-1], parts=(written,))]


def _observed(rows: DataFrame, steps: Sequence[NarrowStep]) -> tuple[DataFrame, Observation]:
    """Rows that are counted, step by step, while they are written."""
    observation = Observation()
    counts = [
        F.expr(f"count_if(coalesce({', '.join(map(quoted, mask_columns(step)))}) IS NOT NULL)").alias(f"s{step.seq}")
        for step in steps
    ]
    return rows.observe(observation, *counts), observation


def _narrow_counts(step: NarrowStep, count: int) -> StepCounts:
    return StepCounts(updated=count) if isinstance(step, UpdateStep) else StepCounts(deleted=count)


def _traced(step: NarrowStep) -> TracedStep:
    if isinstance(step, UpdateStep):
        return TracedStep(step.seq, "update", tuple(assignment.column for assignment in step.assignments))
    return TracedStep(step.seq, "delete", ())


def _write_step(
    run: EngineRun, working: Working, step: AggregateStep | AppendStep | OutputStep, progress: Progress
) -> StepResult:
    if isinstance(step, OutputStep):
        published = run.publisher.publish(working.rows, step, run.expressing)
        if step.registers is not None:
            version = run.registrar.register(working.rows, step, run.expressing)
            published = replace(published, dataset=step.registers, dataset_version=version)
        return StepResult(step.seq, StepCounts(written=published.rows), published=published)
    columns = run.plan.columns_after(step.seq)
    if isinstance(step, AggregateStep):
        rows = summary_rows(working.rows, step, run.expressing, columns, run.period)
    else:
        source = run.storage.pinned(step.source)
        rows = appended_rows(source, step, run.expressing, columns, run.period)
    part = Part(
        kind="created",
        name=str(step.seq),
        files=(),
        columns=tuple((column.name, str(column.type)) for column in columns),
        seq=step.seq,
    )
    written = write_part(
        rows, run.storage.root, f"{run.folder}/created/{step.seq}", part, first_ordinal=next_ordinal(progress)
    )
    return StepResult(step.seq, StepCounts(created=sum(file.rows for file in written.files)), parts=(written,))


def next_ordinal(progress: Progress) -> int:
    """The first file ordinal that no part of the run uses."""
    used = [file.ordinal for part in progress.parts for file in part.files if file.ordinal is not None]
    return max(used, default=-1) + 1
