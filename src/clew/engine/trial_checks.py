"""Checks of a dataset as it would be loaded, without a run: nothing is written but what pinning needs."""

from collections.abc import Callable, Iterable, Mapping
from datetime import date

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.engine.blame import SPARK_ERRORS, translated
from clew.engine.checking import CheckContext, PointWatch
from clew.engine.executor import pinned_rows
from clew.engine.expressing import Expressing
from clew.engine.session import leaving_active_session
from clew.engine.types import SparkSession
from clew.engine.working import loaded
from clew.events.values import CheckResult
from clew.lang.typed import Value
from clew.plan import Plan
from clew.plan.datasets import DatasetUse
from clew.storage.parts import ORDINAL, SOURCE_FILE, SOURCE_LINE, Part
from clew.storage.root import StorageRoot
from clew.storage.row_identity import RowIds
from clew.trace.history import source_of
from clew.trace.records import Source

StoredAt = Callable[[Part], StorageRoot]


@dataclass(frozen=True, slots=True)
class PinnedForTrial:
    """The datasets that a plan reads, pinned, by key, and where their files are."""

    spark: SparkSession
    run_id: str
    parts: Mapping[str, Part]
    stored_at: StoredAt

    def rows(self, use: DatasetUse) -> DataFrame:
        """The rows of a dataset."""
        part = self.parts[use.key]
        return pinned_rows(self.spark, self.stored_at(part), part, use)


def checked_as_loaded(plan: Plan, period: str, pinned: PinnedForTrial, today: date) -> tuple[CheckResult, ...]:
    """What the checks of a plan without steps find in its input. ClewError where an expression fails."""
    expressing = Expressing(pinned.run_id, plan.input.table, today)
    context = CheckContext(pinned.run_id, plan, expressing, pinned.rows)
    with leaving_active_session():
        try:
            return PointWatch(context, plan.checks).results(loaded(pinned.rows(plan.input), plan, period).rows)
        except SPARK_ERRORS as error:
            raise translated(error, None, plan) from error


def places_of(row_ids: Iterable[str], plan: Plan, pinned: PinnedForTrial) -> dict[str, Source]:
    """Where rows of the input were read, by row id."""
    known = RowIds(pinned.run_id)
    ids = {ordinal: row_id for row_id in row_ids if (ordinal := known.ordinal(row_id)) is not None}
    if not ids:
        return {}
    part = pinned.parts[plan.input.key]
    with leaving_active_session():
        wanted = pinned.rows(plan.input).where(F.col(ORDINAL).isin(sorted(ids)))
        found: list[tuple[int, Value, Value]] = [
            (row[0], row[1], row[2]) for row in wanted.select(ORDINAL, SOURCE_FILE, SOURCE_LINE).collect()
        ]
    return {ids[ordinal]: source_of(part, file, line) for ordinal, file, line in found}
