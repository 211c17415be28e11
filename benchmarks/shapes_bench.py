"""Runs of other shapes than `engine`, from external files: all of loading and the run, against SQL by hand in Spark.

Everything between a warm session and the written output is timed on both sides: reading, copying and digesting inputs,
checks, the trace. The start of Python and Spark is not. Each shape has a process of its own, sides take turns, medians
count, and outputs are compared. CLEW_BENCH_SCALE multiplies the rows of all shapes (1), CLEW_BENCH_ROUNDS says how
often (5), CLEW_BENCH_SHAPES which shapes, by the beginnings of their names, separated by commas (all).
"""

import os
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import duckdb
from benchmarks.figure import Figure
from benchmarks.ledger_runs import interleaved, opened_runs
from benchmarks.shapes import SHAPES, Shape, write_shape
from pyspark.sql import SparkSession

SCALE = float(os.environ.get("CLEW_BENCH_SCALE", "1"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))
WANTED = tuple(filter(None, os.environ.get("CLEW_BENCH_SHAPES", "").split(",")))
_SPARK_TYPES = {"integer": "BIGINT", "string": "STRING"}


def measure() -> list[Figure]:
    names = [name for name in SHAPES if not WANTED or name.startswith(WANTED)]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        return list(processes.map(_measured, names))


def _measured(name: str) -> Figure:
    shape = SHAPES[name]
    rows = max(1, int(shape.rows * SCALE))
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        root = Path(folder)
        write_shape(root, shape, rows)
        with opened_runs(root) as runs:
            spark = runs.starter.session()
            sides = {"clew": lambda: runs.run("job"), "hand": lambda: by_hand(spark, shape, root)}
            seconds = interleaved(sides, ROUNDS)
            require_same(root, shape)
    ratio = seconds["clew"] / seconds["hand"]
    return Figure(f"{name}, {rows:,} rows: run against by hand", ratio, "times", at_most=shape.at_most)


def by_hand(spark: SparkSession, shape: Shape, root: Path) -> None:
    """The job as one would write it, from the same files."""
    for name, table in shape.tables.items():
        types = {column: _SPARK_TYPES.get(type_, type_) for column, (type_, _) in table.columns.items()}
        schema = ", ".join(f"{column} {type_}" for column, type_ in types.items())
        path = str(root / "data" / f"{name}.{shape.format}")
        reader = spark.read.schema(schema)
        rows = reader.csv(path, header=True) if shape.format == "csv" else spark.read.parquet(path)
        rows.createOrReplaceTempView(name)
    spark.sql(shape.by_hand).write.mode("overwrite").parquet(str(root / "hand"))


def require_same(root: Path, shape: Shape) -> None:
    """Equal outputs, as multisets of rows, or the benchmark is void."""
    with duckdb.connect() as connection:
        listed = ", ".join(shape.output)
        ours, theirs = (f"SELECT {listed} FROM read_parquet('{root / path}/*.parquet')" for path in ("out/job", "hand"))
        for one, other in ((ours, theirs), (theirs, ours)):
            found = connection.execute(f"({one}) EXCEPT ALL ({other})").fetchmany(3)
            if found:
                raise SystemExit(f"the outputs differ: {found}")
