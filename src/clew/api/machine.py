"""What `clew doctor` looks at on the machine: Python, Spark, Java and the jars that Spark loads."""

# ruff: noqa: PLC0415 - the engine cannot be imported where Spark is missing, which is one of the questions

import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from clew.api.findings import Symptom, failed, failures, ok, skipped, warning
from clew.definitions import Datasource
from clew.diagnostics import ClewError
from clew.runs.environment import RunEnvironment

_OLDEST = (3, 11)
_FIT = "use the jar that is built for this Spark (docs/platforms.md lists them), or the Spark that it is built for"


def python() -> Symptom:
    """The Python that runs this."""
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info < _OLDEST:
        return failed("python", found, "install Python 3.11 or newer, and Clew with it")
    return ok("python", found)


def spark_and_java(master: str) -> Iterator[Symptom]:
    """PySpark and Java, as far as the master needs them."""
    try:
        from clew.engine.java import java_of_spark
        from clew.engine.session import require_connect
        from clew.engine.spark_versions import RECOMMENDED, installed
    except ClewError as error:
        yield from failures("spark", error)
        yield skipped("java", "looked at once there is a Spark that could use it")
        return
    yield ok("spark", f"{installed()}; recommended is {RECOMMENDED}")
    try:
        if master.startswith("sc://"):
            require_connect()
            yield ok("spark connect", f"the libraries for {master} are installed")
            yield skipped("java", f"not needed here: {master} has its own")
        else:
            java = java_of_spark()
            yield ok("java", f"{java.major or 'of unknown version'}, {java.program}")
    except ClewError as error:
        yield from failures("spark connect" if master.startswith("sc://") else "java", error)


def jars(environment: RunEnvironment, datasources: Sequence[Datasource]) -> Iterator[Symptom]:
    """The jars that clew.yaml and datasources name: whether they are there, and fit the Spark that is installed."""
    try:
        from clew.engine.session import jars_of
        from clew.engine.spark_versions import hadoop_version, misfit
    except ClewError:
        yield skipped("jars", "looked at once there is a Spark that could load them")
        return
    named = jars_of(environment, datasources)
    missing = [jar for jar in named if "://" not in jar and not Path(jar).is_file()]
    for jar in missing:
        yield failed("jars", f"{jar} does not exist", "correct the path under `spark.jars` or in the datasource")
    for problem in filter(None, map(misfit, named)):
        yield failed("jars", problem, _FIT)
    if not missing and not any(map(misfit, named)):
        yield ok("jars", ", ".join(Path(jar).name for jar in named) or "none")
    stores = environment.settings.storage_root, environment.settings.sandbox_root
    on_s3 = [place for place in stores if place.startswith(("s3://", "s3a://"))]
    if on_s3 and not any("hadoop-aws" in jar for jar in named):
        remedy = f"unless the platform has them, list hadoop-aws {hadoop_version() or ''} and the AWS SDK there"
        yield warning("jars", f"{on_s3[0]} is on S3, and `spark.jars` names no hadoop-aws", remedy)
