"""The connectors of table formats that fit the PySpark that runs the tests, in the folder that `make jars` fills."""

import os
import re
from pathlib import Path

import pyspark
import pytest

JARS = Path(os.environ.get("CLEW_JARS", Path.home() / ".cache" / "clew" / "jars"))
SPARK = re.match(r"\d+\.\d+", pyspark.__version__)[0]  # type: ignore[index]
FORMATS = {
    "delta": (f"delta-spark_{SPARK}_2.13-*.jar", "delta-storage-*.jar"),
    "iceberg": (f"iceberg-spark-runtime-{SPARK}_2.13-*.jar",),
}
FURTHER = ("delta-kernel-*.jar", "antlr4-runtime-*.jar")
"""What newer versions of Delta want beside their own."""


def found(format_: str) -> list[str]:
    """The jars of a format; none where one is missing."""
    each = [sorted(JARS.glob(pattern)) for pattern in FORMATS[format_]]
    further = [path for pattern in FURTHER for path in sorted(JARS.glob(pattern))] if format_ == "delta" else []
    return [str(path) for paths in (*each, further) for path in paths] if all(each) else []


def require(*formats: str) -> None:
    """Leave a test out where a connector that it needs is not there for this version of Spark."""
    missing = [format_ for format_ in formats if not found(format_)]
    if missing:
        pytest.skip(f"no connector of {' or '.join(missing)} for Spark {SPARK} in {JARS}: `make jars` fetches them")
