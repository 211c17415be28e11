"""Tables of Spark catalogs as destinations: what may be created there, and what a catalog says against it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field

from pyspark.sql import SparkSession

from clew.deferred import dataclass
from clew.definitions import CatalogDatasource
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.engine import DESTINATION_UNAVAILABLE, OUTPUT_CONFLICT
from clew.engine.blame import SPARK_ERRORS
from clew.engine.loading.catalog_tables import catalog_problem, knows_catalog, look_up, unknown_catalog
from clew.engine.output.attempts import OutputAttempt
from clew.engine.sql import quoted
from clew.plan.operations import OutputStep
from clew.storage.root import StorageRoot
from clew.storage.tables.table_snapshot import UnsupportedTable
from clew.storage.tables.table_versions import LocatedTable


@dataclass(frozen=True, slots=True)
class CatalogTarget:
    """A table of a catalog that an output goes to."""

    datasource: CatalogDatasource
    pieces: tuple[str, ...]
    """Catalog, schema and table."""
    attempt: OutputAttempt
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def shown(self) -> str:
        """The table as messages name it."""
        return ".".join(self.pieces)

    @property
    def sql(self) -> str:
        """The same for a statement."""
        return ".".join(map(quoted, self.pieces))

    @property
    def _schema(self) -> str:
        return ".".join(map(quoted, self.pieces[:-1]))

    def exists(self, spark: SparkSession) -> bool:
        """Whether the catalog has the table."""
        return spark.catalog.tableExists(self.sql)

    def require_fit(self, spark: SparkSession, step: OutputStep) -> None:
        """Report what can be told before anything is written: the table is of another kind, or may not be created."""
        if not knows_catalog(spark, self.pieces[0]):
            problem, hint = unknown_catalog(self.datasource)
            raise UserError(DESTINATION_UNAVAILABLE.at(step.place, problem=problem, hint=hint))
        with self.told(spark, step):
            if not self.exists(spark):
                self._require_room(spark, step)
                return
            found = look_up(spark, self.datasource, self.shown)
        if found.format == step.destination.format:
            return
        kind = f"a table of the format {found.format}" if found.format is not None else "not a Delta or Iceberg table"
        problem = f"cannot write {self.shown} as {step.destination.format}: it is {kind}"
        raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint="name another table, or its format"))

    def make_room(self, spark: SparkSession, step: OutputStep) -> None:
        """Create the schema of a new table, where the output says that it may."""
        self._require_room(spark, step)
        if step.creates == "schema":
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {self._schema}")

    def _require_room(self, spark: SparkSession, step: OutputStep) -> None:
        where = f'the catalog "{self.pieces[0]}" of "{self.datasource.id}"'
        if step.creates == "nothing":
            hint = "create the table, or set create_missing: table"
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=f"{where} has no table {self.shown}", hint=hint))
        if step.creates == "table" and not spark.catalog.databaseExists(self._schema):
            problem = f"{where} has no schema {'.'.join(self.pieces[1:-1])}, which {self.shown} would be in"
            hint = "create the schema, or set create_missing: schema"
            raise UserError(OUTPUT_CONFLICT.at(step.place, problem=problem, hint=hint))

    @contextmanager
    def told(self, spark: SparkSession, step: OutputStep) -> Iterator[None]:
        """Say what an error of the catalog means, where the catalog is to blame."""
        try:
            yield
        except SPARK_ERRORS as error:
            found = catalog_problem(spark, self.datasource, self.shown, error, action="write")
            if found is None:
                raise
            problem, hint = found
            raise UserError(DESTINATION_UNAVAILABLE.at(step.place, problem=problem, hint=hint)) from None

    def located(self, spark: SparkSession, root: StorageRoot) -> LocatedTable | None:
        """Where the table lies; None where its own files cannot be read from here."""
        try:
            return look_up(spark, self.datasource, self.shown).located(spark, root)
        except (UnsupportedTable, ClewError):
            return None
