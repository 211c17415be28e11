"""Jars that `make jars` fetches: those that fit the Spark that the tests run on. Without them a test is left out."""

import os
from pathlib import Path

import pyspark
import pytest

from clew.engine.spark_versions import minor

JARS = Path(os.environ.get("CLEW_JARS", Path.home() / ".cache" / "clew" / "jars"))
SPARK = minor(pyspark.__version__)
_DELTA = ("delta-storage-", "delta-kernel-api-", "delta-kernel-defaults-", "delta-kernel-unitycatalog-")


def jars(*beginnings: str) -> list[str]:
    """The jars whose names begin so, one for each."""
    found = [path for beginning in beginnings for path in sorted(JARS.glob(f"{beginning}*.jar"))[-1:]]
    missing = [each for each in beginnings if not any(path.name.startswith(each) for path in found)]
    if missing:
        pytest.skip(f"no {' or '.join(missing)} in {JARS}, for Spark {SPARK}: `make jars` fetches those for 4.1")
    return [str(path) for path in found]


def delta_jars() -> list[str]:
    """Delta, as it is built for the running Spark. There is none for every version."""
    return jars(f"delta-spark_{SPARK}_", *_DELTA)


def iceberg_jars() -> list[str]:
    """Iceberg, as it is built for the running Spark. There is none for every version."""
    return jars(f"iceberg-spark-runtime-{SPARK}_")


def s3_jars() -> list[str]:
    """What reaches S3, of the Hadoop that the running Spark is built with."""
    [client] = (Path(pyspark.__file__).parent / "jars").glob("hadoop-client-api-*.jar")
    hadoop = client.stem.removeprefix("hadoop-client-api-")
    found = sorted(str(path) for path in (JARS / f"s3-{hadoop}").glob("*.jar"))
    if not found:
        pytest.skip(f"no s3-{hadoop} in {JARS}, for Spark {SPARK}: `make jars HADOOP={hadoop}` fetches it")
    return found
