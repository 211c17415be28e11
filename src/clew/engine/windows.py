"""Expanded windows: the source rows of every summary of a run, as pairs of trace ids in Parquet.

Each batch is a separate job, which is skipped if it was done before. The links of a step count once its description is
written, after the last batch; so an interrupted expansion can be resumed, and a repeated one adds nothing.
"""

from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.engine.creating import chosen_rows, sql_over_chosen
from clew.engine.parts import write_part
from clew.engine.sql import quoted, spark_type
from clew.engine.step_groups import EngineRun
from clew.engine.trace_ids import read_traced
from clew.engine.working import StepsBehind, rebuild
from clew.plan.operations import CreatingStep
from clew.storage.checked_files import TraceFiles
from clew.storage.committed import describe_once, described_part
from clew.storage.layout import part_folder
from clew.storage.parts import LINEAGE, ORDINAL, TRACE_ID, Part
from clew.storage.row_identity import ordinal_of
from clew.trace.row_trace_ids import PARENT
from clew.trace.run_parts import GroupKey, RunParts, group_keys

BATCH_ROWS = 100_000
"""How many summary rows one job works out."""

WindowBounds = tuple[int, int]


@dataclass(frozen=True, slots=True)
class ExpandedStep:
    """A step whose links are there now."""

    seq: int
    links: int
    """How many were worked out; 0 where they had been before."""


def expand(run: EngineRun, progress: StepsBehind, batch_rows: int = BATCH_ROWS) -> Iterator[ExpandedStep]:
    """Work out all windows of a run, step by step."""
    for part in progress.parts:
        step = next((step for step in run.plan.steps if step.seq == part.seq), None)
        is_window = part.kind == "created" and (part.details or {}).get(LINEAGE) == "window"
        if is_window and isinstance(step, CreatingStep) and any(file.ids for file in part.files):
            yield _expanded(run, progress, step, part, batch_rows)


def _expanded(run: EngineRun, progress: StepsBehind, step: CreatingStep, part: Part, batch_rows: int) -> ExpandedStep:
    name = part_folder(run.run_id, "links", str(step.seq))
    if described_part(run.storage.root, name) is not None:
        return ExpandedStep(step.seq, 0)
    links = Part("links", str(step.seq), (), ((TRACE_ID, "integer"), (PARENT, "integer")), step.seq)
    done = list[Part]()
    for low, high in batches(part, batch_rows):
        folder = f"{name}/{low}-{high}"
        batch = described_part(run.storage.root, folder)
        if batch is None:
            rows = _links(run, progress, step, part).where(F.col(ORDINAL).between(low, high))
            pairs = rows.select(TRACE_ID, PARENT).distinct().sortWithinPartitions(TRACE_ID, PARENT)
            batch = describe_once(run.storage.root, folder, write_part(pairs, run.storage.root, folder, links).part)
        done.append(batch)
    files = tuple(file for batch in done for file in batch.files)
    described = Part("links", links.name, files, links.columns, step.seq)
    return ExpandedStep(step.seq, sum(file.rows for file in describe_once(run.storage.root, name, described).files))


def batches(part: Part, batch_rows: int) -> Iterator[WindowBounds]:
    """The ordinals of the rows of a part, from and to, so many at a time."""
    for file in part.files:
        for first in range(0, file.rows, batch_rows):
            last = min(first + batch_rows, file.rows) - 1
            yield ordinal_of(file.ordinal or 0, first), ordinal_of(file.ordinal or 0, last)


def _links(run: EngineRun, progress: StepsBehind, step: CreatingStep, part: Part) -> DataFrame:
    """Every row that the step looked at, beside the summary that has its keys."""
    keys = group_keys(RunParts(run.plan, tuple(progress.parts)), TraceFiles(run.storage.root), step, part)
    columns = [(key.column, spark_type(key.value.type)) for key in keys]
    summaries = read_traced(run.storage.spark, run.storage.root, part, columns)
    of_summary = [F.col(quoted(key.column)).alias(f"__group{index}") for index, key in enumerate(keys)]
    rows = _members(run, progress, step, keys)
    same = [F.col(f"__group{index}").eqNullSafe(F.col(f"__own{index}")) for index in range(len(keys))]
    return summaries.select(ORDINAL, TRACE_ID, *of_summary).join(rows, same or F.lit(True))


def _members(run: EngineRun, progress: StepsBehind, step: CreatingStep, keys: Sequence[GroupKey]) -> DataFrame:
    """The rows that a step looked at: their keys and their trace ids."""
    if step.made_from is None:
        before = max((each.seq for each in run.plan.steps if each.seq < step.seq), default=0)
        rows = rebuild(run.plan, progress, run.period, run.storage, run.expressing, until=before).rows
    else:
        rows = run.storage.pinned(step.made_from)
    chosen = chosen_rows(step, rows, run.expressing)
    sql = sql_over_chosen(step, run.expressing)
    values = [sql(key.value) for key in keys]
    return chosen.where(f"{TRACE_ID} IS NOT NULL").select(F.col(TRACE_ID).alias(PARENT), *_own(values, keys))


def _own(values: list[str], keys: Sequence[GroupKey]) -> list[Column]:
    return [
        F.expr(f"CAST({value} AS {spark_type(key.value.type)})").alias(f"__own{index}")
        for index, (value, key) in enumerate(zip(values, keys, strict=True))
    ]
