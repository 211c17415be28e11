"""Questions to a trace of five million rows and six steps, against scanning the same files with pyarrow.

The files are as the engine leaves them: pinned input, created rows, one part of changes, row groups of 100,000 rows.
Run it alone with `python -m benchmarks trace_read`.
"""

import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from benchmarks.figure import Figure

from clew.explain.explaining import explain
from clew.model import load_workspace
from clew.plan import Plan, compile_workspace, plan_to_json
from clew.trace.layout import Part, PartFile, TracedStep
from clew.trace.parts_json import part_to_json
from clew.trace.reader import RunTrace

ROWS = 5_000_000
GROUPS = 1_000
ROW_GROUP = 100_000
ROUNDS = 9
RUN = "trace-read-bench"
TODAY = date(2026, 1, 31)

_FILES = {
    "clew.yaml": "name: bench\nenvironments: {dev: {mode: dev}}\n",
    "calendars/c.yaml": "id: c\nlevels: [year, quarter, month]\ngenerate: {first_year: 2026, last_year: 2026}\n",
    "datasources/f.yaml": "id: f\ntype: files\noptions: {root: .}\n",
    "resolvers/r.yaml": (
        "id: r\nis_default: true\nrules: [{name: a, strategy: {type: path, datasource_id: f, path: '{table}.csv'}}]\n"
    ),
    "datasets/lines.yaml": """
id: lines
natural_key: [journal_id]
main_table:
  name: lines
  columns:
    - {name: journal_id, type: string}
    - {name: account, type: integer}
    - {name: currency, type: string}
    - {name: amount, type: "decimal(18,2)"}
    - {name: category, type: string}
    - {name: note, type: string}
""",
    "projects/p.yaml": """
id: p
status: active
input_dataset: lines
operations:
  - {seq: 10, name: Double, type: update, selector: "MOD(account, 8) = 0", arguments: {assignments: [
     {column: amount, expression: "amount * 2"}]}}
  - {seq: 20, name: Mark, type: update, selector: "MOD(account, 4) = 1", arguments: {assignments: [
     {column: category, expression: '"marked"'}]}}
  - {seq: 30, name: Note, type: update, selector: "MOD(account, 10) = 2", arguments: {assignments: [
     {column: note, expression: 'CONCAT(note, "!")'}]}}
  - {seq: 40, name: Fee, type: update, selector: "MOD(account, 5) = 3", arguments: {assignments: [
     {column: fee, expression: "ROUND(amount * 0.01, 2)"}]}}
  - {seq: 50, name: Drop, type: delete, selector: "MOD(account, 20) = 19"}
  - {seq: 60, name: Totals, type: aggregate, arguments: {group_by: [account], aggregations: [
     {column: total, expression: "SUM(amount)"}]}}
""",
}
_INPUT = f"""
    SELECT 'JE-' || lpad(CAST(i AS VARCHAR), 8, '0') AS journal_id, i % {GROUPS} AS account,
        ['EUR', 'USD', 'GBP', 'JPY'][1 + i % 4] AS currency,
        CAST((i * 7919 % 10000019) / 100.0 AS DECIMAL(18, 2)) AS amount,
        'category ' || (i % 40) AS category, 'note ' || (hash(i) % 1000) AS note,
        '2026-01' AS _period, 'lines.csv' AS __source_file, i + 2 AS __source_line
    FROM range({ROWS}) AS r(i) ORDER BY i
"""
_FINAL = "CASE WHEN account % 8 = 0 THEN amount * 2 ELSE amount END"
_CHANGES = f"""
    SELECT __source_line - 2 AS __ordinal,
        CASE WHEN account % 8 = 0 AND amount <> 0 THEN 1 END AS __s10_m,
        CAST(CASE WHEN account % 8 = 0 AND amount <> 0 THEN amount * 2 END AS DECIMAL(18, 2)) AS __s10_a0,
        CASE WHEN account % 4 = 1 THEN 1 END AS __s20_m, CASE WHEN account % 4 = 1 THEN 'marked' END AS __s20_a0,
        CASE WHEN account % 10 = 2 THEN 1 END AS __s30_m, CASE WHEN account % 10 = 2 THEN note || '!' END AS __s30_a0,
        CASE WHEN account % 5 = 3 THEN 1 END AS __s40_m,
        CAST(CASE WHEN account % 5 = 3 THEN round({_FINAL} * 0.01, 2) END AS DECIMAL(21, 2)) AS __s40_a0,
        CASE WHEN account % 20 = 19 THEN 1 END AS __s50_m
    FROM input WHERE account % 8 = 0 OR account % 4 = 1 OR account % 10 = 2 OR account % 5 = 3 OR account % 20 = 19
    ORDER BY __ordinal
"""
_CREATED = f"""
    SELECT CAST(NULL AS VARCHAR) AS journal_id, account, CAST(NULL AS VARCHAR) AS currency,
        CAST(NULL AS DECIMAL(18, 2)) AS amount, CAST(NULL AS VARCHAR) AS category, CAST(NULL AS VARCHAR) AS note,
        CAST(NULL AS DECIMAL(21, 2)) AS fee, CAST(sum({_FINAL}) AS DECIMAL(28, 2)) AS total,
        '2026-01' AS _period, '' AS _labels
    FROM input WHERE account % 20 <> 19 GROUP BY account ORDER BY account
"""
_COLD = """
import json, sys
from datetime import date
from pathlib import Path
from clew.plan import plan_from_json
from clew.trace.parts_json import part_from_json
from clew.trace.reader import RunTrace
root = Path(sys.argv[1])
plan = plan_from_json(json.loads((root / "plan.json").read_text()))
parts = tuple(part_from_json(each, "parts.json") for each in json.loads((root / "parts.json").read_text()))
trace = RunTrace(root, "trace-read-bench", plan, parts, "2026-01", date(2026, 1, 31))
assert len(trace.history(sys.argv[2]).entries) > 2
"""


