"""Postlude jobs: what is done with the rows at a point of the pipeline after the run itself."""

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import ClassVar, TypeAlias

from clew.definitions.expression_text import ExpressionText
from clew.definitions.nodes import Entry, ListNode, MapNode, Node, ScalarNode
from clew.definitions.shapes import (
    ANY_VALUE,
    EXPRESSION,
    NAME,
    Choice,
    JsonSchema,
    ListOf,
    Located,
    Record,
    Shape,
    Whole,
    items_of,
    key,
    record,
    refused,
)
from clew.definitions.yaml_scalars import Value
from clew.diagnostics import UserError
from clew.diagnostics.codes.workspace import INVALID_VALUE


class RowsetFormat(StrEnum):
    """How rows are serialised."""

    PARQUET = "parquet"
    ARROW = "arrow"


class RowsetMode(StrEnum):
    """Whether deleted rows and the row selection are kept apart or applied."""

    RAW = "raw"
    VIEW = "view"


@record("a filter task")
class FilterTaskDefinition(Located):
    """Keeps the rows for which an expression is true."""

    name: ClassVar[str] = "filter"
    expression: ExpressionText = key(EXPRESSION, "Which rows to keep.")


@record("a take task")
class TakeTaskDefinition(Located):
    """Keeps the first rows."""

    name: ClassVar[str] = "take"
    rows: int = key(Whole(1), "How many rows to keep.")


@record("a sample task")
class SampleTaskDefinition(Located):
    """Keeps a sample that is the same each time."""

    name: ClassVar[str] = "sample"
    rows: int = key(Whole(1), "How many rows to keep.")


@record("a project task")
class ProjectTaskDefinition(Located):
    """Keeps some columns."""

    name: ClassVar[str] = "project"
    columns: tuple[str, ...] = key(ListOf(NAME, "columns", at_least=1), "The columns to keep.")


@record("a describe task")
class DescribeTaskDefinition(Located):
    """Counts, extremes and means of columns."""

    name: ClassVar[str] = "describe"
    columns: tuple[str, ...] = key(ListOf(NAME, "columns"), "The columns; by default all.", default=())


@record("a histogram task")
class HistogramTaskDefinition(Located):
    """How the values of a column are spread."""

    name: ClassVar[str] = "histogram"
    column: str = key(NAME, "The column.")
    bins: int = key(Whole(1, 10_000), "How many bins to count in.", default=10)


@record("a topk task")
class TopKTaskDefinition(Located):
    """The most frequent values of a column."""

    name: ClassVar[str] = "topk"
    column: str = key(NAME, "The column.")
    k: int = key(Whole(1, 10_000), "How many values to keep.", default=10)


@record("a serialize_rowset task")
class SerializeTaskDefinition(Located):
    """Writes the rows in a form that can be kept."""

    name: ClassVar[str] = "serialize_rowset"
    format: RowsetFormat = key(Choice(RowsetFormat), "The file format.", default=RowsetFormat.PARQUET)
    mode: RowsetMode = key(Choice(RowsetMode), "raw keeps every row, view the selected ones.", default=RowsetMode.VIEW)


@record("an emit_training_log task")
class EmitTrainingLogTaskDefinition(Located):
    """Sends the rows to a training log."""

    name: ClassVar[str] = "emit_training_log"
    sink: str = key(NAME, "The id of a sink of the environment.")
    ttl_days: int | None = key(
        Whole(1), "Days until what was sent is deleted; by default as long as the sink allows.", default=None
    )


@record("an emit_capture_store task")
class EmitCaptureStoreTaskDefinition(Located):
    """Keeps the rows as a capture."""

    name: ClassVar[str] = "emit_capture_store"
    store: str = key(NAME, "The id of a sink of the environment.")
    ttl_days: int | None = key(
        Whole(1), "Days until the capture is deleted; by default as long as the sink allows.", default=None
    )


@record("a task")
class OtherTask(Located):
    """A task that Clew does not know. Whether it is allowed is for the compiler to say."""

    name: str
    arguments: Value = field(hash=False)


Task: TypeAlias = (
    FilterTaskDefinition
    | TakeTaskDefinition
    | SampleTaskDefinition
    | ProjectTaskDefinition
    | DescribeTaskDefinition
    | HistogramTaskDefinition
    | TopKTaskDefinition
    | SerializeTaskDefinition
    | EmitTrainingLogTaskDefinition
    | EmitCaptureStoreTaskDefinition
    | OtherTask
)

