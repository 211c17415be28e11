"""Tables of Spark catalogs: what a name means, where the table lies, in which format and, through Spark, its rows.

A catalog is asked on the driver, once for each table. Delta and Iceberg tables are then pinned by their own files like
tables that are named by a path; whatever has no versions is read through Spark and copied, with the reason on record.
"""

# ruff: noqa: S608 - names are quoted

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from pyspark.sql import DataFrame, SparkSession

from clew.deferred import dataclass
from clew.definitions import CatalogDatasource
from clew.definitions.datasource import SESSION_CATALOG
from clew.definitions.storage_addresses import BadAddress
from clew.engine.blame import SPARK_ERRORS
from clew.engine.loading.columnar import fields_of_schema, frame_rows
from clew.engine.loading.conversions import RawRows
from clew.engine.loading.sources import Origin, unavailable
from clew.engine.reasons import reason_of
from clew.engine.sql import quoted
from clew.engine.store_settings import make_reachable
from clew.plan.datasets import DatasetUse
from clew.plan.local_files import literal_path
from clew.storage.root import StorageRoot
from clew.storage.tables.table_places import TablePlace, is_remote, place_at
from clew.storage.tables.table_snapshot import TableFormat, UnsupportedTable
from clew.storage.tables.table_versions import LocatedTable

_FORMATS: Mapping[str, TableFormat] = {"delta": "delta", "iceberg": "iceberg"}
_NO_SUCH_TABLE = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "NAMESPACE_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "NoSuchTableException",
    "NoSuchNamespaceException",
)
_NO_SUCH_CATALOG = ("CATALOG_NOT_FOUND", "Cannot find catalog plugin class")
_NO_PERMISSION = re.compile(
    r"Forbidden|NotAuthorized|AccessControlException|AccessDenied|Permission denied|PERMISSION|not authorized",
    re.IGNORECASE,
)
_FILTERS = ("# Row Filter", "# Column Masks")
"""Sections in which a catalog says that not everyone may see everything in a table."""


@dataclass(frozen=True, slots=True)
class CatalogTable:
    """A table or view of a catalog, as the catalog describes it."""

    name: str
    """Catalog, schema and table."""
    sql: str
    """The same for a statement."""
    format: TableFormat | None
    location: str | None
    metadata: str | None
    """Iceberg's metadata file."""
    reason: str | None
    """Why its rows can be had through Spark only; None where its own files will do."""

    def located(self, spark: SparkSession, root: StorageRoot) -> LocatedTable:
        """Where its own files are, as the environment of a storage root reaches them.

        UnsupportedTable where they will not do. A catalog may lend Spark credentials that nobody has who reads later.
        """
        if self.reason is not None or self.format is None or self.location is None:
            raise UnsupportedTable(self.reason or "its catalog does not say where it lies")
        try:
            place = place_at(root, self.location)
        except BadAddress as error:
            raise UnsupportedTable(f"its place cannot be opened: {error}") from None
        metadata = None if self.metadata is None else place.absolute(self.metadata)
        if is_remote(self.location):
            _require_reached(spark, place, metadata)
        return LocatedTable(place, self.name, self.format, metadata)


def _require_reached(spark: SparkSession, place: TablePlace, metadata: str | None) -> None:
    """Both this process and Spark must reach a store by the settings of the environment, and not by the catalog's."""
    own = "its store is reached through its catalog only"
    try:
        key = next((file.key for file in place.root.files(_METADATA_FOLDERS[metadata is not None])), None)
    except OSError as error:
        raise UnsupportedTable(f"{own}: {error.strerror or error}") from None
    if key is None:
        raise UnsupportedTable(f"{own}: nothing is at {place.address}")
    make_reachable(spark, place.root)
    try:
        spark.read.schema("path STRING").format("binaryFile").load(literal_path(place.root.spark_uri(key)))
    except SPARK_ERRORS as error:
        raise UnsupportedTable(f"{own}: {reason_of(error)}") from None


_METADATA_FOLDERS = {True: "metadata", False: "_delta_log"}
"""Where tables of catalogs keep their metadata: those that name a file of it, and those that do not."""


def look_up(spark: SparkSession, datasource: CatalogDatasource, written: str) -> CatalogTable:
    """What a catalog says about a table. UserError where it has none, or does not let us see it."""
    pieces = _full_name(datasource, written)
    name, sql = ".".join(pieces), ".".join(map(quoted, pieces))
    with _told(spark, datasource, name):
        rows = [(str(row[0]), str(row[1])) for row in spark.sql(f"DESCRIBE TABLE EXTENDED {sql}").collect()]
    known = dict(rows)
    provider = known.get("Provider", "").casefold()
    format_ = _FORMATS.get(provider)
    metadata = None
    reason = _reason(known, provider)
    if format_ == "iceberg" and reason is None:
        with _told(spark, datasource, name):
            metadata = _iceberg_metadata(spark, sql)
    return CatalogTable(name, sql, format_, known.get("Location"), metadata, reason)