@dataclass(frozen=True, slots=True)
class Bench:
    root: Path
    trace: RunTrace


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        bench = written(Path(folder))
        figures = [*lookups(bench), *questions(bench)]
        bench.trace.close()
        return figures


def written(root: Path) -> Bench:
    plan = planned(root / "workspace")
    with duckdb.connect(config={"memory_limit": "3GB"}) as connection:
        connection.execute(f"CREATE TABLE input AS {_INPUT}")
        loaded = part_file(root, "input", connection.sql("FROM input"), 0)
        changes = part_file(root, "changes", connection.sql(_CHANGES), None)
        created = part_file(root, "created", connection.sql(_CREATED), 1)
    steps = [
        *(TracedStep(seq, "update", (name,)) for seq, name in ((10, "amount"), (20, "category"), (30, "note"))),
        TracedStep(40, "update", ("fee",)),
        TracedStep(50, "delete", ()),
    ]
    columns = tuple((column.name, str(column.type)) for column in plan.columns_after(60))
    parts = (
        Part("input", "lines", (loaded,), columns[:6], details={"dataset": "lines", "version": 1}),
        Part("changes", "10-50", (changes,), (), seq=50, steps=tuple(steps)),
        Part("created", "60", (created,), columns, seq=60),
    )
    (root / "plan.json").write_text(json.dumps(plan_to_json(plan), default=str))
    (root / "parts.json").write_text(json.dumps([part_to_json(part) for part in parts]))
    return Bench(root, RunTrace(root, RUN, plan, parts, "2026-01", TODAY))


def planned(folder: Path) -> Plan:
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    loaded = load_workspace(folder)
    compiled = compile_workspace(loaded.workspace)
    assert not (*loaded.diagnostics, *compiled.diagnostics), (loaded.diagnostics, compiled.diagnostics)
    return compiled.plans["p"]


