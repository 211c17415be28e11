"""What an environment allows captures and postlude jobs to keep, and how it masks personal and secret columns."""

from collections.abc import Iterator, Mapping

from clew.deferred import dataclass
from clew.definitions import CaptureMode, Environment, Mask, MaskKind
from clew.definitions.privacy import InfluencedColumns
from clew.definitions.settings import EnvironmentMode, PersonalColumns, Sink, SinkType
from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes.captures import CAPTURE_NOT_ALLOWED
from clew.diagnostics.codes.project import SINK_NOT_ALLOWED
from clew.lang.typed import columns_of
from clew.plan.datasets import PrivacyName
from clew.plan.plan import Plan
from clew.plan.postlude import (
    DescribeTask,
    EmitCaptureStoreTask,
    EmitTrainingLogTask,
    FilterTask,
    HistogramTask,
    PostludeJob,
    PostludeTask,
    ProjectTask,
    TopKTask,
)
from clew.plan.privacy import classes_of
from clew.privacy.masking import masks_of_plan

LARGE_COLUMN_BYTES = 1024
"""In prod a column with more bytes than this per row, on average, is left out unless it is requested by name."""

_USUAL_MODES = {
    EnvironmentMode.DEV: (CaptureMode.FULL_RAW, CaptureMode.FULL_VIEW),
    EnvironmentMode.PROD: (CaptureMode.SAMPLE_RAW, CaptureMode.STATS, CaptureMode.SAMPLE_VIEW),
}
"""What a capture keeps by default, as far as it is allowed."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large a capture may be."""

    max_bytes: int
    max_rows: int
    max_columns: int


@dataclass(frozen=True, slots=True)
class CapturePolicy:
    """The rules of one environment, for one role."""

    environment: str
    is_prod: bool
    modes: tuple[CaptureMode, ...]
    limits: Limits
    ttl_days: int
    max_inflight_bytes: int
    max_inflight_jobs: int
    personal: PersonalColumns
    mask: Mask
    include_roles: tuple[str, ...]
    sinks: Mapping[str, Sink]
    role: str
    influenced: InfluencedColumns = InfluencedColumns.SAME

    @classmethod
    def of(cls, name: str, environment: Environment, role: str) -> "CapturePolicy":
        """The rules that clew.yaml gives."""
        captures = environment.captures
        return cls(
            environment=name,
            is_prod=environment.mode is EnvironmentMode.PROD,
            modes=environment.capture_modes,
            limits=Limits(captures.max_bytes, captures.max_rows, captures.max_columns),
            ttl_days=captures.ttl_days,
            max_inflight_bytes=captures.max_inflight_bytes,
            max_inflight_jobs=captures.max_inflight_jobs,
            personal=captures.personal_columns,
            mask=captures.mask,
            include_roles=captures.include_roles,
            sinks=environment.sinks,
            role=role,
            influenced=environment.privacy.influenced_columns,
        )

    def classes(self, plan: Plan) -> dict[str, PrivacyName]:
        """The class of each column of a plan that is not public."""
        return classes_of(plan, influenced=self.influenced).all()

    def masks(self, plan: Plan) -> dict[str, Mask]:
        """The mask of each column of a plan that is personal or secret."""
        return masks_of_plan(plan, classes_of(plan, influenced=self.influenced), self.mask)

    @property
    def usual_mode(self) -> CaptureMode | None:
        """What a capture keeps by default; None if nothing may be kept."""
        kind = EnvironmentMode.PROD if self.is_prod else EnvironmentMode.DEV
        return next((mode for mode in (*_USUAL_MODES[kind], *self.modes) if mode in self.modes), None)

    @property
    def may_ask_for_personal(self) -> bool:
        """Whether the role may have personal columns unmasked, if it requests them by name."""
        if self.role in self.include_roles:
            return True
        return self.personal is PersonalColumns.INCLUDE and not self.include_roles

    @property
    def shows_personal(self) -> bool:
        """Whether personal columns are included unmasked without being requested."""
        return self.personal is PersonalColumns.INCLUDE and self.may_ask_for_personal

    def may_filter_by(self, privacy: PrivacyName) -> bool:
        """Whether a job may choose rows by a column of a class: which ones it takes tells the values."""
        return privacy == "personal" and self.may_ask_for_personal

    def store(self, sink: str, type_: SinkType) -> Sink | None:
        """A sink of the environment; None if it has none of this id and type."""
        found = self.sinks.get(sink)
        return found if found is not None and found.type is type_ else None