def _full_name(datasource: CatalogDatasource, written: str) -> tuple[str, ...]:
    pieces = datasource.full_name(written)
    if pieces is None:
        raise unavailable(f'"{written}" is not the name of a table', "write schema.table, or catalog.schema.table")
    return pieces


def _reason(known: Mapping[str, str], provider: str) -> str | None:
    """Why a table cannot be read by its own files."""
    if known.get("Type", "").upper().endswith("VIEW"):
        return "it is a view, whose rows are not kept"
    if any(section in known for section in _FILTERS):
        return "its catalog filters rows or masks columns"
    if provider not in _FORMATS:
        return f"a {provider or 'plain'} table keeps no versions"
    return None


def _iceberg_metadata(spark: SparkSession, sql: str) -> str | None:
    """The metadata file that the catalog says is current."""
    entries = spark.sql(f"SELECT file FROM {sql}.metadata_log_entries ORDER BY timestamp DESC LIMIT 1").collect()
    return str(entries[0][0]) if entries else None


def catalog_rows(
    spark: SparkSession, datasource: CatalogDatasource, table: CatalogTable, use: DatasetUse, origin: Origin
) -> tuple[RawRows, str | None]:
    """The rows of a table through Spark, in its newest version, and that version; None where it has none."""
    with _told(spark, datasource, table.name):
        version = _newest(spark, table)
        travelled = "" if version is None else f" VERSION AS OF {version}"
        rows: DataFrame = spark.sql(f"SELECT * FROM {table.sql}{travelled}")
        fields = fields_of_schema(rows.schema)
    return frame_rows(use, rows, fields, origin), version


def _newest(spark: SparkSession, table: CatalogTable) -> str | None:
    match table.format:
        case "delta":
            found = spark.sql(f"DESCRIBE HISTORY {table.sql} LIMIT 1").select("version").collect()
        case "iceberg":
            found = spark.sql(f"SELECT snapshot_id FROM {table.sql}.refs WHERE name = 'main'").collect()
        case None:
            return None
    return str(found[0][0]) if found else None


@contextmanager
def _told(spark: SparkSession, datasource: CatalogDatasource, name: str) -> Iterator[None]:
    """Say what an error of a catalog means."""
    try:
        yield
    except SPARK_ERRORS as error:
        found = catalog_problem(spark, datasource, name, error, action="read")
        if found is None:
            where = f'the catalog "{datasource.options.catalog}" of "{datasource.id}"'
            found = f"cannot read {name} of {where}: {reason_of(error)}", None
        raise unavailable(*found) from None


def catalog_problem(
    spark: SparkSession,
    datasource: CatalogDatasource,
    name: str,
    error: Exception,
    *,
    action: Literal["read", "write"],
) -> tuple[str, str | None] | None:
    """What an error says about a catalog, and what to do; None where the catalog is not to blame."""
    text, catalog = str(error), datasource.options.catalog
    where = f'the catalog "{catalog}" of "{datasource.id}"'
    is_absent = any(word in text for word in _NO_SUCH_TABLE)
    if any(word in text for word in _NO_SUCH_CATALOG) or (is_absent and not knows_catalog(spark, catalog)):
        return unknown_catalog(datasource)
    if is_absent:
        return f"{where} has no table {name}", f"correct the table of the {'rule' if action == 'read' else 'output'}"
    if _NO_PERMISSION.search(text):
        right = "SELECT" if action == "read" else "MODIFY and CREATE TABLE"
        problem = f"{where} does not let this user {action} {name}: {reason_of(error)}"
        return problem, f"ask the owner of the catalog for {right} on the table"
    return None


def unknown_catalog(datasource: CatalogDatasource) -> tuple[str, str]:
    """That Spark has no catalog of a name, and what to do."""
    catalog = datasource.options.catalog
    hint = f"set spark.sql.catalog.{catalog} under spark.config, or correct `catalog` of the datasource"
    return f'Spark does not know the catalog "{catalog}" of "{datasource.id}"', hint


def knows_catalog(spark: SparkSession, catalog: str) -> bool:
    """Whether Spark has a catalog. The name of one that it does not know is taken for a schema of its own."""
    if catalog == SESSION_CATALOG or spark.conf.get(f"spark.sql.catalog.{catalog}", None) is not None:
        return True
    try:
        return any(each.name == catalog for each in spark.catalog.listCatalogs())
    except SPARK_ERRORS:
        return True
