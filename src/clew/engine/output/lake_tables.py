"""Outputs to Delta and Iceberg tables: staged below the run, and then committed once for each run and step.

Rows are staged first, so that what is committed is counted, a merge reads it as often as it likes, and little time
passes between asking for the lease and the commit.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.engine.counting import counted, require_rows, rows_in
from clew.engine.loading.table_inputs import TABLE_FORMATS
from clew.engine.output.catalog_targets import CatalogTarget
from clew.engine.output.lake_commits import LakeCommit
from clew.engine.output.places import OutputPlace
from clew.engine.sql import quoted
from clew.plan.operations import OutputStep
from clew.plan.operations.output import PERIOD_COLUMN
from clew.storage.drafts import Draft, draft
from clew.storage.layout import scratch_folder
from clew.storage.root import StorageRoot
from clew.storage.tables.table_snapshot import ROW_ID_COLUMNS
from clew.storage.tables.table_versions import LocatedTable

LAKE_FORMATS = frozenset(TABLE_FORMATS)
_ROW_ID = "_row_id"


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows that wait to be committed to a table."""

    draft: Draft
    count: int
    commit: LakeCommit

    def publish(self) -> None:
        """Commit them, unless this run and step have done so already."""
        try:
            self.commit.write()
        finally:
            self.draft.abandon()

    def located(self) -> LocatedTable | None:
        """The table that they were committed to; None where its own files cannot be read from here."""
        return self.commit.located(self.draft.root)

    def discard(self) -> None:
        """Delete them."""
        self.draft.abandon()


@dataclass(frozen=True, slots=True)
class LakeOutputs:
    """Writes the outputs of one run to tables."""

    run_id: str
    root: StorageRoot
    """Where rows are staged."""
    periods: Sequence[str]
    """The periods whose rows the run replaces: its own, and those below it."""
    project: str = ""

    def stage(self, rows: DataFrame, step: OutputStep, place: OutputPlace | CatalogTarget) -> StagedRows:
        """Write the rows of a step below the run, and check what can be checked about them."""
        if isinstance(place, CatalogTarget):
            place.require_fit(rows.sparkSession, step)
        rows = rows.withColumnRenamed(_ROW_ID, ROW_ID_COLUMNS[step.destination.format or ""])
        staged = draft(self.root, scratch_folder(self.run_id, str(step.seq)))
        try:
            written, count = counted(rows)
            written.write.parquet(staged.spark_uri)
            found = rows_in(self.root, [file.key for file in staged.files(".parquet")])
            require_rows(found, count(), place=f"{self.root.address}/{staged.folder}")
            waiting = rows.sparkSession.read.schema(rows.schema).parquet(staged.spark_uri)
            self._require_fit(waiting, step, place)
        except BaseException:
            staged.abandon()
            raise
        about: dict[str, str | int] = {"clew_run": self.run_id, "clew_step": step.seq, "clew_project": self.project}
        return StagedRows(staged, found, LakeCommit(waiting, step, place, tuple(self.periods), about))

    def _require_fit(self, rows: DataFrame, step: OutputStep, place: OutputPlace | CatalogTarget) -> None:
        if step.mode == "replace_period":
            others = rows.where(~F.coalesce(F.col(PERIOD_COLUMN).isin(*self.periods), F.expr("FALSE")))
            found = others.select(PERIOD_COLUMN).limit(1).collect()
            if found:
                problem = (
                    f'rows of the period "{found[0][0]}" cannot replace those of "{self.periods[0]}" in {place.shown}'
                )
                raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint="leave them out with a selector"))
        if step.mode == "upsert":
            keys = [quoted(name) for name in step.upsert_by]
            twice = rows.groupBy(*keys).count().where("count > 1").limit(1).collect()
            if twice:
                problem = f"cannot upsert to {place.shown}: two rows have the same {', '.join(step.upsert_by)}"
                hint = "add columns to upsert_by, or leave rows out with a selector"
                raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint))
