"""The Spark session of an environment: one per process, quiet, and configured for the rules of the language."""

import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import IO
from weakref import WeakKeyDictionary

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from clew.deferred import dataclass
from clew.definitions import DatabaseDatasource, Datasource
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import CONNECT_MISSING, SPARK_NOT_STARTED
from clew.engine.java import java_of_spark
from clew.engine.jvm_archive import archive_options
from clew.engine.spark_internals import (
    active_anywhere,
    forget_session,
    is_connected,
    launched,
    restore_active,
    session_beside,
    silence_query_errors,
    submitted_configuration,
)
from clew.engine.spark_versions import require_supported
from clew.runs.environment import RunEnvironment
from clew.runs.secrets import REFERENCE, SecretsResolver, with_secrets

LANGUAGE_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.icu.caseMappings.enabled": "true",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.session.timeZone": "UTC",
    # Otherwise what AND and OR guard is calculated first, where it occurs twice, and fails on rows that it is not for.
    "spark.sql.subexpressionElimination.skipForShortcutExpr": "true",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.variable.substitute": "false",
}
"""What the meaning of expressions rests on. Configuration cannot change these."""

_DEFAULTS: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
_FOR_FEW_ROWS: Mapping[str, str] = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Compiling a query and replanning it between its stages cost more than a few rows ever take."""
_CONNECT_LIBRARIES = ("grpc", "grpc_status", "google", "pandas", "pyarrow")
_LEAST_MEMORY_MB, _MOST_MEMORY_MB = 1024, 4096
_PAGE = "4m"
"""Every small table that is joined and every task that sums up takes one page at least: 64 MB, if Spark may choose."""
_OF_SESSIONS = "spark.sql."
_LOST = "INVALID_HANDLE.SESSION_"
"""The beginning of what a Connect server calls it where a session has been closed, has changed or is not known."""
_LOG_LEVEL = "spark.log.level"
_STARTING = threading.Lock()
"""Two threads that ask for the session at once get the same one."""
_OWN: MutableMapping[SparkSession, SparkSession] = WeakKeyDictionary()
"""The session that Clew works in, by the one that it is beside: itself, where Clew has started it."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_THROUGHPUT = "-XX:+UseParallelGC"
"""Throughput matters more than the latency of the JVM: pauses may be longer."""
_BRIEF_COLLECTOR = "-XX:+UseSerialGC"
_COMPILERS = "-XX:TieredStopAtLevel"
"""Without the second compiler of the JVM and threads that collect garbage: both pay only in long runs."""
_COLLECTOR = re.compile(r"-XX:\+Use\w*GC\b")
_JAVA_VARIABLES = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How Spark is started (`local[*]`, `spark://host:port`) or reached (`sc://host:port`)."""

    master: str = "local[*]"
    config: Mapping[str, str] = field(default_factory=dict)
    jars: tuple[str, ...] = ()
    app_name: str = "clew"
    is_brief: bool = False
    """Whether a local driver that is started here does little and ends soon."""
    stores: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Hadoop's settings for object stores. Some values are credentials: they are never shown."""


def spark_session(settings: SessionSettings) -> SparkSession:
    """The session that Clew works in. Where another one exists already, as in a notebook, it is one beside that.

    Settings, temporary views and loggers of a session that Clew did not start stay as they are.
    """
    with _STARTING:
        present = _present()
        own = None if present is None else _OWN.get(present)
        if own is not None and _is_lost(own):
            forget_session(own)
            del _OWN[own]
            present = _present()
        if present is None:
            spark = _connected(settings) if settings.master.startswith("sc://") else _started(settings)
            require_supported(spark.version, "the Spark of the master")
            _OWN[spark] = spark
            silence_query_errors()
        elif own is None or own not in _OWN:
            spark = _beside(present, settings)
            _OWN[present] = _OWN[spark] = spark
        else:
            spark = own
    for name, value in {**settings.stores, **LANGUAGE_SETTINGS}.items():
        spark.conf.set(name, value)
    return spark


def _is_lost(session: SparkSession) -> bool:
    """Whether a Connect server has ended a session: after an hour in which nobody used it, or because it restarted."""
    if not is_connected(session):
        return False
    try:
        session.conf.get("spark.sql.session.timeZone")
    except PySparkException as error:
        if _LOST in str(error):
            return True
        raise
    return False


