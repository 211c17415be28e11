"""PySpark's own types, for signatures of code that is not allowed to import pyspark."""

from pyspark.sql import DataFrame, SparkSession

__all__ = ["DataFrame", "SparkSession"]
