"""The Spark session of an environment."""

from clew.app.running.environment import RunEnvironment
from clew.spark.session import SessionSettings, spark_session
from clew.spark.types import SparkSession


def session_of(environment: RunEnvironment) -> SparkSession:
    """The Spark session of this process, started as the environment says by whoever asks first."""
    spark = environment.settings.spark
    config = {key: str(value) for key, value in spark.config.items()}
    jars = tuple(str(environment.root / jar) for jar in spark.jars)
    return spark_session(SessionSettings(master=spark.master, config=config, jars=jars))
