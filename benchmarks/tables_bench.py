"""Runs that start from a Delta or an Iceberg table: against Spark by hand on the same files, and the time to pin one.

The job is the typical one of `engine`. CLEW_BENCH_ROWS sets how many rows the table has (5,000,000), CLEW_BENCH_ROUNDS
how often each is measured (3), CLEW_BENCH_PINNED_ROWS the rows of the largest table that is only pinned (20,000,000).
The tables are written by `deltalake` and `pyiceberg`: reading them takes no connector.
"""

import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import duckdb
import pyarrow as pa
from benchmarks.figure import Figure
from benchmarks.ledger import HAND, write_workspace
from benchmarks.ledger_runs import LedgerRuns, interleaved, opened_runs
from deltalake import write_deltalake
from pyiceberg.catalog import load_catalog

from clew.storage.layout import part_folder
from clew.storage.roots import storage_at
from clew.storage.tables.delta import read_delta
from clew.storage.tables.table_places import TablePlace

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
PINNED_ROWS = int(os.environ.get("CLEW_BENCH_PINNED_ROWS", "20000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "3"))
SMALL_FILES = 10_000
MOST_TIMES_BY_HAND = 1.3
MOST_TIMES_FEWER_ROWS = 1.5
"""Pinning a table does not depend on its rows; with them comes another number of files, each with a footer."""
_BATCH = 500_000
_TO_LOADING = {"id": "loading", "status": "active", "input_dataset": "lines"}
_FLAG = {"assignments": [{"column": "flag", "expression": "1"}]}
_LOADING_STEPS = [{"seq": 10, "name": "Flag", "type": "update", "selector": "id < 0", "arguments": _FLAG}]


def measure() -> list[Figure]:
    figures = list[Figure]()
    for format_ in ("delta", "iceberg"):
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
            figures += _against_hand(Path(folder), format_)
        figures += _pinnings(format_)
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        return [*figures, *_small_files(Path(folder))]


# Runs


def _against_hand(root: Path, format_: str) -> list[Figure]:
    write_workspace(root, ROWS)
    table = _table(root, format_)
    files = [str(path) for path in table.rglob("*.parquet") if not {"_delta_log", "metadata"} & set(path.parts)]
    by_hand = root / "hand" / "typical"
    with opened_runs(root) as runs:
        seconds = interleaved(
            {
                "hand": lambda: HAND["typical"](runs.starter.session(), files, root / "data", by_hand),
                "clew": lambda: runs.run("typical"),
            },
            ROUNDS,
        )
        runs.require_same("typical")
        kept = _kept(runs, runs.run("typical"))
    name = f"{format_}: the typical job on {ROWS:,} rows against Spark by hand on the same files"
    return [
        Figure(name, seconds["clew"] / seconds["hand"], "times", MOST_TIMES_BY_HAND),
        Figure(f"{format_}: bytes kept of an input of {ROWS:,} rows", kept, "bytes"),
    ]


def _kept(runs: LedgerRuns, run_id: str) -> int:
    return runs.environment.storage_root.size(part_folder(run_id, "input", "lines"))


def _pinnings(format_: str) -> list[Figure]:
    """How long a table of few rows and one of many takes to load, in runs that take turns."""
    sizes = (PINNED_ROWS // 20, PINNED_ROWS)
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        found = dict[int, float]()
        for rows in sizes:
            root = Path(folder) / str(rows)
            root.mkdir()
            write_workspace(root, rows)
            _table(root, format_)
            with opened_runs(root) as runs:
                loaded = [runs.seconds_of_load(runs.run("loading")) for _ in range(ROUNDS)]
            found[rows] = sorted(loaded)[ROUNDS // 2]
            shutil.rmtree(root)
    few, many = sizes
    name = f"{format_}: pinning {many:,} rows against {few:,}"
    ratio = Figure(name, found[many] / found[few], "times", MOST_TIMES_FEWER_ROWS)
    return [ratio, Figure("the same", found[many], "s")]


def _table(root: Path, format_: str) -> Path:
    """The lines of the ledger as a table, and the projects that read them there."""
    folder = root / "lake" / "lines"
    path = "lines"
    if format_ == "delta":
        for batch in _batches(root):
            write_deltalake(folder, batch, mode="append")
    else:
        folder.parent.mkdir(exist_ok=True)
        catalog = load_catalog("bench", type="sql", uri=f"sqlite:///{root}/lake.db", warehouse=f"file://{root}/lake")
        catalog.create_namespace("shop")
        table = None
        for batch in _batches(root):
            if table is None:
                table = catalog.create_table("shop.lines", batch.schema, location=f"file://{folder}")
            table.append(batch)
        assert table is not None
        path = f"lines/metadata/{Path(table.metadata_location).name}"
    strategy = {"type": "path", "datasource_id": "lake", "path": path, "format": format_}
    _write(root / "resolvers" / "lake.yaml", {"id": "lake", "rules": [{"name": "table", "strategy": strategy}]})
    _write(root / "datasources" / "lake.yaml", {"id": "lake", "type": "files", "options": {"root": "lake"}})
    _rewrite(root / "datasets" / "lines.yaml", "id: lines", "id: lines\nresolver_id: lake")
    _rewrite(root / "projects" / "typical.yaml", "input_dataset: ledger", "input_dataset: lines")
    _write(root / "projects" / "loading.yaml", {**_TO_LOADING, "operations": _LOADING_STEPS})
    return folder


def _batches(root: Path) -> Iterator[pa.Table]:
    with duckdb.connect() as connection:
        rows = connection.sql(f"SELECT * FROM read_parquet('{root / 'data' / 'lines.parquet'}')")
        reader: pa.RecordBatchReader = rows.to_arrow_reader(_BATCH)
        for batch in reader:
            yield pa.Table.from_batches([batch])


def _write(path: Path, content: Mapping[str, object]) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def _rewrite(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")


# Many files


def _small_files(root: Path) -> list[Figure]:
    """The metadata of a table with many files: what pinning it takes, beside their footers."""
    folder = root / "lake" / "small"
    write_deltalake(folder, pa.table({"id": [1], "note": ["one"]}))
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
