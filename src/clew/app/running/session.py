"""The Spark session of an environment."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from clew.app.running.environment import RunEnvironment
from clew.model import DatabaseDatasource, Datasource
from clew.spark.session import SessionSettings, spark_session
from clew.spark.types import SparkSession

_SOON = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Without the second compiler of the JVM and threads that collect garbage: both pay only in long runs."""


def session_of(environment: RunEnvironment, datasources: Sequence[Datasource] = ()) -> SparkSession:
    """The Spark session of this process, started as the environment says by whoever asks first.

    It has the drivers of the datasources.
    """
    return spark_session(_settings(environment, datasources))


def brief_session_of(environment: RunEnvironment) -> SparkSession:
    """The same for a process that does many small things without any datasource, and ends."""
    return spark_session(replace(_settings(environment, ()), java_options=_SOON))


def _settings(environment: RunEnvironment, datasources: Sequence[Datasource]) -> SessionSettings:
    spark = environment.settings.spark
    config = {key: str(value) for key, value in spark.config.items()}
    drivers = [each.options.jar for each in datasources if isinstance(each, DatabaseDatasource) and each.options.jar]
    jars = tuple(str(environment.root / Path(jar).expanduser()) for jar in dict.fromkeys([*spark.jars, *drivers]))
    return SessionSettings(master=spark.master, config=config, jars=jars)