_TASKS: Mapping[str, Record[Task]] = {
    "filter": Record(FilterTaskDefinition),
    "take": Record(TakeTaskDefinition),
    "sample": Record(SampleTaskDefinition),
    "project": Record(ProjectTaskDefinition),
    "describe": Record(DescribeTaskDefinition),
    "histogram": Record(HistogramTaskDefinition),
    "topk": Record(TopKTaskDefinition),
    "serialize_rowset": Record(SerializeTaskDefinition),
    "emit_training_log": Record(EmitTrainingLogTaskDefinition),
    "emit_capture_store": Record(EmitCaptureStoreTaskDefinition),
}

_BARE_ARGUMENTS = {"filter": "expression", "take": "rows", "project": "columns"}
"""Tasks whose only argument is written without its key."""


class _TaskShape(Shape[Task]):
    """A mapping with one key, the name of the task, and its arguments."""

    def read(self, node: Node) -> Task:
        """The task."""
        if not isinstance(node, MapNode):
            raise refused(node, "a task such as `take: 100`")
        if len(node.entries) != 1:
            problem = f"a task has one key, its name; this one has {len(node.entries)}"
            raise UserError(INVALID_VALUE.at(node.span, problem=problem, hint="start each task with its own -"))
        [(name, entry)] = node.entries.items()
        if name not in _TASKS:
            return OtherTask(name=name, arguments=ANY_VALUE.read(entry.value), node=node)
        if name in _BARE_ARGUMENTS:
            return _TASKS[name].read(_wrapped(_BARE_ARGUMENTS[name], entry.key, entry.value))
        return _TASKS[name].read(entry.value)

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """One of the known tasks."""
        members = [_task_schema(name, definitions) for name in _TASKS]
        return {"oneOf": members}


def _task_schema(name: str, definitions: dict[str, JsonSchema]) -> JsonSchema:
    if name in _BARE_ARGUMENTS:
        arguments = _TASKS[name].declared.keys[_BARE_ARGUMENTS[name]].schema(definitions)
    else:
        arguments = _TASKS[name].schema(definitions)
    return {"type": "object", "properties": {name: arguments}, "required": [name], "additionalProperties": False}


TASK = _TaskShape()


@record("a budget")
class BudgetDefinition(Located):
    """How much a postlude job may use."""

    timeout_seconds: int = key(Whole(1), "Seconds until the job is stopped.", default=60)
    max_rows: int | None = key(Whole(1), "The most rows the job may handle.", default=None)
    max_bytes: int | None = key(Whole(1), "The most bytes the job may write.", default=None)


@record("a job")
class Job(Located):
    """Tasks on the rows at this point of the pipeline, done after the run."""

    name: str | None = key(NAME, "What the job is called.", default=None)
    when: ExpressionText | None = key(
        EXPRESSION, "When the job runs: an expression over facts of the run. By default it always runs.", default=None
    )
    budget: BudgetDefinition = key(
        Record(BudgetDefinition), "How much the job may use.", default_factory=BudgetDefinition
    )
    tasks: tuple[Task, ...] = key(ListOf(TASK, "tasks", at_least=1), "The tasks, in order.")


class _AfterRequestShape(Shape[tuple[Job, ...]]):
    """A list of jobs, or a list of tasks that is one job."""

    def read(self, node: Node) -> tuple[Job, ...]:
        """The jobs."""
        items = items_of(node, "jobs or tasks")
        job_keys = {"name", "when", "budget", "tasks"}
        if any(isinstance(item, MapNode) and job_keys & item.entries.keys() for item in items):
            return ListOf(Record(Job), "jobs").read(node)
        key_node = ScalarNode(node.source, node.start, node.end, "tasks", "")
        return (Record(Job).read(_wrapped("tasks", key_node, node)),) if items else ()

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """Either list."""
        jobs = {"type": "array", "items": Record(Job).schema(definitions)}
        tasks = {"type": "array", "items": TASK.schema(definitions)}
        return {"anyOf": [jobs, tasks]}


AFTER_REQUEST = _AfterRequestShape()


def _wrapped(name: str, key_node: ScalarNode, value: Node) -> MapNode:
    """A mapping around a value that is written without one."""
    holder = value if isinstance(value, ListNode) else key_node
    return MapNode(value.source, holder.start, holder.end, {name: Entry(key_node, value)})
