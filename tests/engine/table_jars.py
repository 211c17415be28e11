"""The connectors of table formats that fit the Spark that the tests run on."""

from tests.engine.spark_jars import JARS, SPARK, delta_jars, iceberg_jars

FORMATS = {"delta": delta_jars, "iceberg": iceberg_jars}


def found(format_: str) -> list[str]:
    """The jars of a format; none where there are none for this Spark."""
    return FORMATS[format_]() if any(JARS.glob(f"{_NAMES[format_]}{SPARK}_*.jar")) else []


def require(*formats: str) -> None:
    """Leave a test out where a connector that it needs is not there for this version of Spark."""
    for format_ in formats:
        FORMATS[format_]()


_NAMES = {"delta": "delta-spark_", "iceberg": "iceberg-spark-runtime-"}
