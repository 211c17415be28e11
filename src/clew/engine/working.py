"""The working dataset of a run: immutable rows in files, and the functions that steps have put on top of them.

It is rebuilt from the parts that a run has committed when the run resumes, when a capture is taken later, and when the
next group of steps starts: there is no other state.
"""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from clew.deferred import dataclass
from clew.engine.creating import Pinned
from clew.engine.expressing import Expressing
from clew.engine.names import SYSTEM_TYPES, with_sql
from clew.engine.operations import changed_rows, joined_for
from clew.engine.parts import sources_of_files
from clew.engine.spark_internals import select_sql
from clew.engine.sql import quoted, spark_type, text_literal
from clew.engine.trace_ids import read_traced
from clew.plan.columns import Column
from clew.plan.operations import ChangingStep, Step
from clew.plan.plan import Plan
from clew.storage.parts import ORDINAL, TRACE_ID, Part
from clew.storage.root import StorageRoot


@dataclass(frozen=True, slots=True)
class Storage:
    """Where the parts of a run are read from."""

    spark: SparkSession
    root: StorageRoot
    pinned: Pinned


@dataclass(frozen=True, slots=True)
class Working:
    """The working dataset after a step."""

    rows: DataFrame
    seq: int
    chain: int
    """How many narrow steps are functions on top of what is written."""

    def after(self, step: ChangingStep, expressing: Expressing, joined: Mapping[str, DataFrame]) -> "Working":
        """With a narrow step on top."""
        return Working(changed_rows(self.rows, step, expressing, joined), step.seq, self.chain + 1)

    def with_created(self, created: DataFrame, step: Step) -> "Working":
        """With the rows that a step created. Columns that it adds are NULL on the rows that were there."""
        widened = self.without(step)
        return Working(widened.rows.unionByName(created, allowMissingColumns=True), step.seq, self.chain)

    def without(self, step: Step) -> "Working":
        """After a step that did nothing to these rows, but whose columns later steps may name."""
        missing = {column.name: f"CAST(NULL AS {spark_type(column.type)})" for column in step.adds}
        rows = with_sql(self.rows, missing) if missing else self.rows
        return Working(rows, step.seq, self.chain)


def loaded(pinned: DataFrame, plan: Plan, period: str) -> Working:
    """The working dataset before the first step. Rows without a period belong to the run's."""
    columns = [column.name for column in plan.input.schema().columns]
    own_period = f"coalesce(_period, {text_literal(period)}) AS _period"
    rows = select_sql(pinned, [*map(quoted, columns), own_period, "_labels", "_deleted", ORDINAL, TRACE_ID])
    return Working(rows, 0, 0)


def created_rows(storage: Storage, part: Part, columns: Sequence[Column]) -> DataFrame:
    """The rows that a step created, read from where they were written."""
    types = [(column.name, spark_type(column.type)) for column in columns]
    types += [(name, SYSTEM_TYPES[name]) for name in ("_period", "_labels")]
    return with_sql(read_traced(storage.spark, storage.root, part, types), {"_deleted": "FALSE"})


def state_rows(storage: Storage, part: Part, columns: Sequence[Column]) -> DataFrame:
    """The whole working dataset, read from a changes part that holds the state."""
    types = [(ORDINAL, "BIGINT"), *((column.name, spark_type(column.type)) for column in columns)]
    types += [*SYSTEM_TYPES.items(), (TRACE_ID, "BIGINT")]
    schema = ", ".join(f"{quoted(name)} {type_}" for name, type_ in types)
    paths = sources_of_files(storage.root, part)
    if not paths:
        return storage.spark.createDataFrame([], schema)
    return storage.spark.read.schema(schema).parquet(*paths)


@dataclass(frozen=True, slots=True)
class StepsBehind:
    """What a run has done so far."""

    parts: tuple[Part, ...]
    """What its steps have written and committed."""
    skipped: frozenset[int] = frozenset()
    """The steps that an operator skipped."""


def rebuild(
    plan: Plan, progress: StepsBehind, period: str, storage: Storage, expressing: Expressing, *, until: int
) -> Working:
    """The working dataset after the step `until`, from the parts that were committed up to it."""
    states = [part for part in progress.parts if part.kind == "changes" and part.columns and part.seq <= until]
    latest = max(states, key=lambda part: part.seq, default=None)
    if latest is None:
        working = loaded(storage.pinned(plan.input), plan, period)
    else:
        working = Working(state_rows(storage, latest, plan.columns_after(latest.seq)), latest.seq, 0)
    created = {part.seq: part for part in progress.parts if part.kind == "created"}
    for step in plan.steps:
        if step.seq <= working.seq or step.seq > until:
            continue
        if step.seq in progress.skipped:
            working = working.without(step)
        elif isinstance(step, ChangingStep):
            working = working.after(step, expressing, joined_for(step, storage.pinned))
        elif step.seq in created:
            rows = created_rows(storage, created[step.seq], plan.columns_after(step.seq))
            working = working.with_created(rows, step)
    return working
