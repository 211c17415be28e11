"""A traced run of the typical job against other ways of knowing what each step did to each row, in one process.

The others are a Delta table with change data feed and one commit for each step (deltalake, without Spark), and Spark
writing the rows after each step and comparing them with those before. CLEW_BENCH_PEER_ROWS sets how many rows
(5,000,000), CLEW_BENCH_PEER_ROUNDS how often (2). All three have to end with the same rows. Joins are spared to Delta:
what it would look up is written into its expressions.
"""

import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from statistics import median

import duckdb
import pyarrow as pa
from benchmarks.figure import Figure
from benchmarks.ledger import write_workspace
from benchmarks.timing import seconds
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody writes

import clew
from clew.api.starting import RunStarter
from clew.api.state import open_state

ROWS = int(os.environ.get("CLEW_BENCH_PEER_ROWS", "5000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_PEER_ROUNDS", "2"))
COLUMNS = ("id", "account", "category", "currency", "amount", "centre", "note", "region", "flag", "total")


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        root = Path(folder)
        write_workspace(root, ROWS)
        workspace = clew.open(root)
        environment = workspace.run_environment
        with open_state(environment) as state:
            starter = RunStarter(workspace.files, environment, state)
            traced_run(starter, "keep")
            versions = starter.state.datasets.versions("ledger")
            ledger = [environment.storage_root.source(file.path) for file in versions[0].files]
            spark = starter.session()
            sides: dict[str, Callable[[], None]] = {
                "clew": lambda: traced_run(starter, "typical"),
                "delta": lambda: delta(ledger, root / "delta"),
                "snapshots": lambda: snapshots(spark, ledger, root / "data", root / "snapshots"),
            }
            times = timed(sides)
            require_same(root)
            return figures(times, root)


