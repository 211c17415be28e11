"""One commit to a Delta or Iceberg table, by its folder or by its name in a catalog.

Whether a run and step has committed already is in the table itself: Delta compares the transaction of an application
while it commits, Iceberg's snapshots carry a property that is looked up before. So a retry after a commit that nobody
heard of adds nothing. A commit that takes rows away is refused where others have come in between. An append is not:
Iceberg lets it through, and its branches, which could tell, lose commits that come while they change.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.engine.blame import SPARK_ERRORS
from clew.engine.loading.table_inputs import TABLE_FORMATS
from clew.engine.output.catalog_targets import CatalogTarget
from clew.engine.output.files import refused
from clew.engine.output.places import OutputPlace
from clew.engine.sql import quoted, text_literal
from clew.plan.operations import OutputStep
from clew.plan.operations.output import CREATE_MISSING, NEW_COLUMNS, PERIOD_COLUMN, UPSERT_BY
from clew.storage.root import StorageRoot
from clew.storage.tables.table_versions import LocatedTable

_DELTA_SETTINGS = {
    "txnAppId": "spark.databricks.delta.write.txnAppId",
    "txnVersion": "spark.databricks.delta.write.txnVersion",
    "userMetadata": "spark.databricks.delta.commitInfo.userMetadata",
}
"""What a statement takes from the session, where a write takes options."""
_SNAPSHOT_PROPERTY = "spark.sql.iceberg.snapshot-property."
OWNER_PROPERTY = "clew.output"
"""In the summary of a snapshot: the run and step that have committed it."""
_OF_THE_OPERATION = frozenset({UPSERT_BY, NEW_COLUMNS, CREATE_MISSING})


@dataclass(frozen=True)
class LakeCommit:
    """One commit to a table."""

    rows: DataFrame
    step: OutputStep
    place: OutputPlace | CatalogTarget
    periods: tuple[str, ...]
    about: Mapping[str, str | int] = field(default_factory=dict)

    def write(self) -> None:
        """Commit the rows once."""
        try:
            if isinstance(self.place, CatalogTarget):
                self._by_name(self.place)
            elif self._format == "delta":
                self._delta_folder(self.place)
            else:
                self._iceberg_folder(self.place)
        except SPARK_ERRORS as error:
            told = refused(error, self.step, self._format, self.place.shown, self.rows.sparkSession)
            if told is None:
                raise
            raise told from error

    def located(self, root: StorageRoot) -> LocatedTable | None:
        """Where the table lies, seen from a storage root; None where its own files cannot be read from here."""
        if isinstance(self.place, CatalogTarget):
            return self.place.located(self.rows.sparkSession, root)
        return LocatedTable(self.place.table_place, self.place.shown, TABLE_FORMATS[self._format])

    @property
    def _format(self) -> str:
        return self.step.destination.format or ""

    @property
    def _owner(self) -> str:
        return self.place.attempt.owner

    @property
    def _options(self) -> dict[str, str]:
        return {name: value for name, value in self.place.options.items() if name not in _OF_THE_OPERATION}

    @property
    def _of_periods(self) -> str:
        return f"{PERIOD_COLUMN} IN ({', '.join(map(text_literal, self.periods))})"

    @property
    def _same(self) -> str:
        return " AND ".join(f"t.{quoted(name)} <=> s.{quoted(name)}" for name in self.step.upsert_by)

    @property
    def _once(self) -> dict[str, str]:
        """What Delta remembers a commit by."""
        return {"txnAppId": self._owner, "txnVersion": "1", "userMetadata": json.dumps(self.about)}

    @property
    def _delta_settings(self) -> dict[str, str]:
        return {_DELTA_SETTINGS[name]: value for name, value in self._once.items()}

    @property
    def _iceberg_settings(self) -> dict[str, str]:
        """What goes into the summary of Iceberg's snapshot."""
        about = {f"{_SNAPSHOT_PROPERTY}{key.replace('_', '.')}": str(value) for key, value in self.about.items()}
        return {_SNAPSHOT_PROPERTY + OWNER_PROPERTY: self._owner, **about}

    # Folders

    def _delta_folder(self, place: OutputPlace) -> None:
        target = f"delta.`{place.spark_uri.replace('`', '``')}`"
        if self.step.mode == "upsert" and self._has_delta(place):
            if self.step.adds_columns:
                self._add_columns(target)
            with _settings(self.rows.sparkSession, self._delta_settings):
                self._upsert(target)
            return
        options = {**self._options, **self._once}
        if self.step.adds_columns:
            options["mergeSchema"] = "true"
        if self.step.mode == "replace_period":
            options["replaceWhere"] = self._of_periods
        mode = "overwrite" if self.step.mode in {"overwrite", "replace_period"} else "append"
        self.rows.write.format("delta").options(**options).mode(mode).save(place.spark_uri)

    def _has_delta(self, place: OutputPlace) -> bool:
        """Whether there is a table; a new one has no schema to read."""
        try:
            return bool(self.rows.sparkSession.read.format("delta").load(place.spark_uri).columns)
        except SPARK_ERRORS as error:
            if "DELTA_TABLE_NOT_FOUND" in str(error) or "PATH_NOT_FOUND" in str(error):
                return False
            raise

    def _iceberg_folder(self, place: OutputPlace) -> None:
        """Write through a catalog of folders for the time being: a path alone names no table that could be created."""
        spark = self.rows.sparkSession
        folder, _, name = place.spark_uri.rstrip("/").rpartition("/")
        catalog = f"clew_{uuid.uuid4().hex[:12]}"
        settings = {
            f"spark.sql.catalog.{catalog}": "org.apache.iceberg.spark.SparkCatalog",
            f"spark.sql.catalog.{catalog}.type": "hadoop",
            f"spark.sql.catalog.{catalog}.warehouse": folder,
            f"spark.sql.catalog.{catalog}.cache-enabled": "false",
            **self._iceberg_settings,
        }
        table = f"{catalog}.{quoted(name)}"
        with _settings(spark, settings):
            if spark.catalog.tableExists(table):
                self._iceberg(table)
            else:
                self.rows.writeTo(table).options(**self._options).using("iceberg").create()

    # Catalogs

    def _by_name(self, target: CatalogTarget) -> None:
        spark = self.rows.sparkSession
        settings = self._delta_settings if self._format == "delta" else self._iceberg_settings
        once = self._once if self._format == "delta" else {}
        with _settings(spark, settings), target.told(spark, self.step):
            if not target.exists(spark):
                target.make_room(spark, self.step)
                self.rows.writeTo(target.sql).options(**self._options, **once).using(self._format).create()
            elif self._format == "iceberg":
                # What this session remembers of the table may be older than the commit of another worker.
                spark.sql(f"REFRESH TABLE {target.sql}")
                self._iceberg(target.sql)
            else:
                self._delta(target.sql)

    def _delta(self, table: str) -> None:
        if self.step.adds_columns:
            self._add_columns(table)
        writer = self.rows.writeTo(table).options(**self._options, **self._once)
        if self.step.mode == "append":
            writer.append()
        elif self.step.mode == "overwrite":
            writer.overwrite(F.expr("TRUE"))
        elif self.step.mode == "replace_period":
            writer.overwrite(F.expr(self._of_periods))
        else:
            self._upsert(table)

    def _iceberg(self, table: str) -> None:
        seen = self._current(table) if self.step.mode == "overwrite" else None
        if self._is_committed(table):
            return
        if self.step.adds_columns:
            self._add_columns(table)
        writer = self.rows.writeTo(table).options(**self._options)
        if self.step.mode == "append":
            writer.append()
        elif self.step.mode == "overwrite":
            if seen is not None:
                writer = writer.option("validate-from-snapshot-id", str(seen))
            writer.option("isolation-level", "serializable").overwrite(F.expr("TRUE"))
        elif self.step.mode == "replace_period":
            taken = f"WHEN NOT MATCHED BY SOURCE AND t.{self._of_periods} THEN DELETE"
            self._merge(table, f"ON FALSE WHEN NOT MATCHED THEN INSERT * {taken}")
        else:
            self._upsert(table)

    def _current(self, table: str) -> int | None:
        """The snapshot that everybody reads; None where there is none yet."""
        main = self.rows.sparkSession.table(f"{table}.refs").where("name = 'main'").select("snapshot_id").collect()
        return int(main[0][0]) if main else None

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

    def _upsert(self, table: str) -> None:
        self._merge(table, f"ON {self._same} WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *")

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
