"""What can go wrong while a run reads, changes and writes data."""

from clew.diagnostics.diagnostic import Code

SOURCE_UNAVAILABLE = Code(
    "SourceUnavailable",
    "{problem}",
    "The data is not where the resolver says, cannot be opened, or no resolver rule applies.",
    "check the path or table, and the rules of the resolver",
)
SCHEMA_MISMATCH = Code(
    "SchemaMismatch",
    "{problem}",
    "The data does not match its dataset: a column is missing, a value has the wrong type, a required value is NULL, "
    "or two rows share a natural key.",
    "correct the data or the dataset definition",
)

JOIN_NOT_UNIQUE = Code(
    "JoinNotUnique",
    "{problem}",
    "A runtime join matches a row more than once. Clew never duplicates rows.",
    "make the join condition or the joined data unique",
)
TRACE_WRITE_FAILURE = Code(
    "TraceWriteFailure",
    "the trace could not be written: {problem}",
    "The changes of a step could not be stored, so the step and the run fail.",
    "free up space or restore access to the storage root, then retry the step",
)
ROWS_MISSING = Code(
    "RowsMissing",
    "{problem}",
    "The files that a step is about to commit do not hold the rows that Spark wrote, or not those that the step must "
    "keep. Nothing of the step is published.",
    "make sure that Spark's driver and executors see the same storage and the same destinations, and that nothing "
    "else deletes files there; then retry the step",
)
STORAGE_NOT_SHARED = Code(
    "StorageNotShared",
    "{problem}",
    "Spark runs on other machines than this process, and the two do not see the same files.",
    "use a place that both see: an object store such as s3://bucket/folder, or a file system that all machines mount "
    "under the same path",
)
STORAGE_UNAVAILABLE = Code(
    "StorageUnavailable",
    "cannot use {place}: {problem}",
    "An object store does not exist, does not answer, or refuses the request.",
    "check the address, `object_store` of the environment, the credentials and the clock; then try again",
)
OUTPUT_CONFLICT = Code(
    "OutputConflict",
    "{problem}",
    "The output cannot be written to its destination.",
    "change the destination, or clear it",
)
DESTINATION_UNAVAILABLE = Code(
    "DestinationUnavailable",
    "{problem}",
    "The destination database is unreachable or rejects the rows.",
    "check the datasource and its credential_ref, then retry the step",
)
SPARK_UNAVAILABLE = Code(
    "SparkUnavailable",
    "lost the connection to Spark: {problem}",
    "The connection to Spark was lost, or Spark was stopped.",
    "the step is retried; if this keeps happening, check the Spark cluster",
)
ENGINE_FAILURE = Code(
    "EngineFailure",
    "{problem}",
    "Spark failed in a way that Clew does not recognise.",
    "this is a bug in Clew: report it with the message",
)
SPARK_MISSING = Code(
    "SparkMissing",
    "Spark is not installed for this Python: there is no module {module}",
    "Runs, tests, captures and workers need PySpark, which is not installed with Clew. Reading does not need it.",
    'install it with: pip install "clew[spark]"; on a platform that has a Spark of its own, use the Python of that '
    "platform",
)
SPARK_UNSUPPORTED = Code(
    "SparkUnsupported",
    "{problem}",
    "The Spark that is installed, or that the master is, has a version that Clew is not tested with.",
    'install the recommended one with: pip install "clew[spark]"; or use a platform that has a supported version',
)
JAVA_MISSING = Code(
    "JavaMissing",
    "{problem}",
    "Spark needs Java, which is missing, too old, or too new for the installed Spark.",
    "install Java 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17), or point JAVA_HOME to an existing installation",
)
SPARK_NOT_STARTED = Code(
    "SparkNotStarted",
    "Spark did not start: {problem}",
    "The Java process or the Spark context could not be started as configured.",
    "correct `master`, `config` and `jars` under `spark` in clew.yaml; `spark.log.level: INFO` there shows more",
)
CONNECT_MISSING = Code(
    "ConnectMissing",
    "Spark Connect needs libraries that are not installed: {libraries}",
    "The master is an sc:// address, which needs libraries that PySpark does not install by default.",
    'install them with: pip install "pyspark[connect]"',
)

ENGINE_CODES = (
    SOURCE_UNAVAILABLE,
    SCHEMA_MISMATCH,
    JOIN_NOT_UNIQUE,
    TRACE_WRITE_FAILURE,
    ROWS_MISSING,
    STORAGE_NOT_SHARED,
    STORAGE_UNAVAILABLE,
    OUTPUT_CONFLICT,
    DESTINATION_UNAVAILABLE,
    SPARK_UNAVAILABLE,
    ENGINE_FAILURE,
    SPARK_MISSING,
    SPARK_UNSUPPORTED,
    JAVA_MISSING,
    SPARK_NOT_STARTED,
    CONNECT_MISSING,
)
