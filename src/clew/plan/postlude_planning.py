"""`after_request` to postlude jobs: anchors, checked tasks, digests."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from clew.deferred import dataclass
from clew.definitions import postlude as written
from clew.diagnostics import Problems, Span, did_you_mean
from clew.diagnostics.codes.language import UNKNOWN_COLUMN
from clew.diagnostics.codes.project import SINK_NOT_ALLOWED, TASK_NOT_ALLOWED
from clew.diagnostics.codes.workspace import DUPLICATE_COLUMN, INVALID_VALUE
from clew.lang import Scope, Table
from clew.lang.types import INTEGER, NULL, STRING, Type
from clew.plan import postlude as planned
from clew.plan.expansion import PlacedOperation
from clew.plan.expressions import Expressions
from clew.plan.json_form import digest_of
from clew.plan.names import STEP, qualified
from clew.plan.operations.context import PlanningState
from clew.plan.plan import Breakpoint

RUN_FACTS: Mapping[str, Type] = {
    "project": STRING,
    "period": STRING,
    "environment": STRING,
    "mode": STRING,
    "status": STRING,
    "rows": INTEGER,
}
"""What the `when` of a job can ask about the run, as run.period and so on; `rows` counts the rows at the anchor."""


@dataclass(frozen=True, slots=True)
class SinkKnowledge:
    """The sinks that some environment allows, by type, with the longest time each may keep things."""

    longest_ttl_days: Mapping[tuple[str, str], int]
    """By (type, id)."""

    def named(self, type_: str) -> list[str]:
        """The ids of the sinks of a type."""
        return [sink for sink_type, sink in self.longest_ttl_days if sink_type == type_]


@dataclass(frozen=True, slots=True)
class Anchors:
    """Where jobs attach: the latest label of the same fragment instance, or an implicit point after the operation."""

    plan: str
    breakpoints: tuple[Breakpoint, ...]

    def of(self, placed: PlacedOperation) -> tuple[str, int]:
        """The qualified name of the anchor and the step that it follows."""
        before = [point for point in self.breakpoints if point.path == placed.path and point.seq <= placed.seq]
        if before:
            latest = max(before, key=lambda point: point.seq)
            return latest.name, latest.seq
        return qualified(self.plan, placed.path, f"{STEP}{placed.seq}"), placed.seq


def plan_jobs(
    operations: Iterable[PlacedOperation],
    states: Mapping[int, PlanningState],
    *,
    anchors: Anchors,
    sinks: SinkKnowledge | None,
    expressions: Expressions,
    problems: Problems,
) -> tuple[planned.PostludeJob, ...]:
    """All jobs of a plan, in the order of their operations.

    `states` are the working datasets after each step; `sinks` is None where nothing is known about them.
    """
    jobs = list[planned.PostludeJob]()
    for placed in operations:
        for job in placed.operation.after_request:
            anchor, seq = anchors.of(placed)
            view = _View(anchor, states[seq], states[placed.seq])
            builder = _JobBuilder(view, sinks, expressions, problems)
            made = builder.job(job, anchor, seq, number=len(jobs) + 1)
            if made is not None:
                jobs.append(made)
    return tuple(jobs)


@dataclass(frozen=True, slots=True)
class _View:
    """What a job sees: the rows at its anchor. Those after its own operation may have more columns."""

    anchor: str
    state: PlanningState
    state_here: PlanningState


class _JobBuilder:
    def __init__(
        self,
        view: _View,
        sinks: SinkKnowledge | None,
        expressions: Expressions,
        problems: Problems,
    ) -> None:
        self._view = view
        self._table = Table(view.state.table, view.state.schema.types, is_opaque=view.state.is_opaque)
        self._sinks = sinks
        self._expressions = expressions
        self._problems = problems

    def job(self, job: written.Job, anchor: str, seq: int, number: int) -> planned.PostludeJob | None:
        when = None
        if job.when is not None:
            when = self._expressions.condition(job.when, Scope((Table("run", RUN_FACTS),)), "in the when of a job")
        tasks = [self._task(task) for task in job.tasks]
        self._check_order(job)
        known = tuple(task for task in tasks if task is not None)
        if len(known) < len(tasks) or (job.when is not None and when is None):
            return None
        digest = digest_of(known)
        return planned.PostludeJob(
            id=f"job_{number}_{digest[:12]}",
            name=job.name,
            anchor=anchor,
            anchor_seq=seq,
            digest=digest,
            when=when,
            budget=planned.Budget(job.budget.timeout_seconds, job.budget.max_rows, job.budget.max_bytes),
            tasks=known,
            sinks=tuple(
                task.sink
                for task in known
                if isinstance(task, planned.EmitTrainingLogTask | planned.EmitCaptureStoreTask)
            ),
        )

    def _task(self, task: written.Task) -> planned.PostludeTask | None:
        match task:
            case written.FilterTaskDefinition():
                return self._filter(task)
            case written.TakeTaskDefinition():
                return planned.TakeTask(task.rows)
            case written.SampleTaskDefinition():
                return planned.SampleTask(task.rows)
            case written.ProjectTaskDefinition():
                return self._project(task)
            case written.DescribeTaskDefinition():
                return planned.DescribeTask(task.columns) if self._all_known(task) else None
            case written.HistogramTaskDefinition():
                known = self._is_known(task.column, task.place("column"))
                return planned.HistogramTask(task.column, task.bins) if known else None
            case written.TopKTaskDefinition():
                known = self._is_known(task.column, task.place("column"))
                return planned.TopKTask(task.column, task.k) if known else None
            case written.SerializeTaskDefinition():
                return planned.SerializeTask(task.format.value, task.mode.value)
            case written.EmitTrainingLogTaskDefinition():
                allowed = self._is_allowed("training_log", task.sink, task.ttl_days, task.place("sink"), task)
                return planned.EmitTrainingLogTask(task.sink, task.ttl_days) if allowed else None
            case written.EmitCaptureStoreTaskDefinition():
                allowed = self._is_allowed("capture_store", task.store, task.ttl_days, task.place("store"), task)
                return planned.EmitCaptureStoreTask(task.store, task.ttl_days) if allowed else None
            case written.OtherTask():
                hint = did_you_mean(task.name, planned.ALLOWED_TASKS) or f"allowed: {', '.join(planned.ALLOWED_TASKS)}"
                self._problems.report(TASK_NOT_ALLOWED.at(task.span, task=task.name, hint=hint))
                return None

    def _filter(self, task: written.FilterTaskDefinition) -> planned.FilterTask | None:
        scope = Scope((self._table,), column_elsewhere=self._behind_the_anchor)
        condition = self._expressions.condition(task.expression, scope, "in a filter")
        return planned.FilterTask(condition) if condition is not None else None

    def _project(self, task: written.ProjectTaskDefinition) -> planned.ProjectTask | None:
        """Tasks after this one see the chosen columns only."""
        if not self._all_known(task):
            return None
        known = self._table.columns
        self._table = replace(self._table, columns={name: known.get(name, NULL) for name in task.columns})
        return planned.ProjectTask(task.columns)

    def _all_known(self, task: written.ProjectTaskDefinition | written.DescribeTaskDefinition) -> bool:
        places = [(name, task.place("columns", index)) for index, name in enumerate(task.columns)]
        repeated = [place for index, place in enumerate(places) if place[0] in task.columns[:index]]
        for name, span in repeated:
            self._problems.report(DUPLICATE_COLUMN.at(span, column=name))
        unknown = [name for name, span in places if not self._is_known(name, span)]
        return not unknown and not repeated

    def _is_known(self, column: str, span: Span) -> bool:
        if column in self._table.columns or self._table.is_opaque:
            return True
        hint = self._behind_the_anchor(column) or did_you_mean(column, self._table.columns)
        self._problems.report(UNKNOWN_COLUMN.at(span, column=column, table=self._table.name, hint=hint))
        return False

    def _behind_the_anchor(self, column: str) -> str | None:
        """A hint for a column that came after the rows which the job sees, or that the job itself has dropped."""
        if column not in self._view.state_here.schema.types:
            return None
        return f"the job sees the rows at {self._view.anchor}, and after a project task only the columns that it keeps"

    def _is_allowed(self, type_: str, sink: str, ttl_days: int | None, span: Span, task: written.Task) -> bool:
        """Whether some environment has the sink, and keeps things as long as this. A run asks its own environment."""
        if self._sinks is None:
            return True
        longest = self._sinks.longest_ttl_days.get((type_, sink))
        if longest is None:
            hint = did_you_mean(sink, self._sinks.named(type_))
            where = f": no environment has a {type_} of this id"
            self._problems.report(SINK_NOT_ALLOWED.at(span, sink=sink, where=where, hint=hint))
            return False
        if ttl_days is not None and ttl_days > longest:
            problem = f'the sink "{sink}" keeps data for at most {longest} days, not {ttl_days}'
            self._problems.report(INVALID_VALUE.at(task.place("ttl_days"), problem=problem, hint="ask for less"))
            return False
        return True

    def _check_order(self, job: written.Job) -> None:
        """An emission sends what was serialised before it."""
        serialised = False
        for task in job.tasks:
            if isinstance(task, written.SerializeTaskDefinition):
                serialised = True
            elif (
                isinstance(task, written.EmitTrainingLogTaskDefinition | written.EmitCaptureStoreTaskDefinition)
                and not serialised
            ):
                problem = f"{task.name} has nothing to send: no serialize_rowset comes before it"
                hint = "add `- serialize_rowset: {format: parquet, mode: view}` before it"
                self._problems.report(INVALID_VALUE.at(task.span, problem=problem, hint=hint))
