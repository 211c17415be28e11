"""Settings by which a running Spark reaches an object store that nobody named when it started."""

from pyspark.sql import SparkSession

from clew.storage.object_store import ObjectStorage
from clew.storage.root import StorageRoot
from clew.storage.store_access import spark_settings


def make_reachable(spark: SparkSession, root: StorageRoot) -> None:
    """Let the session read a store. What Spark has been told already stays as it is."""
    if not isinstance(root, ObjectStorage):
        return
    for name, value in spark_settings(root.place, root.access).items():
        if spark.conf.get(name, None) is None:
            spark.conf.set(name, value)