def _beside(present: SparkSession, settings: SessionSettings) -> SparkSession:
    """A session beside one of others, with the settings that a session can still be given."""
    with leaving_active_session():
        spark = session_beside(present)
    require_supported(spark.version, "the Spark of the active session")
    for name, value in {**_DEFAULTS, **settings.config}.items():
        if name.startswith(_OF_SESSIONS):
            with suppress(PySparkException):  # some are for whoever starts Spark
                spark.conf.set(name, value)
    return spark


@contextmanager
def leaving_active_session() -> Iterator[None]:
    """Leave the session that is active as it is, where it belongs to someone else."""
    before = active_anywhere()
    try:
        yield
    finally:
        if before is not None and active_anywhere() is not before:
            restore_active(before)


@contextmanager
def tuned_for_few_rows(spark: SparkSession) -> Iterator[None]:
    """Settings of a session for the time in which it works on many small things."""
    before = {name: spark.conf.get(name, None) for name in _FOR_FEW_ROWS}
    try:
        for name, value in _FOR_FEW_ROWS.items():
            spark.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


def _present() -> SparkSession | None:
    """The session that was started before, by whichever thread, on a Spark of this process or through Connect."""
    try:
        session = SparkSession.active()
    except PySparkRuntimeError:
        return None
    return session if _is_alive(session) else None


def _is_alive(session: SparkSession) -> bool:
    """Whether a session still has its Spark. One whose context was stopped by itself stays the active one."""
    if is_connected(session):
        return True
    try:
        return bool(session.sparkContext.startTime)
    except AttributeError:
        return False


def _connected(settings: SessionSettings) -> SparkSession:
    require_connect()
    builder = SparkSession.builder.remote(settings.master).appName(settings.app_name)
    for name, value in settings.config.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def require_connect() -> None:
    """Asked by ourselves: PySpark ends the process, in some surroundings, where a library is missing."""
    missing = [library for library in _CONNECT_LIBRARIES if find_spec(library) is None]
    if missing:
        raise UserError(CONNECT_MISSING.anywhere(libraries=", ".join(missing)))


def _started(settings: SessionSettings) -> SparkSession:
    java = java_of_spark()
    submitted = submitted_configuration()
    # Defaults for a local master would keep executors elsewhere from reaching the driver.
    settings = replace(settings, master=submitted.get("spark.master", settings.master))
    chosen = {**configuration(settings), **submitted, **LANGUAGE_SETTINGS}
    if not submitted:  # where `spark-submit` has started this process, its JVM runs already
        given = (chosen[_JAVA_OPTIONS], *(os.environ.get(name, "") for name in _JAVA_VARIABLES))
        chosen[_JAVA_OPTIONS] = f"{chosen[_JAVA_OPTIONS]} {archive_options(java, given)}".strip()
    conf = SparkConf(loadDefaults=False).setAll(list(chosen.items()))
    with tempfile.TemporaryFile() as noise:
        try:
            # What the JVM itself writes while it starts is of no use to anybody, unless it does not start.
            gateway = launched(conf, None if _LOG_LEVEL in settings.config else noise)
            return SparkSession(SparkContext(conf=conf, gateway=gateway))
        except (PySparkException, Py4JError) as error:
            problem = _cause(error) or _first_complaint(noise) or str(error)
            raise UserError(SPARK_NOT_STARTED.anywhere(problem=problem)) from error


def _cause(error: Exception) -> str:
    """What the JVM says is wrong, where it ran at all."""
    thrown = getattr(error, "java_exception", None)
    return str(thrown.getMessage()).partition("\n")[0] if thrown is not None else ""


def configuration(settings: SessionSettings) -> dict[str, str]:
    """Everything that Spark is started with: our defaults, overridden by the settings."""
    log = files("clew.engine").joinpath("log4j2.properties")
    given = settings.config.get(_JAVA_OPTIONS, "")
    work = _for_its_work(settings, given) if settings.master.startswith("local") else ""
    options = " ".join(filter(None, (f"-Dlog4j2.configurationFile={log}", work, given)))
    local = _local_defaults(settings.master) if settings.master.startswith("local") else {}
    jars = {"spark.jars": ",".join(settings.jars)} if settings.jars else {}
    return {
        "spark.master": settings.master,
        "spark.app.name": settings.app_name,
        **_DEFAULTS,
        **local,
        **jars,
        **settings.config,
        **LANGUAGE_SETTINGS,
        _JAVA_OPTIONS: options,
    }


