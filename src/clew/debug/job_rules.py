"""The jobs of a plan held to the rules of the environment that is to run it."""

from collections.abc import Iterator

from clew.debug.policy import CapturePolicy
from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes.debug import CAPTURE_NOT_ALLOWED
from clew.diagnostics.codes.project import SINK_NOT_ALLOWED
from clew.model.settings import PersonalColumns, SinkType
from clew.plan.plan import Plan
from clew.plan.postlude import (
    DescribeTask,
    EmitCaptureStoreTask,
    EmitTrainingLogTask,
    HistogramTask,
    PostludeJob,
    PostludeTask,
    ProjectTask,
    TopKTask,
)
from clew.plan.privacy import privacy_by_column

SINK_TYPES = {"emit_training_log": SinkType.TRAINING_LOG, "emit_capture_store": SinkType.CAPTURE_STORE}


def job_violations(plan: Plan, policy: CapturePolicy) -> Iterator[Diagnostic]:
    """What the environment does not allow of the jobs of a plan."""
    privacy = privacy_by_column(plan)
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


def _named_columns(task: PostludeTask) -> tuple[str, ...]:
    match task:
        case ProjectTask(columns) | DescribeTask(columns):
            return columns
        case HistogramTask(column) | TopKTask(column):
            return (column,)
        case _:
            return ()
