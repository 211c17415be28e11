"""How long a row takes to be found as traces grow, and how many bytes a change costs.

CLEW_BENCH_SCALES sets the sizes, in millions of rows (1,5,20).
"""

import os
import tempfile
from functools import partial
from pathlib import Path

import duckdb
from benchmarks.figure import Figure
from benchmarks.timing import medians
from benchmarks.trace_data import Bench, written

MILLIONS = [float(size) for size in os.environ.get("CLEW_BENCH_SCALES", "1,5,20").split(",")]
ROUNDS = 15
_STEPS = {10: "amount", 20: "category", 30: "note", 40: "fee"}


def measure() -> list[Figure]:
    figures, warm = list[Figure](), dict[float, float]()
    for millions in MILLIONS:
        with tempfile.TemporaryDirectory() as folder:
            bench = written(Path(folder), int(millions * 1_000_000))
            warm[millions] = lookup(bench)
            figures.append(Figure(f"history of one row of {bench.rows:,}", warm[millions] * 1e3, "ms", at_most=50))
            if millions == MILLIONS[0]:
                figures += sizes(bench)
            bench.trace.close()
    growth = warm[MILLIONS[-1]] / warm[MILLIONS[0]]
    more = MILLIONS[-1] / MILLIONS[0]
    return [*figures, Figure(f"the largest against the smallest, {more:g} times the rows", growth, "x")]


def lookup(bench: Bench) -> float:
    """Rows all over the files, each looked up for the first time."""
    ordinals = [bench.rows * turn // ROUNDS // 40 * 40 + 8 for turn in range(ROUNDS)]
    ids = [bench.trace.row_ids.row_id(ordinal) for ordinal in ordinals]
    assert all(len(bench.trace.history(each).entries) == 3 for each in ids[:2])
    return medians([partial(bench.trace.history, each) for each in ids])[0]


def sizes(bench: Bench) -> list[Figure]:
    """The changes as they lie in files, and as lines of JSON with the fields of a record."""
    with duckdb.connect() as connection:
        loaded, changes = (f"read_parquet('{bench.root / name}.parquet'" for name in ("input", "changes"))
        numbered = f"SELECT *, file_row_number AS __ordinal FROM {loaded}, file_row_number = true)"
        connection.execute(f"CREATE VIEW loaded AS {numbered}")
        connection.execute(f"CREATE VIEW changes AS FROM {changes})")
        records = " UNION ALL ".join(
            [
                f"""SELECT __ordinal, {seq} AS operation_seq, 'updated' AS change_type,
                       CAST({{'{name}': {_before(name)}}} AS JSON) AS before,
                       CAST({{'{name}': __s{seq}_a0}} AS JSON) AS after
                    FROM changes JOIN loaded USING (__ordinal) WHERE __s{seq}_m IS NOT NULL"""
                for seq, name in _STEPS.items()
            ]
            + [
                """SELECT __ordinal, 50, 'deleted', CAST({'_deleted': false} AS JSON), NULL
                   FROM changes WHERE __s50_m IS NOT NULL"""
            ]
        )
        lines = f"""SELECT '{bench.trace.run_id}' AS run_id, operation_seq, uuid()::VARCHAR AS row_id, change_type,
                       before, after FROM ({records})"""
        plain, packed = bench.root / "records.jsonl", bench.root / "records.jsonl.zst"
        connection.execute(f"COPY ({lines}) TO '{plain}' (FORMAT json)")
        connection.execute(f"COPY ({lines}) TO '{packed}' (FORMAT json, COMPRESSION zstd)")
        [(count,)] = connection.execute(f"SELECT count(*) FROM ({records})").fetchall()
    ours = (bench.root / "changes.parquet").stat().st_size
    return [
        Figure(f"bytes of trace for a change, {count:,} changes of {bench.rows:,} rows", ours / count, "bytes"),
        Figure("bytes of the same as a line of JSON", plain.stat().st_size / count, "bytes"),
        Figure("trace against lines of JSON", ours / plain.stat().st_size, "x", at_most=0.2),
        Figure("trace against lines of JSON that zstd has packed", ours / packed.stat().st_size, "x"),
    ]


def _before(name: str) -> str:
    return "NULL" if name == "fee" else name
