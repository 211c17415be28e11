"""Plans on Spark over small pinned inputs, without a state store, beside the interpreter in Python."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from clew.engine.direct import run_directly
from clew.engine.executor import datasets_of, pinned_rows
from clew.engine.expressing import Expressing
from clew.engine.operations.output import output_columns, output_rows
from clew.engine.output.files import Further
from clew.engine.output.publishing import Pending, Published, Publisher
from clew.engine.output.registering import Register
from clew.engine.step_groups import EngineRun, StepCounts, StepResult
from clew.engine.working import Storage
from clew.plan import Plan
from clew.plan.datasets import DatasetUse
from clew.plan.operations import OutputStep
from clew.runs.leases import Lease
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, Part, PartFile
from clew.storage.roots import storage_at
from clew.trace.json_values import arrow_type
from clew.trace.reader import RunTrace
from tests.plan.plan_interpreter import Cells
from tests.trace.recorded_interpretation import Recorded

RUN_ID = "0c1f2d3e-engine"
PERIOD = "2026-01"
TODAY = date(2026, 1, 1)
"""The first day of the period, too, which is all that the interpreter knows of days."""

Data = Mapping[str, Sequence[Mapping[str, Any]]]
Pin = Callable[[Path, DatasetUse, Sequence[Cells], int, int], Part]
"""Makes rows an input part, in so many files, of which the first has an ordinal."""


@dataclass(slots=True)
class Collected:
    """Keeps outputs in memory."""

    outputs: dict[int, list[Cells]] = field(default_factory=dict)

    def takes_further_rows(self, step: OutputStep) -> bool:
        return False

    def prepare(
        self,
        rows: DataFrame,
        step: OutputStep,
        expressing: Expressing,
        fence: int = 0,
        further: Further | None = None,
    ) -> Pending:
        chosen = output_rows(rows, step, expressing).selectExpr(*output_columns(step, expressing.run_id))
        self.outputs[step.seq] = [record.asDict() for record in chosen.collect()]
        count = len(self.outputs[step.seq])
        return Pending(count, lambda: Published(count))


class Unregistered:
    """Registers nothing."""

    def prepare(self, rows: DataFrame, step: OutputStep, expressing: Expressing, lease: Lease | None) -> Register:
        return lambda _table: None


@dataclass(slots=True)
class Ran:
    """A plan that was run."""

    plan: Plan
    root: Path
    outputs: dict[int, list[Cells]]
    counts: dict[int, StepCounts]
    parts: tuple[Part, ...]
    inputs: tuple[Part, ...]

    @property
    def output(self) -> list[Cells]:
        """The rows of the only output."""
        (rows,) = self.outputs.values()
        return rows

    def trace(self) -> RunTrace:
        return RunTrace(storage_at(self.root), RUN_ID, self.plan, self.parts, PERIOD, TODAY)


def run_plan(
    spark: SparkSession,
    root: Path,
    plan: Plan,
    data: Data,
    *,
    files: int = 1,
    publisher: Publisher | None = None,
    pin: "Pin | None" = None,
) -> Ran:
    """Pin the rows that count for the period, in so many files for each dataset, and run the plan over them."""
    recorded = Recorded(plan, data, PERIOD, TODAY)
    inputs = list[Part]()
    for use in datasets_of(plan):
        inputs.append((pin or pinned)(root, use, recorded.loaded(use), files, sum(len(part.files) for part in inputs)))
    by_name = {part.name: part for part in inputs}
    collected = Collected()
    counts = dict[int, StepCounts]()

    def done(result: StepResult) -> None:
        counts[result.seq] = result.counts

    storage_root = storage_at(root)
    run = EngineRun(
        run_id=RUN_ID,
        plan=plan,
        period=PERIOD,
        expressing=Expressing(RUN_ID, plan.input.table, TODAY),
        storage=Storage(spark, storage_root, lambda use: pinned_rows(spark, storage_root, by_name[use.key], use)),
        publisher=publisher or collected,
        registrar=Unregistered(),
    )
    progress = run_directly(run, inputs, done)
    return Ran(plan, root, collected.outputs, counts, progress.parts, tuple(inputs))


def pinned(root: Path, use: DatasetUse, rows: Sequence[Cells], files: int, first_ordinal: int) -> Part:
    """Rows as an input part."""
    columns = [column for column in use.columns if column.name != "_period"]
    written = list[PartFile]()
    size = -(-len(rows) // files)
    for start in range(0, len(rows), max(1, size)):
        piece = rows[start : start + size]
        arrays = {
            column.name: pa.array([row.get(column.name) for row in piece], arrow_type(column.type))
            for column in columns
        }
        arrays["_period"] = pa.array([row.get("_period") for row in piece], pa.string())
        arrays[SOURCE_FILE] = pa.array([f"{use.table}.csv"] * len(piece), pa.string())
        arrays[SOURCE_LINE] = pa.array(range(start + 2, start + 2 + len(piece)), pa.int64())
        path = f"runs/{RUN_ID}/input/{use.key}/part-{len(written):05}.parquet"
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(arrays), root / path)
        written.append(
            PartFile(path, len(piece), (root / path).stat().st_size, _sha256(root / path), first_ordinal + len(written))
        )
    return Part("input", use.key, tuple(written), tuple((column.name, str(column.type)) for column in columns))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def in_any_order(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows as texts that compare by value: 15.0 and 15.00 are the same number."""
    return sorted(repr(sorted((name, _plain(value)) for name, value in row.items())) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(fold=0)
    return value.normalize() + 0 if isinstance(value, Decimal) else value
