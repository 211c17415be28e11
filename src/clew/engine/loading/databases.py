"""Rows of database tables: through Spark where there is a JDBC driver, else through a reader of batches."""

import re
from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from clew.definitions import DatabaseDatasource
from clew.definitions.dataset import PERIOD_COLUMN
from clew.engine.blame import SPARK_ERRORS
from clew.engine.loading.columnar import fields_of_schema, frame_rows
from clew.engine.loading.conversions import BROKEN, RawCell, RawRows, TextCell
from clew.engine.loading.periods import periods_read
from clew.engine.loading.sources import Origin, PinRequest, positions_of, unavailable
from clew.engine.reasons import reason_of
from clew.engine.sql import quoted
from clew.engine.sql.literals import text_literal
from clew.plan.datasets import TableAddress
from clew.storage.drafts import Draft
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE

_DRIVER_SAYS = re.compile(r"(?:java\.sql|org\.postgresql)\.[\w.]*Exception: (.*)")
_DRIVERS = {
    "mariadb": "org.mariadb.jdbc.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "oracle": "oracle.jdbc.OracleDriver",
    "postgresql": "org.postgresql.Driver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
}
_FETCH_SIZE = "10000"
"""Rows that a JDBC driver takes from the server at a time; PostgreSQL's takes all where nothing is said."""


def jdbc_rows(
    spark: SparkSession,
    request: PinRequest,
    datasource: DatabaseDatasource,
    table: str,
    password: str | None,
    origin: Origin,
) -> RawRows:
    """The rows of a table through a JDBC driver."""
    options = datasource.options
    settings = {"url": options.url, "dbtable": f"{options.schema}.{table}" if options.schema else table}
    settings["fetchsize"] = _FETCH_SIZE
    settings["preferTimestampNTZ"] = "true"
    driver = options.driver or driver_of(options.url)
    if driver is not None:
        settings["driver"] = driver
    if password is not None:
        settings["password"] = password
    try:
        rows = spark.read.format("jdbc").options(**settings).load()
        fields = fields_of_schema(rows.schema)
    except SPARK_ERRORS as error:
        reason = hidden(driver_says(error) or reason_of(error), password)
        raise unavailable(f'cannot read the table {table} of "{datasource.id}": {reason}') from None
    own_period = [name for name, _ in fields if name.casefold() == PERIOD_COLUMN]
    if request.use.temporal_mode == "period" and len(own_period) == 1:
        rows = rows.where(F.col(quoted(own_period[0])).isin(*periods_read(request.period, request.periods)))
    return frame_rows(request.use, rows, fields, origin)


def transferred_rows(
    spark: SparkSession,
    request: PinRequest,
    datasource: DatabaseDatasource,
    table: str,
    password: str | None,
    origin: Origin,
    transfer: Draft,
    name: str,
) -> RawRows:
    """The rows of a table, brought over batch by batch as texts into a file, and read from there."""
    if request.tables is None:
        raise unavailable(f'the tables of "{datasource.id}" cannot be read here', "use a jdbc: address with a driver")
    address = TableAddress(datasource.options.url, datasource.options.schema, table, password)
    names = request.tables.columns(address)
    positions = positions_of(request.use, names, origin)
    columns = [names[position] for position in dict.fromkeys(positions.values())]
    periods = None
    if request.use.temporal_mode == "period" and PERIOD_COLUMN in positions:
        periods = names[positions[PERIOD_COLUMN]], periods_read(request.period, request.periods)
    with transfer.create(name) as file:
        _store(request.tables.read(address, columns, periods), columns, file)
    schema = ", ".join(f"{quoted(column)} STRING" for column in columns)
    rows = spark.read.schema(schema).parquet(transfer.root.spark_uri(f"{transfer.folder}/{name}"))
    cells: dict[str, RawCell] = {name: TextCell(quoted(names[position])) for name, position in positions.items()}
    if request.use.temporal_mode == "period" and PERIOD_COLUMN not in cells and origin.period is not None:
        cells[PERIOD_COLUMN] = TextCell(text_literal(origin.period))
    placed = rows.select(
        "*",
        F.lit(origin.shown).alias(SOURCE_FILE),
        F.lit(None).cast("BIGINT").alias(SOURCE_LINE),
        F.lit(None).cast("STRING").alias(BROKEN),
    )
    return RawRows(placed, cells)


def _store(batches: Iterator[pa.RecordBatch], columns: list[str], file: BinaryIO) -> None:
    schema = pa.schema([(name, pa.string()) for name in columns])
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch)


def driver_of(url: str) -> str | None:
    """The class of the driver for an address, where it is well known: Spark would not find it in a separate jar."""
    return _DRIVERS.get(url.split(":")[1]) if url.count(":") > 1 else None


def driver_says(error: Exception) -> str | None:
    """What the driver of a database complains about, without Spark's words around it; None where it does not."""
    cause = _DRIVER_SAYS.search(str(error))
    return cause[1].strip() if cause is not None else None


def hidden(text: str, password: str | None) -> str:
    """A message without the password, should a driver quote it."""
    return text.replace(password, "***") if password else text