def part_file(root: Path, name: str, rows: duckdb.DuckDBPyRelation, ordinal: int | None) -> PartFile:
    path = root / f"{name}.parquet"
    reader = rows.to_arrow_reader(ROW_GROUP)
    has_ordinals = "__ordinal" in reader.schema.names
    written = 0
    with pq.ParquetWriter(
        path,
        reader.schema,
        compression="zstd",
        version="2.6",
        data_page_version="2.0",
        use_dictionary=[column for column in reader.schema.names if column != "__ordinal"],
        column_encoding={"__ordinal": "DELTA_BINARY_PACKED"} if has_ordinals else None,
        write_page_checksum=True,
    ) as writer:
        for batch in reader:
            writer.write_table(pa.Table.from_batches([batch]), row_group_size=ROW_GROUP)
            written += batch.num_rows
    content = path.read_bytes()
    return PartFile(f"{name}.parquet", written, len(content), hashlib.sha256(content).hexdigest(), ordinal)


def lookups(bench: Bench) -> list[Figure]:
    ordinals = [1_234_552 + 40 * step for step in range(ROUNDS)]
    ids = [bench.trace.row_ids.row_id(ordinal) for ordinal in ordinals]
    for row_id, ordinal in zip(ids, ordinals, strict=True):
        assert bench.trace.history(row_id).entries[0].source.line == ordinal + 2  # type: ignore[union-attr]
    warm, scanned = times(
        [lambda each=each: bench.trace.history(each) for each in ids],  # type: ignore[misc]
        [lambda each=each: scan(bench.root, each) for each in ordinals],  # type: ignore[misc]
    )
    cold = median(seconds(lambda: subprocess.run(cold_command(bench, ids[0]), check=True)) for _ in range(5))
    return [
        Figure("history of one row of 5 million, warm", warm * 1e3, "ms", at_most=50),
        Figure("the same by scanning the files with pyarrow", scanned * 1e3, "ms"),
        Figure("history against the scan", warm / scanned, "x"),
        Figure("history of one row in a new process, Python and imports included", cold, "s", at_most=1),
    ]


def cold_command(bench: Bench, row_id: str) -> list[str]:
    return [sys.executable, "-c", _COLD, str(bench.root), row_id]


def scan(root: Path, ordinal: int) -> object:
    """What somebody would write who knows nothing of row groups."""
    row = pq.read_table(root / "input.parquet").slice(ordinal, 1).to_pylist()
    changes = pq.read_table(root / "changes.parquet")
    return row, changes.filter(pc.equal(changes["__ordinal"], ordinal)).to_pylist()


def questions(bench: Bench) -> list[Figure]:
    trace = bench.trace
    total = trace.search("total IS NOT NULL AND account = 17").rows[0].row_id
    asked: dict[str, Callable[[], Any]] = {
        "search by a value that no step changes": lambda: trace.search('journal_id = "JE-03456789"'),
        "search by a value that a step changes": lambda: trace.search("amount = 26421.34 AND account = 8"),
        "search by a function that only Python evaluates, first 100 rows": lambda: trace.search("LEN(note) = 6"),
        "first 100 records of a step": lambda: trace.step_rows(30),
        "counts by step and column": trace.counts,
        "why a total of 5,000 rows is what it is": lambda: explain(trace, total, "total"),
    }
    for ask in asked.values():
        ask()
    return [Figure(name, median(seconds(ask) for _ in range(3)) * 1e3, "ms") for name, ask in asked.items()]


def times(*sides: Sequence[Callable[[], object]]) -> list[float]:
    """The median seconds of each side; sides take turns."""
    measured = [list[float]() for _ in sides]
    for turn in zip(*sides, strict=True):
        for index, side in enumerate(turn):
            measured[index].append(seconds(side))
    return [median(each) for each in measured]


def seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start