_STRICTNESS = {MaskKind.REDACT: 2, MaskKind.HASH: 1, MaskKind.KEEP_LAST: 0}


def stricter(one: Mask, other: Mask | None) -> Mask:
    """Which of two masks shows less."""
    if other is None:
        return one
    return max(one, other, key=lambda mask: (_STRICTNESS[mask.kind], -mask.characters))


SINK_TYPES = {"emit_training_log": SinkType.TRAINING_LOG, "emit_capture_store": SinkType.CAPTURE_STORE}


def job_violations(plan: Plan, policy: CapturePolicy) -> Iterator[Diagnostic]:
    """What the environment does not allow of the jobs of a plan."""
    privacy = policy.classes(plan)
    for job in plan.extensions.postlude_jobs:
        for task in job.tasks:
            if isinstance(task, EmitTrainingLogTask | EmitCaptureStoreTask):
                yield from _sink_violations(task, policy)
            for column in _named_columns(task):
                if column in privacy and not _may_name(privacy[column], policy):
                    problem = (
                        f"{title(job)} names {column}, which is {privacy[column]}, "
                        f"and the environment {policy.environment} leaves it out"
                    )
                    yield CAPTURE_NOT_ALLOWED.anywhere(problem=problem)
            for column in _filtered_columns(task):
                if column in privacy and not policy.may_filter_by(privacy[column]):
                    problem = (
                        f"{title(job)} filters by {column}, which is {privacy[column]}, and the role {policy.role} "
                        f"may not see it in the environment {policy.environment}"
                    )
                    yield CAPTURE_NOT_ALLOWED.anywhere(problem=problem, hint=_UNFILTERED)


def title(job: PostludeJob) -> str:
    """A job in a sentence."""
    return f'the postlude job "{job.name or job.id}"'


def _may_name(privacy: str, policy: CapturePolicy) -> bool:
    if policy.personal is PersonalColumns.MASK:
        return True
    return privacy == "personal" and policy.may_ask_for_personal


def _sink_violations(task: EmitTrainingLogTask | EmitCaptureStoreTask, policy: CapturePolicy) -> Iterator[Diagnostic]:
    type_ = SINK_TYPES[task.task]
    sink = policy.store(task.sink, type_)
    if sink is None:
        known = [name for name, each in policy.sinks.items() if each.type is type_]
        where = f": the environment {policy.environment} has no {type_} of this id"
        yield SINK_NOT_ALLOWED.anywhere(sink=task.sink, where=where, hint=did_you_mean(task.sink, known))
    elif task.ttl_days is not None and task.ttl_days > sink.max_ttl_days:
        problem = f"{task.sink} keeps things for {sink.max_ttl_days} days at most here, not {task.ttl_days}"
        yield CAPTURE_NOT_ALLOWED.anywhere(problem=problem, hint="ask for less")


_UNFILTERED = "filter by a column that is public; `personal_columns` and `include_roles` say who may use personal ones"


def _filtered_columns(task: PostludeTask) -> tuple[str, ...]:
    if not isinstance(task, FilterTask):
        return ()
    return tuple(sorted({column for _, column in columns_of(task.condition.tree)}))


def _named_columns(task: PostludeTask) -> tuple[str, ...]:
    match task:
        case ProjectTask(columns) | DescribeTask(columns):
            return columns
        case HistogramTask(column) | TopKTask(column):
            return (column,)
        case _:
            return ()