def _for_its_work(settings: SessionSettings, given: str) -> str:
    """The compilers and the garbage collector of a local driver, unless they are chosen: no JVM starts with two."""
    chosen = " ".join((given, *(os.environ.get(name, "") for name in _JAVA_VARIABLES)))
    collector = _BRIEF_COLLECTOR if settings.is_brief else _THROUGHPUT
    options = ["" if _COLLECTOR.search(chosen) else collector]
    if settings.is_brief and _COMPILERS not in chosen:
        options.append(f"{_COMPILERS}=1")
    return " ".join(filter(None, options))


def _local_defaults(master: str) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": f"{_driver_memory_mb()}m",
        "spark.buffer.pageSize": _PAGE,
        "spark.sql.shuffle.partitions": str(_cores(master)),
    }


def _cores(master: str) -> int:
    inside = master.partition("[")[2].partition("]")[0].partition(",")[0]
    if inside.isdigit():
        return max(1, int(inside))
    return (os.cpu_count() or 2) if inside == "*" else 1


def _driver_memory_mb() -> int:
    """Half of the machine's memory, within limits."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (ValueError, OSError, AttributeError):
        return _MOST_MEMORY_MB
    return min(max(physical // 2, _LEAST_MEMORY_MB), _MOST_MEMORY_MB)


def _first_complaint(noise: IO[bytes]) -> str:
    """The first line says what is wrong; the scripts that start Spark add their own confusion after it.

    Where Java gives causes, the last one is what is wrong.
    """
    noise.seek(0)
    lines = noise.read().decode(errors="replace").splitlines()
    causes = [line.removeprefix(_CAUSE).strip() for line in lines if line.startswith(_CAUSE)]
    if causes:
        return causes[-1]
    return next((line.strip() for line in lines if line.strip() and not line.startswith(_ABOUT_JAVA)), "")


_CAUSE = "Caused by: "
_ABOUT_JAVA = ("WARNING", "Picked up ")
"""How lines begin in which Java talks about itself."""


def session_of(
    environment: RunEnvironment, datasources: Sequence[Datasource] = (), secrets: SecretsResolver | None = None
) -> SparkSession:
    """The Spark session of this process, started as the environment says on first use.

    It has the drivers of the datasources. Without secrets it lacks the settings that refer to them, which scenarios do
    not need.
    """
    return spark_session(_settings(environment, datasources, secrets))


def brief_session_of(
    environment: RunEnvironment, datasources: Sequence[Datasource] = (), secrets: SecretsResolver | None = None
) -> SparkSession:
    """The same for a process that does little, and ends."""
    return spark_session(replace(_settings(environment, datasources, secrets), is_brief=True))


def _settings(
    environment: RunEnvironment, datasources: Sequence[Datasource], secrets: SecretsResolver | None = None
) -> SessionSettings:
    spark = environment.settings.spark
    given = {key: str(value) for key, value in spark.config.items()}
    if secrets is None:
        config = {key: value for key, value in given.items() if not value.startswith(REFERENCE)}
    else:
        config = with_secrets(given, secrets, environment.scope)
    jars = jars_of(environment, datasources)
    stores = environment.hadoop_settings(datasources, environment.secrets())
    return SessionSettings(master=spark.master, config=config, jars=jars, stores=stores)


def jars_of(environment: RunEnvironment, datasources: Sequence[Datasource]) -> tuple[str, ...]:
    """The jars that Spark loads: those of the environment and of its datasources, as paths or addresses."""
    drivers = [each.options.jar for each in datasources if isinstance(each, DatabaseDatasource) and each.options.jar]
    named = dict.fromkeys([*environment.settings.spark.jars, *drivers])
    return tuple(jar if _SCHEME.match(jar) else str(environment.root / Path(jar).expanduser()) for jar in named)


_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/", re.IGNORECASE)
"""The start of an address, such as local:///opt/driver.jar, which Spark finds by itself."""
