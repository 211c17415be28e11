"""Postlude jobs: small pipelines that run on a breakpoint's rows after the run."""

from typing import Literal

from clew.deferred import dataclass
from clew.plan.steps import PlannedExpression


@dataclass(frozen=True, slots=True)
class FilterTask:
    """Keeps the rows for which the condition is TRUE."""

    condition: PlannedExpression
    task: Literal["filter"] = "filter"


@dataclass(frozen=True, slots=True)
class TakeTask:
    """Keeps the first rows, in the order of their ordinals."""

    rows: int
    task: Literal["take"] = "take"


@dataclass(frozen=True, slots=True)
class SampleTask:
    """Keeps a sample that is the same for the same run."""

    rows: int
    task: Literal["sample"] = "sample"


@dataclass(frozen=True, slots=True)
class ProjectTask:
    """Keeps these columns."""

    columns: tuple[str, ...]
    task: Literal["project"] = "project"


@dataclass(frozen=True, slots=True)
class DescribeTask:
    """Statistics of columns; of all where none is named."""

    columns: tuple[str, ...]
    task: Literal["describe"] = "describe"


@dataclass(frozen=True, slots=True)
class HistogramTask:
    """How the values of a column are spread."""

    column: str
    bins: int
    task: Literal["histogram"] = "histogram"


@dataclass(frozen=True, slots=True)
class TopKTask:
    """The most frequent values of a column."""

    column: str
    k: int
    task: Literal["topk"] = "topk"


@dataclass(frozen=True, slots=True)
class SerializeTask:
    """Turns the rows into a file."""

    format: Literal["parquet", "arrow"]
    mode: Literal["raw", "view"]
    task: Literal["serialize_rowset"] = "serialize_rowset"


@dataclass(frozen=True, slots=True)
class EmitTrainingLogTask:
    """Sends the file to a training log."""

    sink: str
    ttl_days: int | None
    """None for as long as the sink of the environment allows."""
    task: Literal["emit_training_log"] = "emit_training_log"


@dataclass(frozen=True, slots=True)
class EmitCaptureStoreTask:
    """Keeps the file as a capture."""

    sink: str
    ttl_days: int | None
    """None for as long as the sink of the environment allows."""
    task: Literal["emit_capture_store"] = "emit_capture_store"


PostludeTask = (
    FilterTask
    | TakeTask
    | SampleTask
    | ProjectTask
    | DescribeTask
    | HistogramTask
    | TopKTask
    | SerializeTask
    | EmitTrainingLogTask
    | EmitCaptureStoreTask
)

ALLOWED_TASKS = (
    "describe",
    "histogram",
    "topk",
    "filter",
    "take",
    "sample",
    "project",
    "serialize_rowset",
    "emit_training_log",
    "emit_capture_store",
)
"""Everything that a job may do. There is no join and no other IO, on purpose."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a job may use up; beyond that it is stopped."""

    timeout_seconds: int
    max_rows: int | None
    max_bytes: int | None


@dataclass(frozen=True, slots=True)
class PostludeJob:
    """A job, anchored to a breakpoint."""

    id: str
    name: str | None
    anchor: str
    """The qualified name of the breakpoint whose rows it reads."""
    anchor_seq: int
    digest: str
    """SHA-256 over the tasks: two jobs with the same digest do the same."""
    when: PlannedExpression | None
    budget: Budget
    tasks: tuple[PostludeTask, ...]
    sinks: tuple[str, ...]
