"""Runs that start from a Delta or an Iceberg table: against Spark by hand on the same files, and the time to pin one.

CLEW_BENCH_ROWS sets how many rows the larger tables have (5,000,000), CLEW_BENCH_ROUNDS how often each is measured (3).
The tables are written by `deltalake` and `pyiceberg`: reading them takes no connector.
"""

import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from benchmarks.figure import Figure
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog

import clew
from clew.api.run import Run
from clew.engine.session import SessionSettings, spark_session
from clew.engine.types import SparkSession
from clew.storage.roots import storage_at
from clew.storage.tables.delta import read_delta
from clew.storage.tables.table_places import TablePlace

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "3"))
FEW = max(1, ROWS // 20)
SMALL_FILES = 10_000
_BATCH = 500_000
MOST_TIMES_BY_HAND = 1.3


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        root = Path(folder)
        _workspace(root)
        spark = spark_session(SessionSettings(master="local[2]", config={"spark.driver.memory": "2g"}))
        figures = list[Figure]()
        for format_ in ("delta", "iceberg"):
            _table(root, format_, "few", FEW)
            figures += _against_hand(root, spark, format_, _table(root, format_, "many", ROWS))
        return [*figures, *_small_files(root)]


def _workspace(root: Path) -> None:
    columns = [
        {"name": "id", "type": "integer"},
        {"name": "grp", "type": "string"},
        {"name": "amount", "type": "double"},
    ]
    files: dict[str, Any] = {
        "clew.yaml": {"name": "bench", "environments": {"dev": {"mode": "dev", "spark": {"master": "local[2]"}}}},
        "calendars/c.yaml": {"id": "c", "levels": ["month"], "periods": [_MONTH]},
        "datasources/lake.yaml": {"id": "lake", "type": "files", "options": {"root": "lake"}},
    }
    for format_ in ("delta", "iceberg"):
        for size in ("few", "many"):
            name = f"{format_}-{size}"
            table = {"name": "lines", "temporal_mode": "none", "columns": columns}
            files[f"datasets/{name}.yaml"] = {"id": name, "resolver_id": name, "main_table": table}
            files[f"projects/{name}.yaml"] = {
                "id": name,
                "status": "active",
                "input_dataset": name,
                "operations": [_DOUBLE, _output(name)],
            }
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(json.dumps(content), encoding="utf-8")


_MONTH = {"identifier": "2026-01", "level": "month", "start_date": "2026-01-01", "end_date": "2026-01-31"}
_DOUBLE = {
    "seq": 10,
    "name": "Double",
    "type": "update",
    "selector": 'grp = "g1"',
    "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
}


def _output(name: str) -> dict[str, Any]:
    destination = {"location": {"path": f"out/{name}", "format": "parquet"}}
    arguments = {"destination": destination, "columns": ["id", "grp", "amount"]}
    return {"seq": 20, "name": "Write", "type": "output", "arguments": arguments}


def _batches(rows: int) -> Iterator[pa.Table]:
    for first in range(0, rows, _BATCH):
        ids = pa.array(range(first, min(first + _BATCH, rows)), pa.int64())
        groups = pc.binary_join_element_wise(pa.scalar("g"), pc.cast(pc.bit_wise_and(ids, 7), pa.string()), "")
        yield pa.table({"id": ids, "grp": groups, "amount": pc.multiply(pc.cast(ids, pa.float64()), 0.5)})


def _table(root: Path, format_: str, size: str, rows: int) -> Path:
    """A table, and the resolver that leads to it."""
    name = f"{format_}-{size}"
    folder = root / "lake" / name
    path = name
    if format_ == "delta":
        for batch in _batches(rows):
            write_deltalake(folder, batch, mode="append")
    else:
        (root / "lake").mkdir(exist_ok=True)
        catalog = load_catalog("bench", type="sql", uri=f"sqlite:///{root}/{name}.db", warehouse=f"file://{root}/lake")
        catalog.create_namespace("shop")
        table = None
        for batch in _batches(rows):
            if table is None:
                table = catalog.create_table(f"shop.{size}", batch.schema, location=f"file://{folder}")
            table.append(batch)
        assert table is not None
        path = f"{name}/metadata/{Path(table.metadata_location).name}"
    strategy = {"type": "path", "datasource_id": "lake", "path": path, "format": format_}
    text = json.dumps({"id": name, "rules": [{"name": "table", "strategy": strategy}]})
    (root / "resolvers").mkdir(exist_ok=True)
    (root / "resolvers" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def _against_hand(root: Path, spark: SparkSession, format_: str, many: Path) -> list[Figure]:
    files = [str(path) for path in many.rglob("*.parquet") if not {"_delta_log", "metadata"} & set(path.parts)]

    def by_hand() -> None:
        rows = spark.read.parquet(*files).selectExpr(
            "id", "grp", "CASE WHEN grp = 'g1' THEN amount * 2 ELSE amount END AS amount"
        )
        rows.write.mode("overwrite").parquet(str(root / "by-hand"))

    runs = list[Run]()

    def by_clew() -> None:
        runs.append(clew.open(root).run(f"{format_}-many", period="2026-01").raise_if_failed())

    _alternating(by_hand, by_clew, 1)
    runs.clear()
    hand, own = _alternating(by_hand, by_clew, ROUNDS)
    small = [clew.open(root).run(f"{format_}-few", period="2026-01").raise_if_failed() for _ in range(ROUNDS)]
    kept = sum(path.stat().st_size for path in _inputs_of(root, runs[-1]))
    return [
        Figure(f"{format_}: a run of {ROWS:,} rows against Spark by hand", own / hand, "times", MOST_TIMES_BY_HAND),
        Figure(f"{format_}: loading {FEW:,} rows", statistics.median(map(_loading, small)), "s"),
        Figure(f"{format_}: loading {ROWS:,} rows", statistics.median(map(_loading, runs)), "s"),
        Figure(f"{format_}: bytes kept of an input of {ROWS:,} rows", kept, "bytes"),
    ]


def _inputs_of(root: Path, run: Run) -> Iterator[Path]:
    folder = root / ".clew" / "storage" / "runs" / run.id / "input"
    return (path for path in folder.rglob("*") if path.is_file())


def _loading(run: Run) -> float:
    step = run.steps[0]
    assert step.started_at is not None
    assert step.completed_at is not None
    return (step.completed_at - step.started_at).total_seconds()


def _alternating(one: Callable[[], None], other: Callable[[], None], rounds: int) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for work, found in zip((one, other), times, strict=True):
            start = time.perf_counter()
            work()
            found.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def _small_files(root: Path) -> list[Figure]:
    """The metadata of a table with many files: what pinning it takes, beside their footers."""
    folder = root / "lake" / "small"
    write_deltalake(folder, next(_batches(1)))
    log = folder / "_delta_log"
    [added] = [json.loads(line) for line in (log / f"{0:020}.json").read_text().splitlines() if '"add"' in line]
    [file] = list(folder.glob("*.parquet"))
    lines = list[str]()
    for number in range(1, SMALL_FILES):
        shutil.copyfile(file, folder / f"copy-{number}.parquet")
        lines.append(json.dumps({"add": {**added["add"], "path": f"copy-{number}.parquet"}}))
    (log / f"{1:020}.json").write_text("\n".join(lines), encoding="utf-8")
    start = time.perf_counter()
    found = read_delta(TablePlace(storage_at(folder), str(folder)))
    took = time.perf_counter() - start
    assert len(found.files) == SMALL_FILES
    return [Figure(f"delta: reading the log of a version with {SMALL_FILES:,} files", took, "s")]
