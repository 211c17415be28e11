"""Outputs to Delta and Iceberg tables: staged below the run, and then committed once for each run and step.

Rows are staged first, so that what is committed is counted, a merge reads it as often as it likes, and little time
passes between asking for the lease and the commit. Whether a run and step has committed already is in the table itself:
Delta compares the transaction of an application while it commits, Iceberg's snapshots carry a property that is looked
up before. So a retry after a commit that nobody heard of adds nothing.
"""

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import OUTPUT_CONFLICT
from clew.engine.blame import SPARK_ERRORS
from clew.engine.counting import counted, require_rows, rows_in
from clew.engine.output.files import refused
from clew.engine.output.places import OutputPlace
from clew.engine.sql import quoted, text_literal
from clew.plan.operations import OutputStep
from clew.plan.operations.output import NEW_COLUMNS, PERIOD_COLUMN, UPSERT_BY
from clew.storage.drafts import Draft, draft
from clew.storage.layout import scratch_folder
from clew.storage.root import StorageRoot

LAKE_FORMATS = frozenset({"delta", "iceberg"})
_DELTA_SETTINGS = {
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
}
"""What a statement takes from the session, where a write takes options."""
_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
OWNER_PROPERTY = "clew.output"
"""In the summary of a snapshot: the run and step that have committed it."""


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Rows that wait to be committed to a table."""

    draft: Draft
    count: int
    commit: "_Commit"

    def publish(self) -> None:
        """Commit them, unless this run and step have done so already."""
        try:
            self.commit.write()
        finally:
            self.draft.abandon()

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

    def stage(self, rows: DataFrame, step: OutputStep, place: OutputPlace) -> StagedRows:
        """Write the rows of a step below the run, and check what can be checked about them."""
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
        return StagedRows(staged, found, _Commit(waiting, step, place, tuple(self.periods), about))

    def _require_fit(self, rows: DataFrame, step: OutputStep, place: OutputPlace) -> None:
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


@dataclass(frozen=True)
class _Commit:
    """One commit to a table."""

    rows: DataFrame
    step: OutputStep
    place: OutputPlace
    periods: tuple[str, ...]
    about: Mapping[str, str | int] = field(default_factory=dict)

    def write(self) -> None:
        """Commit the rows once."""
        format_ = self.step.destination.format or ""
        try:
            if format_ == "delta":
                self._delta()
            else:
                self._iceberg()
        except SPARK_ERRORS as error:
            told = refused(error, self.step, format_, self.place.shown)
            if told is None:
                raise
            raise told from error

    @property
    def _owner(self) -> str:
        return self.place.attempt.owner

    @property
    def _options(self) -> dict[str, str]:
        return {name: value for name, value in self.place.options.items() if name not in {UPSERT_BY, NEW_COLUMNS}}

    @property
    def _of_periods(self) -> str:
        return f"{PERIOD_COLUMN} IN ({', '.join(map(text_literal, self.periods))})"

    @property
    def _same(self) -> str:
        return " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in self.step.upsert_by)

    # Delta

    def _delta(self) -> None:
        once = {"txnAppId": self._owner, "txnVersion": "1", "userMetadata": json.dumps(self.about)}
        target = f"delta.`{self.place.spark_uri.replace('`', '``')}`"
        if self.step.mode == "upsert" and self._has_delta():
            if self.step.adds_columns:
                self._add_columns(target)
            settings = {_DELTA_SETTINGS[name]: value for name, value in once.items()}
            with _settings(self.rows.sparkSession, settings):
                self._merge(target, f"ON {self._same} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")
            return
        options = {**self._options, **once}
        if self.step.adds_columns:
            options["mergeSchema"] = "true"
        if self.step.mode == "replace_period":
            options["replaceWhere"] = self._of_periods
        mode = "overwrite" if self.step.mode in {"overwrite", "replace_period"} else "append"
        self.rows.write.format("delta").options(**options).mode(mode).save(self.place.spark_uri)

    def _has_delta(self) -> bool:
        """Whether there is a table; a new one has no schema to read."""
        try:
            return bool(self.rows.sparkSession.read.format("delta").load(self.place.spark_uri).columns)
        except SPARK_ERRORS as error:
            if "DELTA_TABLE_NOT_FOUND" in str(error) or "PATH_NOT_FOUND" in str(error):
                return False
            raise

    # Iceberg

    def _iceberg(self) -> None:
        """Write through a catalog of folders for the time being: a path alone names no table that could be created."""
        spark = self.rows.sparkSession
        folder, _, name = self.place.spark_uri.rstrip("/").rpartition("/")
        catalog = f"clew_{uuid.uuid4().hex[:12]}"
        settings = {
            f"spark.sql.catalog.{catalog}": "org.apache.iceberg.spark.SparkCatalog",
            f"spark.sql.catalog.{catalog}.type": "hadoop",
            f"spark.sql.catalog.{catalog}.warehouse": folder,
            f"spark.sql.catalog.{catalog}.cache-enabled": "false",
            _SNAPSHOT_PROPERTY + OWNER_PROPERTY: self._owner,
            **{f"{_SNAPSHOT_PROPERTY}{key.replace('_', '.')}": str(value) for key, value in self.about.items()},
        }
        with _settings(spark, settings):
            self._to_catalog(f"{catalog}.{quoted(name)}")

    def _to_catalog(self, table: str) -> None:
        spark, mode = self.rows.sparkSession, self.step.mode
        writer = self.rows.writeTo(table).options(**self._options)
        if not spark.catalog.tableExists(table):
            writer.using("iceberg").create()
            return
        if self._is_committed(table):
            return
        if self.step.adds_columns:
            self._add_columns(table)
        if mode == "append":
            writer.append()
        elif mode == "overwrite":
            writer.overwrite(F.expr("TRUE"))
        elif mode == "replace_period":
            taken = f"WHEN NOT MATCHED BY SOURCE AND t.{self._of_periods} THEN DELETE"
            self._merge(table, f"ON FALSE WHEN NOT MATCHED THEN INSERT * {taken}")
        else:
            self._merge(table, f"ON {self._same} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")

    def _is_committed(self, table: str) -> bool:
        snapshots = self.rows.sparkSession.table(f"{table}.snapshots")
        own = snapshots.where(F.col("summary")[OWNER_PROPERTY] == self._owner)
        return bool(own.limit(1).collect())

    # Both

    def _add_columns(self, table: str) -> None:
        """Add what the table lacks. Columns alone change no row, so doing it again does no harm."""
        spark = self.rows.sparkSession
        known = {field.name.casefold() for field in spark.table(table).schema}
        new = [each for each in self.rows.schema if each.name.casefold() not in known]
        if new:
            listed = ", ".join(f"{quoted(each.name)} {each.dataType.simpleString()}" for each in new)
            spark.sql(f"ALTER TABLE {table} ADD COLUMNS ({listed})")

    def _merge(self, table: str, how: str) -> None:
        view = f"clew_{uuid.uuid4().hex[:12]}"
        self.rows.createOrReplaceTempView(view)
        try:
            self.rows.sparkSession.sql(f"MERGE INTO {table} AS t USING {view} AS s {how}")
        finally:
            self.rows.sparkSession.catalog.dropTempView(view)


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for the time being."""
    before: dict[str, str | None] = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            if known is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, known)
