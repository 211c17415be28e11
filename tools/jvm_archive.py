"""Makes an archive of the classes that Spark loads, so that the many JVMs of the tests start with less work.

`python -m tools.jvm_archive` writes it once for each Java and PySpark, to ~/.cache/clew. The tests use it where it is
there; a JVM that it does not fit starts as it would without one.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

FEW_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Every JVM of a test does little: the code of the second compiler and threads that collect garbage do not pay."""

_TYPICAL = """
import sys
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
numbers = spark.range(100).selectExpr("id % 3 AS key", "CAST(id AS DECIMAL(12,2)) AS value", "CAST(id AS STRING) AS t")
numbers.join(numbers.groupBy("key").agg({"value": "sum"}), "key").write.mode("overwrite").parquet(sys.argv[1])
spark.read.parquet(sys.argv[1]).orderBy("value").collect()
spark.read.text(sys.argv[2]).selectExpr("from_csv(value, 'a STRING, b STRING')").collect()
gateway = spark.sparkContext._gateway.proc
spark.stop()
gateway.stdin.close()
gateway.wait()
"""


def archive() -> Path | None:
    """Where the archive for this Java and this PySpark is, or would be; None where one of them is missing."""
    spark, java = find_spec("pyspark"), shutil.which("java")
    if spark is None or spark.origin is None or java is None:
        return None
    known = [Path(java).resolve(), Path(spark.origin).parent / "jars"]
    facts = " ".join(f"{path} {path.stat().st_mtime_ns}" for path in known if path.exists())
    return Path.home() / ".cache" / "clew" / f"jvm-{hashlib.sha256(facts.encode()).hexdigest()[:16]}.jsa"


def options(archived: Path | None) -> str:
    """The options of a JVM that uses an archive. Nothing is logged: some commands are read from standard output."""
    if archived is None or not archived.is_file():
        return FEW_OPTIONS
    return f"{FEW_OPTIONS} -Xlog:disable -XX:SharedArchiveFile={archived}"


def main() -> None:
    """Make the archive, if it is not there."""
    target = archive()
    if target is None or target.is_file():
        return
    sys.stdout.write("Preparing a faster start of Spark for the tests (once) ...\n")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        made, lines = Path(folder) / "made.jsa", Path(folder) / "lines.csv"
        lines.write_text("1,2\n")
        environment = {
            **os.environ,
            "JAVA_TOOL_OPTIONS": f"{FEW_OPTIONS} -Xlog:disable -XX:ArchiveClassesAtExit={made}",
        }
        command = [sys.executable, "-c", _TYPICAL, str(Path(folder) / "rows"), str(lines)]
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603 - our own words
        if done.returncode == 0 and made.is_file():
            partial = target.with_suffix(f".{os.getpid()}")
            partial.write_bytes(made.read_bytes())
            partial.replace(target)


if __name__ == "__main__":
    with suppress(OSError):  # a home that cannot be written to costs time, and nothing else
        main()
