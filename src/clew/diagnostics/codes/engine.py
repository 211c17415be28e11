"""What can go wrong while a run reads, changes and writes data."""

from clew.diagnostics.diagnostic import Code

SOURCE_UNAVAILABLE = Code(
    "SourceUnavailable",
    "{problem}",
    "Data that a run reads is not where its resolver says, cannot be opened, or no rule says where it is.",
    "check the path or the table, and the rules of the resolver",
)
SCHEMA_MISMATCH = Code(
    "SchemaMismatch",
    "{problem}",
    "Data that was read is not as its dataset says: a column is missing, a value has another type, "
    "a value that must not be missing is, or two rows have the same natural key.",
    "correct the data, or the definition of the dataset",
)

JOIN_NOT_UNIQUE = Code(
    "JoinNotUnique",
    "{problem}",
    "A runtime join matches a row more than once; Clew never doubles rows.",
    "make the join condition or the joined data unique",
)
TRACE_WRITE_FAILURE = Code(
    "TraceWriteFailure",
    "the trace could not be written: {problem}",
    "What a step did could not be stored, so the step does not count and the run fails.",
    "make room or restore access to the storage root, then retry the step",
)
OUTPUT_CONFLICT = Code(
    "OutputConflict",
    "{problem}",
    "An output cannot be written where it is to go.",
    "change the destination, or make way for it",
)
DESTINATION_UNAVAILABLE = Code(
    "DestinationUnavailable",
    "{problem}",
    "The database that an output goes to cannot be reached, or refuses what is to be written.",
    "check the datasource and its credential_ref, then retry the step",
)
SPARK_UNAVAILABLE = Code(
    "SparkUnavailable",
    "Spark went away: {problem}",
    "The connection to Spark was lost, or Spark was stopped.",
    "the step is tried again; if that goes on, look at the Spark cluster",
)
ENGINE_FAILURE = Code(
    "EngineFailure",
    "{problem}",
    "Spark failed in a way that Clew does not know.",
    "this is a bug in Clew: report it with the message",
)
JAVA_MISSING = Code(
    "JavaMissing",
    "{problem}",
    "Spark runs on Java, and there is none, or it is too old.",
    "install Java 17 or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
    "openjdk@17), or set JAVA_HOME to one that is installed",
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
    "The master is an sc:// address, which needs libraries that PySpark does not bring along.",
    'install them with: pip install "pyspark[connect]"',
)

ENGINE_CODES = (
    SOURCE_UNAVAILABLE,
    SCHEMA_MISMATCH,
    JOIN_NOT_UNIQUE,
    TRACE_WRITE_FAILURE,
    OUTPUT_CONFLICT,
    DESTINATION_UNAVAILABLE,
    SPARK_UNAVAILABLE,
    ENGINE_FAILURE,
    JAVA_MISSING,
    SPARK_NOT_STARTED,
    CONNECT_MISSING,
)
