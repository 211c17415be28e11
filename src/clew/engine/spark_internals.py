"""Everything that Clew uses of PySpark without a promise that it stays, in one place.

Each function says what the public interface lacks. `spark_versions.py` bounds the version of PySpark, and
`tests/engine/test_spark_internals.py` fails if one of these has changed.
"""

import atexit
import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import IO, Any

import pyarrow as pa
from py4j.java_gateway import JavaGateway, JavaObject  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The variable by which `spark-submit` tells a Python process where its JVM listens."""

_SESSION_ID = "session_id"
"""In the address of a Connect server: the session that is meant."""

QUERY_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
"""In Python: they write every error of a query to stderr before it can be caught. Only the source names them."""


def launched(conf: SparkConf, stderr: IO[bytes] | None) -> JavaGateway | None:
    """The way to a new JVM; None where an earlier attempt has left one, which the context finds by itself.

    A context that starts its own JVM lets it write to the terminal. `SparkContext` takes a gateway as a public
    argument, but only an undocumented module makes one.
    """
    if SparkContext._gateway is not None:  # noqa: SLF001 - a second JVM would be of no use
        return None
    gateway: JavaGateway = launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call]
    return gateway


def is_connected(spark: SparkSession) -> bool:
    """Whether a session is one of Spark Connect. Both kinds share a public class, which does not tell."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def session_beside(session: SparkSession) -> SparkSession:
    """A new session on the same Spark, with settings and temporary views to itself.

    On Spark Connect, `newSession` is there from Spark 4.3 on. Only the client of a session knows where its server is
    and how to sign in there, and the id of the session may be a part of that.
    """
    if not is_connected(session):
        return session.newSession()
    channels = copy(_client_of(session)._builder)  # noqa: SLF001 - see above
    channels._params = {name: value for name, value in channels._params.items() if name != _SESSION_ID}  # noqa: SLF001
    # The builder of sessions would make it the active one of this thread, where that has none.
    beside: SparkSession = type(session)(connection=channels)  # type: ignore[call-arg]
    atexit.register(_release, beside)
    return beside


def forget_session(session: SparkSession) -> None:
    """Close a session on Spark Connect that its server no longer has, so that it is not the active one any more."""
    session.release_session_on_close = False  # type: ignore[attr-defined] # there is nothing to release
    session.stop()


def _release(session: SparkSession) -> None:
    """Give a session back to its server, and close the connection.

    A connection that is still open when Python takes itself apart waits forever for threads that are gone. `stop` would
    also end a server that was started for a session of others.
    """
    client = _client_of(session)
    with suppress(Exception):  # the server may be gone
        client.release_session()
    client.close()


def _client_of(session: SparkSession) -> Any:  # noqa: ANN401 - its type takes the libraries of Spark Connect
    return session.client  # type: ignore[operator] # a property that PySpark declares as something else


def submitted_configuration() -> dict[str, str]:
    """What `spark-submit` has been given, where it started this process; a master and a name among it.

    It is known to the JVM that `spark-submit` has started, which only an undocumented argument asks.
    """
    if _SUBMITTED not in os.environ:
        return {}
    gateway: JavaGateway = SparkContext._gateway or launch_gateway()  # type: ignore[no-untyped-call] # noqa: SLF001
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - the context would start a second connection
    return dict(SparkConf(loadDefaults=True, _jvm=gateway.jvm).getAll())


def active_anywhere() -> SparkSession | None:
    """The session that was made active last, by whichever thread; `getActiveSession` needs one in the same thread."""
    return SparkSession._activeSession  # noqa: SLF001 - see above


def restore_active(session: SparkSession) -> None:
    """Make a session the active one again.

    `createDataFrame` of another session makes that one active, and no public function takes it back.
    """
    SparkSession._activeSession = session  # noqa: SLF001 - see above
    sessions = session._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr] # noqa: SLF001
    sessions.setActiveSession(session._jsparkSession)  # noqa: SLF001


def silence_query_errors() -> None:
    """Keep PySpark from writing errors of queries, which are raised as well."""
    for name in QUERY_LOGGERS:
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The schema that Arrow gives to rows of Spark. `DataFrame.toArrow` is public, but runs a job to tell."""
    return to_arrow_schema(schema)


_BETWEEN = "\0"
_PATTERNS = list[tuple[JavaGateway, JavaObject]]()
"""What takes a text apart in the JVM, with the gateway to it: one, unless Spark was started anew."""


def select_sql(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Rows with columns given as SQL: `DataFrame.selectExpr`, which calls the JVM once or twice for every column.

    All texts go there as one, and are taken apart there. Spark Connect calls nothing until rows are asked for.
    """
    spark = rows.sparkSession
    if is_connected(spark) or len(columns) < 3 or any(_BETWEEN in text for text in columns):
        return rows.selectExpr(*columns)
    texts = _pattern(spark).split(_BETWEEN.join(columns))
    return type(rows)(rows._jdf.selectExpr(texts), spark)  # noqa: SLF001 - see above


def _pattern(spark: SparkSession) -> JavaObject:
    gateway = spark.sparkContext._gateway  # noqa: SLF001 - see above
    assert gateway is not None  # noqa: S101 - a session that is not connected has started or found a JVM
    for known, pattern in _PATTERNS:
        if known is gateway:
            return pattern
    _PATTERNS[:] = [(gateway, gateway.jvm.java.util.regex.Pattern.compile(_BETWEEN))]
    return _PATTERNS[0][1]
