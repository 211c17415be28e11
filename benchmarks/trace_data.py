"""The files of a traced run of any size, as the engine leaves them, written without running it.

Six steps: four updates that change 12.5, 25, 10 and 20 % of the rows, a deletion of 5 %, totals of a thousand groups.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from clew.definitions import load_workspace
from clew.plan import Plan, compile_workspace, plan_to_json
from clew.storage.block_digests import digests_of_file
from clew.storage.parts import Part, PartFile, TracedStep, part_to_json
from clew.storage.roots import storage_at
from clew.trace.reader import RunTrace

GROUPS = 1_000
ROW_GROUP = 100_000
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
_FACTOR = "amount * 2"
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
"""
_CREATED = f"""
    SELECT CAST(NULL AS VARCHAR) AS journal_id, account, CAST(NULL AS VARCHAR) AS currency,
        CAST(NULL AS DECIMAL(18, 2)) AS amount, CAST(NULL AS VARCHAR) AS category, CAST(NULL AS VARCHAR) AS note,
        CAST(NULL AS DECIMAL(21, 2)) AS fee, CAST(sum({_FINAL}) AS DECIMAL(28, 2)) AS total,
        '2026-01' AS _period, '' AS _labels
    FROM input WHERE account % 20 <> 19 GROUP BY account ORDER BY account
"""


@dataclass(frozen=True, slots=True)
class Bench:
    """A traced run of so many rows."""

    root: Path
    rows: int
    trace: RunTrace


def rows_sql(rows: int, groups: int = GROUPS) -> str:
    """The rows that were loaded."""
    return f"""
        SELECT 'JE-' || lpad(CAST(i AS VARCHAR), 8, '0') AS journal_id, i % {groups} AS account,
            ['EUR', 'USD', 'GBP', 'JPY'][1 + i % 4] AS currency,
            CAST((i * 7919 % 10000019) / 100.0 AS DECIMAL(18, 2)) AS amount,
            'category ' || (i % 40) AS category, 'note ' || (hash(i) % 1000) AS note,
            '2026-01' AS _period, 'lines.csv' AS __source_file, i + 2 AS __source_line
        FROM range({rows}) AS r(i)
    """


def written(root: Path, rows: int, groups: int = GROUPS, factor: int = 2) -> Bench:
    """Write the files of a run below a folder. Its totals are of so many groups, less those that it drops.

    The first step multiplies amounts by a factor.
    """

    def by_factor(text: str) -> str:
        return text.replace(_FACTOR, f"amount * {factor}")

    plan = planned(root / "workspace", by_factor)
    with duckdb.connect(config={"memory_limit": "3GB"}) as connection:
        connection.execute(f"CREATE TABLE input AS {rows_sql(rows, groups)}")
        loaded = part_file(root, "input", connection.sql("FROM input"), 0)
        changes = part_file(root, "changes", connection.sql(by_factor(_CHANGES)), None)
        created = part_file(root, "created", connection.sql(by_factor(_CREATED)), 1)
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
    return Bench(root, rows, RunTrace(storage_at(root), RUN, plan, parts, "2026-01", TODAY))


def planned(folder: Path, edited: Callable[[str], str] = str) -> Plan:
    """The plan of the run."""
    for name, text in _FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(edited(text))
    loaded = load_workspace(folder)
    compiled = compile_workspace(loaded.workspace)
    assert not (*loaded.diagnostics, *compiled.diagnostics), (loaded.diagnostics, compiled.diagnostics)
    return compiled.plans["p"]


def part_file(root: Path, name: str, rows: duckdb.DuckDBPyRelation, ordinal: int | None) -> PartFile:
    """Rows as a file of a part."""
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
    digests = digests_of_file(storage_at(root), path.name)
    return PartFile(path.name, written, path.stat().st_size, digests.sha256, ordinal, blocks=digests.blocks)