def timed(sides: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Medians of turns, the first of which is not counted. Snapshots take long, and get one turn."""
    sides["clew"]()
    measured = {name: list[float]() for name in sides}
    for turn in range(ROUNDS):
        for name, side in sides.items():
            if name != "snapshots" or turn == 0:
                measured[name].append(seconds(side))
    return {name: median(each) for name, each in measured.items()}


def figures(times: dict[str, float], root: Path) -> list[Figure]:
    trace = max(_size(run, "changes/**/*.parquet") for run in (root / ".clew/storage/runs").iterdir())
    feed = _size(root / "delta", "_change_data/**/*.parquet")
    diffs = _size(root / "snapshots", "diff-*/*.parquet")
    ours = times["clew"]
    return [
        Figure(f"typical, {ROWS:,} rows: a traced run", ours, "s"),
        Figure("Delta with change data feed, a commit for each step", times["delta"], "s"),
        Figure("Delta against the traced run", times["delta"] / ours, "times", at_least=3),
        Figure("Spark with the rows after each step and their differences", times["snapshots"], "s"),
        Figure("snapshots against the traced run", times["snapshots"] / ours, "times", at_least=3),
        Figure("bytes of change data against bytes of trace, Delta", feed / trace, "times"),
        Figure("bytes of differences against bytes of trace, snapshots", diffs / trace, "times"),
    ]


def traced_run(starter: RunStarter, project: str) -> None:
    run = starter.submit(project, "2026-01")
    status = starter.drive(run.run_id, threading.Event())
    if status is None or status.value != "COMPLETED":
        raise SystemExit(f"the run of {project} is {status}")


# Delta


def delta(ledger: list[str], path: Path) -> None:
    """The same steps as commits of a Delta table that records changes."""
    shutil.rmtree(path, ignore_errors=True)
    with duckdb.connect() as connection:
        rows = connection.sql(
            "SELECT id, account, category, currency, amount, centre, note, CAST(NULL AS VARCHAR) AS region,"
            " CAST(NULL AS VARCHAR) AS flag, CAST(NULL AS DECIMAL(28, 2)) AS total FROM read_parquet($files)",
            params={"files": ledger},
        ).to_arrow_table()
    write_deltalake(str(path), rows, configuration={"delta.enableChangeDataFeed": "true"})
    regions = " ".join(f"WHEN 'C{number}' THEN 'region {number % 5}'" for number in range(50))
    for updates, predicate in (
        ({"amount": "CAST(ROUND(amount * 1.092, 2) AS DECIMAL(18, 2))"}, "currency = 'EUR'"),
        ({"region": f"CASE centre {regions} END"}, "id % 4 = 0"),
        ({"category": "category + 100"}, "id % 10 = 3"),
        ({"note": "concat(note, ' large')"}, "amount > 8100"),
        ({"flag": "'review'"}, "id % 20 = 1"),
    ):
        DeltaTable(str(path)).update(updates=updates, predicate=predicate)
    DeltaTable(str(path)).delete("id % 20 = 7")
    write_deltalake(str(path), _totals(path), mode="append")
    final = _arrow(path)
    with duckdb.connect() as connection:
        connection.register("final", final)
        connection.execute(f"COPY (FROM final) TO '{path.with_name('delta-out.parquet')}' (FORMAT parquet)")


def _totals(path: Path) -> pa.Table:
    rows = _arrow(path)
    empty = ", ".join(
        f"CAST(NULL AS {type_}) AS {name}"
        for name, type_ in (("category", "BIGINT"), ("currency", "VARCHAR"), ("amount", "DECIMAL(18, 2)"))
    )
    texts = ", ".join(f"CAST(NULL AS VARCHAR) AS {name}" for name in ("centre", "note", "region", "flag"))
    with duckdb.connect() as connection:
        connection.register("rows", rows)
        return connection.sql(
            f"SELECT CAST(NULL AS BIGINT) AS id, account, {empty}, {texts},"
            " CAST(sum(amount) AS DECIMAL(28, 2)) AS total FROM rows GROUP BY account"
        ).to_arrow_table()


def _arrow(path: Path) -> pa.Table:
    return DeltaTable(str(path)).to_pyarrow_table()


# Snapshots


def snapshots(spark: SparkSession, ledger: list[str], data: Path, out: Path) -> None:
    """Every step writes all rows, and then what differs from the rows before, found by their key."""
    shutil.rmtree(out, ignore_errors=True)
    rates, centres = (spark.read.parquet(str(data / f"{name}.parquet")) for name in ("rates", "centres"))
    loaded = spark.read.parquet(*ledger).select("id", "account", "category", "currency", "amount", "centre", "note")
    empty = {"region": "string", "flag": "string", "total": "decimal(28,2)"}
    rows = loaded.withColumns({name: F.lit(None).cast(type_) for name, type_ in empty.items()}).select(*COLUMNS)
    steps: list[Callable[[DataFrame], DataFrame]] = [
        lambda now: now.join(F.broadcast(rates), "currency", "left").withColumn(
            "amount", _when("currency = 'EUR'", "CAST(round(amount * rate, 2) AS DECIMAL(18, 2))", "amount")
        ),
        lambda now: (
            now.drop("region")
            .join(F.broadcast(centres), "centre", "left")
            .withColumn("region", F.expr("CASE WHEN id % 4 = 0 THEN region END"))
        ),
        lambda now: now.withColumn("category", _when("id % 10 = 3", "category + 100", "category")),
        lambda now: now.withColumn("note", _when("amount > 8100", "concat(note, ' large')", "note")),
        lambda now: now.withColumn("flag", _when("id % 20 = 1", "'review'", "flag")),
        lambda now: now.where("id % 20 <> 7"),
    ]
    for number, step in enumerate(steps):
        after = _written(spark, step(rows).select(*COLUMNS), out / f"state-{number}")
        _difference(rows, after).write.parquet(str(out / f"diff-{number}"))
        rows = after
    totals = rows.groupBy("account").agg(F.sum("amount").alias("total"))
    totals.write.parquet(str(out / "diff-totals"))
    rows.unionByName(totals, allowMissingColumns=True).select(*COLUMNS).write.parquet(str(out / "out"))


def _when(condition: str, value: str, other: str) -> Column:
    return F.expr(f"CASE WHEN {condition} THEN {value} ELSE {other} END")


def _written(spark: SparkSession, rows: DataFrame, path: Path) -> DataFrame:
    rows.write.parquet(str(path))
    return spark.read.parquet(str(path))


def _difference(before: DataFrame, after: DataFrame) -> DataFrame:
    """The key, and before and after of the columns that differ."""
    names = [name for name in COLUMNS if name != "id"]
    joined = before.alias("b").join(after.alias("a"), "id", "full")
    differs = " OR ".join(f"NOT (b.{name} <=> a.{name})" for name in names)
    sides = [
        F.expr(f"CASE WHEN NOT (b.{name} <=> a.{name}) THEN {side}.{name} END").alias(f"{side}_{name}")
        for name in names
        for side in ("b", "a")
    ]
    return joined.where(differs).select("id", *sides)


# The same rows


def require_same(root: Path) -> None:
    """Equal as multisets of rows, or the benchmark is void."""
    listed = ", ".join(COLUMNS)
    places = (root / "out/typical/*.parquet", root / "delta-out.parquet", root / "snapshots/out/*.parquet")
    ours, *others = (f"(SELECT {listed} FROM read_parquet('{path}'))" for path in places)
    with duckdb.connect() as connection:
        for other in others:
            missing, extra = (f"(SELECT count(*) FROM ({a} EXCEPT ALL {b}))" for a, b in ((ours, other), (other, ours)))
            counted = f"SELECT {missing} + {extra}"
            [(different,)] = connection.execute(counted).fetchall()
            if different:
                raise SystemExit(f"{different} rows differ: {other}")


def _size(folder: Path, pattern: str) -> int:
    return sum(path.stat().st_size for path in folder.glob(pattern))
