"""The parts of a plan in words, for a reviewer who does not read YAML."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from clew.lang import text_of
from clew.plan.datasets import DatasetUse
from clew.plan.lineage import SourceColumn
from clew.plan.postlude import (
    Budget,
    DescribeTask,
    EmitCaptureStoreTask,
    EmitTrainingLogTask,
    FilterTask,
    HistogramTask,
    PostludeTask,
    ProjectTask,
    SampleTask,
    SerializeTask,
    TakeTask,
    TopKTask,
)
from clew.plan.steps import Assignment, Detail, PlannedExpression

_ROWS = {
    "period": "rows of the run's period",
    "bitemporal": "rows in force on the first day of the run's period",
    "none": "all rows, whatever the period",
}


def dataset(use: DatasetUse) -> str:
    """A dataset with its table and version."""
    version = f"version {use.pinned_version}" if use.pinned_version is not None else "newest active version"
    return f"{use.dataset_id} (table {use.table}), {version}"


def rows_of(use: DatasetUse) -> str:
    """Which rows of a dataset a run sees."""
    return "rows of all days, of which the condition takes those in force" if use.all_days else _ROWS[use.temporal_mode]


def whereabouts(use: DatasetUse) -> str:
    """Which resolver locates the data of a dataset, and why that one."""
    match use.resolver_source:
        case "project override":
            return f"resolver {use.resolver_id}, chosen by the project"
        case "dataset":
            return f"resolver {use.resolver_id}, named by the dataset"
        case "default":
            return f"resolver {use.resolver_id}, the default, since the dataset names none"
        case "managed":
            return "kept by Clew: another project registers it"
        case "inline":
            return "rows of a scenario"
        case _:
            assert_never(use.resolver_source)


def selector(planned: PlannedExpression | None) -> list[str]:
    """A selector as it is written and, where it names others, with those in place."""
    if planned is None:
        return ["all"]
    return [planned.text, f"that is: {text_of(planned.tree)}"] if "{{" in planned.text else [planned.text]


def selected(planned: PlannedExpression | None) -> Detail:
    """The rows that a step is for."""
    return Detail("rows", tuple(selector(planned)))


def groups(keys: Iterable[str]) -> Detail:
    """The groups that a step sums up."""
    return Detail("groups", (enumerated(keys) or "one, of all rows",))


def values(assignments: Iterable[Assignment]) -> tuple[tuple[str, str, str], ...]:
    """Columns with their types and the expressions that give their values."""
    return tuple((each.column, str(each.value.tree.type), each.value.text) for each in assignments)


def assigned(assignments: Iterable[Assignment]) -> Iterator[Detail]:
    """Columns that get values: those that exist, then those that are new."""
    listed = list(assignments)
    for word, is_new in (("sets", False), ("adds", True)):
        rows = values(each for each in listed if each.adds_column is is_new)
        if rows:
            yield Detail(word, table=rows)


def found(use: DatasetUse) -> str:
    """Which rows of a dataset a run sees, and where it finds them."""
    return f"{rows_of(use)}; {whereabouts(use)}"


def enumerated(items: Iterable[object]) -> str:
    """Items with commas between them."""
    return ", ".join(str(item) for item in items)


def steps(numbers: Iterable[int]) -> str:
    """Steps by their seq."""
    listed = list(numbers)
    return f"step{'' if len(listed) == 1 else 's'} {enumerated(listed)}"


def sources(columns: Iterable[SourceColumn]) -> str:
    """Columns of datasets, a line for each dataset."""
    by_dataset = dict[str, list[str]]()
    for source in columns:
        by_dataset.setdefault(source.dataset, []).append(source.column)
    return "\n".join(f"{name}: {enumerated(found)}" for name, found in by_dataset.items())


def budget(allowed: Budget) -> str:
    """What a job may use up."""
    rows = f", {allowed.max_rows:,} rows" if allowed.max_rows is not None else ""
    size = f", {allowed.max_bytes:,} bytes" if allowed.max_bytes is not None else ""
    return f"at most {allowed.timeout_seconds:,} s{rows}{size}"


def task(doing: PostludeTask) -> str:
    """What a task of a job does."""
    match doing:
        case FilterTask():
            return f"keep rows where {doing.condition.text}"
        case TakeTask():
            return f"keep the first {doing.rows:,} rows"
        case SampleTask():
            return f"keep a sample of {doing.rows:,} rows"
        case ProjectTask():
            return f"keep the columns {enumerated(doing.columns)}"
        case DescribeTask():
            return f"describe {enumerated(doing.columns) or 'all columns'}"
        case HistogramTask():
            return f"count {doing.column} in {doing.bins:,} bins"
        case TopKTask():
            return f"find the {doing.k:,} most frequent values of {doing.column}"
        case SerializeTask():
            return f"write the rows as {doing.format}, {doing.mode}"
        case EmitTrainingLogTask():
            return f"send the file to the training log {doing.sink}, for {doing.ttl_days:,} days"
        case EmitCaptureStoreTask():
            return f"keep the file in {doing.sink}, for {doing.ttl_days:,} days"
        case _:
            assert_never(doing)
