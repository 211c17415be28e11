"""Groups of steps on Spark: what runs together, what is written, what is counted.

A group is a run of narrow steps followed by at most one step that writes: an aggregate, an append or an output;
or rows that are created and the output that follows. A step that looks at several rows at once ends its group, and what
it gives is stored with all rows, so that nothing after it computes it again.

The changes of the narrow steps are one job, the writing is
another, and both run at the same time. They commit together, in order; an output is published when both have succeeded.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field, replace

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.engine.blame import SPARK_ERRORS, is_value_error
from clew.engine.checking import CheckContext, CheckWatches, stopped_by
from clew.engine.conditions import equality_keys
from clew.engine.conserving import rows_of, rows_of_output
from clew.engine.counting import require_rows
from clew.engine.creating import chosen_rows, written_rows
from clew.engine.expressing import Expressing
from clew.engine.joins import JoinChecks, UniqueKeys
from clew.engine.operations import joined_for, new_rows
from clew.engine.operations.output import has_all_that
from clew.engine.output.files import Further
from clew.engine.output.publishing import Published, Publisher
from clew.engine.output.registering import Register, Registrar
from clew.engine.output_totals import Amounts, OutputTotals, OutputWatch
from clew.engine.parts import FEW_ROWS, given_count, with_short_decimals, write_part
from clew.engine.spark_internals import select_sql
from clew.engine.spark_work import for_another_thread
from clew.engine.sql import quoted
from clew.engine.trace_ids import TraceLinking, lineage_of
from clew.engine.working import StepsBehind, Storage, Working, created_rows, rebuild
from clew.events.values import CheckResult
from clew.plan.operations import ChangingStep, CreatingStep, OutputStep, Step
from clew.plan.plan import Plan
from clew.plan.planned_checks import PlannedCheck
from clew.plan.privacy import privacy_by_column
from clew.runs.leases import Lease
from clew.storage.committed import DescribedPart
from clew.storage.layout import part_folder
from clew.storage.parts import LINEAGE, ORDINAL, TRACE_ID, Part, TracedStep, change_columns, mask_columns
from clew.storage.root import StorageRoot

LONGEST_CHAIN = 12
"""Narrow steps on top of each other before the state is written down. Longer chains outgrow the JIT compiler."""

_BARRIER = "__barrier"
"""A column that is not the same for the same row, so that Spark takes no filter past the steps below it."""


@dataclass(frozen=True, slots=True)
class StepCounts:
    """What a step did."""

    updated: int = 0
    created: int = 0
    deleted: int = 0
    written: int = 0
    left_out: int | None = None
    """Rows that the selector of an output does not take; None where it has none."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """A step that is done: its counts, and what it has written."""

    seq: int
    counts: StepCounts
    parts: tuple[DescribedPart, ...] = ()
    published: Published | None = None
    amounts: Amounts = field(default_factory=dict)
    """What Spark added up for control totals while it wrote an output."""
    refusal: UserError | None = None
    """Why an output was not published, although it could be written."""
    checks: tuple[CheckResult, ...] = ()
    """What checks found in the rows before or after it."""


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
    unique: UniqueKeys = field(default_factory=UniqueKeys)
    linking: TraceLinking = field(default_factory=TraceLinking)
    lease: Lease | None = None
    """The right to drive the run; None where nobody else can, such as in scenarios."""
    fence: Callable[[], None] = lambda: None
    """Raises where another worker has taken the run: asked before anything is made visible outside the run."""
    due: tuple[PlannedCheck, ...] = ()
    """The checks that have not been decided yet, and that the group comes to."""
    settle: "Callable[[Sequence[StepResult]], UserError | None]" = lambda _results: None
    """Why an output must not be published, given what the steps of its group did, the output last; None if it may."""


def next_group(plan: Plan, steps: Sequence[Step]) -> tuple[Step, ...]:
    """The first of the remaining steps that run together."""
    group = list[Step]()
    chain = _chain_before(plan, steps[0].seq)
    for step in steps:
        group.append(step)
        chain += 1
        if not isinstance(step, ChangingStep) or step.is_wide or chain >= LONGEST_CHAIN:
            break
    if isinstance(group[-1], CreatingStep):
        group += [step for step in steps[len(group) : len(group) + 1] if isinstance(step, OutputStep)]
    return tuple(group)


def _chain_before(plan: Plan, seq: int) -> int:
    """How many narrow steps are on top of what is written before a step, where every group went well."""
    chain = 0
    for step in plan.steps:
        if step.seq < seq and isinstance(step, ChangingStep):
            chain = 0 if step.is_wide else (chain + 1) % LONGEST_CHAIN
    return chain


def execute(run: EngineRun, group: Sequence[Step], progress: StepsBehind) -> tuple[StepResult, ...]:
    """Do a group of steps and say what it did. Nothing counts until the caller commits it."""
    before = _before(run, group[0], progress)
    narrow = [step for step in group if isinstance(step, ChangingStep)]
    watches = _watches(run, progress, before)
    chain = _Chain(run, progress, before, watches)
    for step in narrow:
        chain.add(step)
    write = _writer(run, chain.working, group, progress, watches)
    if write is None:
        return tuple(_with_checks(chain.write(narrow), watches.decided()))
    if not narrow:
        return _published(run, write(), progress, (), watches)
    with ThreadPoolExecutor(max_workers=1) as threads:
        writing = threads.submit(for_another_thread(run.storage.spark, write))
        try:
            changes = _with_checks(chain.write(narrow), watches.decided(narrow[-1].seq))
        except BaseException:
            writing.add_done_callback(_discard)
            raise
    return (*changes, *_published(run, writing.result(), progress, changes, watches))


def _watches(run: EngineRun, progress: StepsBehind, before: Working) -> CheckWatches:
    """What watches the rows for the checks that are due. Those of steps that were skipped look at what was before."""
    context = CheckContext(run.run_id, run.plan, run.expressing, run.storage.pinned)
    watches = CheckWatches(context, run.due)
    for seq in watches.seqs_until(before.seq):
        is_here = seq == before.seq
        rows = (
            before.rows
            if is_here
            else rebuild(run.plan, progress, run.period, run.storage, run.expressing, until=seq).rows
        )
        watches.found(seq, rows)
    return watches


def _with_checks(results: Sequence[StepResult], found: Sequence[CheckResult]) -> list[StepResult]:
    """Results of steps with what checks found: at the step that they look at, else at the first."""
    here = {result.seq for result in results}
    by_step = dict[int, list[CheckResult]]()
    for each in found:
        by_step.setdefault(each.at if each.at in here else results[0].seq, []).append(each)
    return [
        replace(result, checks=(*result.checks, *by_step.get(result.seq, ()))) if result.seq in by_step else result
        for result in results
    ]


def _published(
    run: EngineRun,
    written: "_Written",
    progress: StepsBehind,
    changes: Sequence[StepResult],
    watches: CheckWatches,
) -> tuple[StepResult, ...]:
    """Make what was written visible, if it is complete, its totals tie and the run is still this worker's.

    If totals do not tie, the steps before the output have done their work, and only the output has not.
    """
    refusal: UserError | None = None
    try:
        found = watches.decided()
        if written.output is not None:
            refusal = stopped_by([*(check for each in changes for check in each.checks), *found], run.plan)
        if written.output is not None and refusal is None:
            step, rows = written.output
            new = [described.part for result in (*changes, *written.created) for described in result.parts]
            expected = rows_of_output(run.plan, run.storage.root, [*progress.parts, *new], step)
            if expected is not None and rows is not None:
                place = f'the output of step {step.seq} "{step.name}"'
                require_rows(rows, expected, place=place, told_by="the working dataset has")
            if rows is not None:
                refusal = run.settle([*changes, *written.created, written.told(rows)])
        run.fence()
    except BaseException:
        written.discard()
        raise
    if refusal is None:
        return tuple(_with_checks(written.publish(), found))
    written.discard()
    return tuple(_with_checks([*written.created, StepResult(written.seq, StepCounts(), refusal=refusal)], found))


def _before(run: EngineRun, step: Step, progress: StepsBehind) -> Working:
    until = max((each.seq for each in run.plan.steps if each.seq < step.seq), default=0)
    return rebuild(run.plan, progress, run.period, run.storage, run.expressing, until=until)


class _Chain:
    """Narrow steps on top of each other, whose joins must not double rows.

    Where the joined side alone does not tell, the rows that come out are counted: a left join loses none, so more rows
    than there were before means that one was doubled. That costs little, but does not say which; so only then do the
    steps look for it, one after the other.
    """

    def __init__(self, run: EngineRun, progress: StepsBehind, before: Working, watches: CheckWatches) -> None:
        inputs = {part.name: part for part in progress.parts if part.kind == "input"}
        self._run = run
        private = frozenset(privacy_by_column(run.plan))
        self._checks = JoinChecks(run.storage.root, inputs, run.unique, run.expressing, private)
        self._expected = rows_of(run.plan, progress.parts)
        self._is_small = _is_small(progress)
        self._doubtful = list[tuple[ChangingStep, Working, Mapping[str, DataFrame]]]()
        self.working = before
        self._before = before
        self._watches = watches
        self._joined = list[tuple[ChangingStep, Mapping[str, DataFrame]]]()

    def add(self, step: ChangingStep) -> None:
        """Add a step."""
        joined = joined_for(step, self._run.storage.pinned)
        by_more_than_keys = [join for join in step.lookups if equality_keys(join.on.tree, join.alias) is None]
        safe = all(self._checks.cannot_double(join, joined[join.alias]) for join in step.lookups)
        if not safe and (self._expected is None or len(by_more_than_keys) < len(step.lookups)):
            self._checks.require(self.working.rows, step, joined)
        elif not safe:
            self._doubtful.append((step, self.working, joined))
        self.working = self.working.after(step, self._run.expressing, joined)
        self._joined.append((step, joined))
        self._watches.found(step.seq, self.working.rows)

    def _watched(self) -> Working:
        """The same rows, watched for checks on the way. Spark counts what it sees once, so each attempt starts anew."""
        seqs = [self._before.seq, *(step.seq for step, _ in self._joined)]
        if not self._watches.watch_any(seqs):
            return self.working
        self._watches.forget(seqs)
        working = replace(self._before, rows=self._watches.watched(self._before.seq, self._before.rows))
        for step, joined in self._joined:
            after = working.after(step, self._run.expressing, joined)
            working = replace(after, rows=self._watches.watched(step.seq, after.rows))
        return working

    def write(self, steps: Sequence[ChangingStep]) -> list[StepResult]:
        """Write what the steps changed."""
        observation = Observation() if self._doubtful else None

        def working() -> Working:
            watched = self._watched()
            return watched if observation is None else _counted(watched, observation)

        try:
            may_repeat = observation is None
            results = _write_changes(self._run, working, steps, is_small=self._is_small, may_repeat=may_repeat)
        except SPARK_ERRORS:
            self._find_doubled()
            raise
        rows = int(observation.get["rows"]) if observation is not None else _rows_of_state(results)
        if self._expected is not None and rows not in {None, self._expected}:
            self._find_doubled()
            place = f"what steps {steps[0].seq} to {steps[-1].seq} leave behind"
            require_rows(rows or 0, self._expected, place=place, told_by="what went into them has")
        return results

    def _find_doubled(self) -> None:
        for step, working, joined in self._doubtful:
            self._checks.require(working.rows, step, joined)


def _counted(working: Working, observation: Observation) -> Working:
    return replace(working, rows=working.rows.observe(observation, F.count(F.lit(1)).alias("rows")))


def _rows_of_state(results: Sequence[StepResult]) -> int | None:
    """How many rows the state has that steps wrote down; None where they wrote what they changed only."""
    states = [described.part for result in results for described in result.parts if described.part.columns]
    return sum(file.rows for part in states for file in part.files) if states else None


def _is_small(progress: StepsBehind) -> bool:
    """Whether no step can write many rows: none makes more of them than there are in all that was read and created."""
    return sum(file.rows for part in progress.parts if part.kind != "changes" for file in part.files) <= FEW_ROWS


def _discard(writing: "Future[_Written]") -> None:
    if writing.exception() is None:
        writing.result().discard()


def _write_changes(
    run: EngineRun, make: Callable[[], Working], steps: Sequence[ChangingStep], *, is_small: bool, may_repeat: bool
) -> list[StepResult]:
    """Write what narrow steps changed, with the state where the chain has become long or a step saw several rows.

    The job may be repeated where nothing is counted on the way that cannot be counted anew.
    """
    working = make()
    holds_state = working.chain >= LONGEST_CHAIN or steps[-1].is_wide
    columns = run.plan.columns_after(steps[-1].seq)
    trace = [TracedStep(step.seq, step.traced_as, tuple(each.column for each in step.assigned)) for step in steps]
    change = [quoted(name) for step in trace for name in change_columns(step)]

    def changes(working: Working) -> DataFrame:
        if holds_state:
            state = [quoted(column.name) for column in columns] + ["_period", "_labels", "_deleted", TRACE_ID]
            return select_sql(working.rows, [ORDINAL, *state, *change])
        rows = select_sql(working.rows, [ORDINAL, *change])
        return rows if any(_is_for_every_row(step) for step in steps) else _changed_rows(rows, trace)

    part = Part(
        kind="changes",
        name=f"{steps[0].seq}-{steps[-1].seq}",
        files=(),
        columns=tuple((column.name, str(column.type)) for column in columns) if holds_state else (),
        seq=steps[-1].seq,
        steps=tuple(trace),
    )
    written = _write_rows_of_changes(
        run, changes(working), lambda: changes(make()), part, is_small=is_small, may_repeat=may_repeat
    )
    results = [StepResult(step.seq, _narrow_counts(run.storage.root, written.part, step)) for step in trace]
    return [*results[:-1], replace(results[-1], parts=(written,))]


def _changed_rows(rows: DataFrame, steps: Sequence[TracedStep]) -> DataFrame:
    """The rows that a step changed. Below the steps the filter would calculate all of them once more for itself."""
    is_changed = " OR ".join(f"{quoted(name)} IS NOT NULL" for step in steps for name in _telling_columns(step))
    marked = rows.withColumns({_BARRIER: F.spark_partition_id()})
    return marked.where(f"({is_changed}) AND {_BARRIER} >= 0").drop(_BARRIER)


def _telling_columns(step: TracedStep) -> list[str]:
    """The fewest columns of a step of which one has a value where it changed a row."""
    return change_columns(step) if len(step.columns) == 1 else mask_columns(step)


def _write_rows_of_changes(
    run: EngineRun,
    rows: DataFrame,
    again: Callable[[], DataFrame],
    part: Part,
    *,
    is_small: bool,
    may_repeat: bool,
) -> DescribedPart:
    """Write changes with short decimals, and again with long ones in the rare case that a value needs them."""
    folder = part_folder(run.run_id, part.kind, part.name)
    short = with_short_decimals(rows, part.steps) if may_repeat and not is_small else None
    if short is not None:
        try:
            return write_part(short, run.storage.root, folder, part, is_small=is_small)
        except SPARK_ERRORS as error:
            if not is_value_error(error):
                raise
            rows = again()
    return write_part(rows, run.storage.root, folder, part, is_small=is_small)


def _is_for_every_row(step: ChangingStep) -> bool:
    """Whether a step changes next to every row, so that looking for rows without a change costs more than it saves."""
    return step.selector is None


def _narrow_counts(root: StorageRoot, part: Part, step: TracedStep) -> StepCounts:
    """How many rows a step changed. Of a single assignment a row has a value or a mask, never both."""
    columns = _telling_columns(step)
    apart = [[name] for name in columns] if len(step.columns) <= 1 else [columns]
    count = sum(given_count(root, part, each) for each in apart)
    return StepCounts(updated=count) if step.kind == "update" else StepCounts(deleted=count)


@dataclass(frozen=True, slots=True)
class _Written:
    """What the steps at the end of a group have written to staging."""

    publish: Callable[[], tuple[StepResult, ...]]
    """Makes it visible."""
    discard: Callable[[], None] = lambda: None
    """Deletes it."""
    created: Sequence[StepResult] = ()
    """The steps that have created rows."""
    output: tuple[OutputStep, int | None] | None = None
    """The output, and how many rows it has."""
    totals: Callable[[], OutputTotals] = OutputTotals
    """What was counted and added up while the output was written."""

    @property
    def seq(self) -> int:
        """The step of the output."""
        assert self.output is not None  # noqa: S101 - asked for outputs only
        return self.output[0].seq

    def told(self, rows: int) -> StepResult:
        """The output with its numbers."""
        totals = self.totals()
        return StepResult(self.seq, StepCounts(written=rows, left_out=totals.left_out), amounts=totals.amounts)


def _writer(
    run: EngineRun, working: Working, group: Sequence[Step], progress: StepsBehind, watches: CheckWatches
) -> Callable[[], _Written] | None:
    """What the steps at the end of a group have to write; None where the group only changes rows."""
    creating = next((step for step in group if isinstance(step, CreatingStep)), None)
    output = next((step for step in group if isinstance(step, OutputStep)), None)
    if creating is not None and output is not None:
        return lambda: _write_created_and_output(run, working, creating, output, progress, watches)
    if creating is not None:
        return lambda: _write_created(run, working, creating, progress, watches)
    if output is None:
        return None
    is_alone = len(group) == 1
    seen = (lambda rows: watches.watched(working.seq, rows)) if is_alone else (lambda rows: rows)
    return lambda: _write_output(run, working.rows, output, OutputWatch(run.plan, output, run.expressing), seen=seen)


def _write_output(
    run: EngineRun,
    rows: DataFrame,
    step: OutputStep,
    watch: OutputWatch,
    further: Further | None = None,
    *,
    seen: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> _Written:
    """Write an output to staging. `seen` gives the rows as the checks watch them."""
    fence = run.lease.token if run.lease is not None else 0
    pending = run.publisher.prepare(watch.watched(seen(rows)), step, run.expressing, fence, further)
    try:
        register = _registration(run, rows, step) if step.registers is not None else None
    except BaseException:
        pending.discard()
        raise

    def publish() -> tuple[StepResult]:
        published = pending.publish()
        version = register(published.lake) if register is not None else None
        if version is not None:
            published = replace(published, registered=version)
        return (replace(written.told(published.rows), published=published),)

    written = _Written(publish, pending.discard, output=(step, pending.rows), totals=watch.totals)
    return written


def _registration(run: EngineRun, rows: DataFrame, step: OutputStep) -> Register:
    return run.registrar.prepare(rows, step, run.expressing, run.lease)


def _write_created_and_output(
    run: EngineRun,
    working: Working,
    step: CreatingStep,
    output: OutputStep,
    progress: StepsBehind,
    watches: CheckWatches,
) -> _Written:
    """Write the rows that a step creates, and the output that follows; large results are summed from the written
    rows."""
    columns = run.plan.columns_after(step.seq)
    results = list[StepResult]()
    watch = OutputWatch(run.plan, output, run.expressing)

    def seen(rows: DataFrame) -> DataFrame:
        return watches.watched(step.seq, rows)

    def created(rows: DataFrame) -> tuple[DataFrame, bool]:
        result = _create(run, rows, step, progress)
        results.append(result)
        new = created_rows(run.storage, result.parts[0].part, columns)
        watches.found(step.seq, working.with_created(new, step).rows)
        return new, result.counts.created <= FEW_ROWS

    if _reads_back(run, step, output, progress):

        def further(files: Sequence[str]) -> tuple[DataFrame, bool]:
            rows, is_small = created(written_rows(run.storage.spark, files, step, columns))
            return watch.watched(seen(rows)), is_small

        written = _write_output(run, working.without(step).rows, output, watch, further, seen=seen)
    else:
        rows, _ = created(working.rows)
        written = _write_output(run, working.with_created(rows, step).rows, output, watch, seen=seen)
    return replace(written, publish=lambda: (*results, *written.publish()), created=results)


def _reads_back(run: EngineRun, step: CreatingStep, output: OutputStep, progress: StepsBehind) -> bool:
    if step.made_from is not None:
        return False
    lineage, _ = lineage_of(run.linking, run.plan, step, progress.parts)
    is_written = has_all_that(step, output) and run.publisher.takes_further_rows(output)
    return lineage == "window" and is_written


def _write_created(
    run: EngineRun, working: Working, step: CreatingStep, progress: StepsBehind, watches: CheckWatches
) -> _Written:
    result = _create(run, working.rows, step, progress)
    new = created_rows(run.storage, result.parts[0].part, run.plan.columns_after(step.seq))
    watches.found(step.seq, working.with_created(new, step).rows)
    return _Written(lambda: (result,), created=(result,))


def _create(run: EngineRun, rows: DataFrame, step: CreatingStep, progress: StepsBehind) -> StepResult:
    columns = run.plan.columns_after(step.seq)
    lineage, finished = lineage_of(run.linking, run.plan, step, progress.parts)
    with_links = lineage == "links"
    source = rows if step.made_from is None else run.storage.pinned(step.made_from)
    chosen = chosen_rows(step, source, run.expressing)
    created = new_rows(chosen, step, run.expressing, columns, run.period, with_links=with_links)
    part = Part(
        kind="created",
        name=str(step.seq),
        files=(),
        columns=tuple((column.name, str(column.type)) for column in columns),
        seq=step.seq,
        details={LINEAGE: lineage},
    )
    folder = part_folder(run.run_id, part.kind, part.name)
    is_small = _is_small(progress)
    written = write_part(created, run.storage.root, folder, part, next_ordinal(progress), finished, is_small=is_small)
    return StepResult(step.seq, StepCounts(created=sum(file.rows for file in written.part.files)), parts=(written,))


def next_ordinal(progress: StepsBehind) -> int:
    """The first file ordinal that no part of the run uses."""
    used = [file.ordinal for part in progress.parts for file in part.files if file.ordinal is not None]
    return max(used, default=-1) + 1
