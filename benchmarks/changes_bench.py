"""Comparing two runs against a plain full outer join, splitting a difference into causes, and supposing an expression.

CLEW_BENCH_CHANGES sets the number of rows (5,000,000). The second run has one row in a hundred less, and another
expression in a step that changes one row in eight: two causes.
"""

import os
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import duckdb
from benchmarks.figure import Figure
from benchmarks.timing import medians, seconds
from benchmarks.trace_data import GROUPS, Bench, written

from clew.auth.roles import AccessRole
from clew.change.attribution import AttributionQuestion, AttributionSide, attribute
from clew.change.comparing import CompareQuestion, CompareSide, compare_runs
from clew.change.suppositions import suppositions_of
from clew.change.what_if import WhatIf, what_if
from clew.definitions import Environment
from clew.privacy.eyes import RunEyes
from clew.privacy.policy import PrivacyPolicy
from clew.storage.roots import storage_at

ROWS = int(os.environ.get("CLEW_BENCH_CHANGES", "5000000"))
ROUNDS = 3
_ACCOUNT = 808
"""Its rows are changed by the step that differs."""
_CAUSES = 2
_COLUMNS = ("account", "currency", "amount", "category", "note")


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        first = below(Path(folder), written(Path(folder, "a"), ROWS))
        second = below(Path(folder), written(Path(folder, "b"), ROWS - ROWS // 100, factor=3))
        figures = [*compared(first, second), *attributed(first, second), *supposed(first)]
        first.trace.close()
        second.trace.close()
    return figures


def below(folder: Path, bench: Bench) -> Bench:
    """A run whose files are in a storage root that it shares with another."""
    parts = tuple(
        replace(part, files=tuple(replace(file, path=f"{bench.root.name}/{file.path}") for file in part.files))
        for part in bench.trace.parts
    )
    return replace(bench, trace=replace(bench.trace, root=storage_at(folder), parts=parts))


def eyes_of(bench: Bench) -> RunEyes:
    policy = PrivacyPolicy.of("dev", Environment(), AccessRole.ADMIN, marks={}, salt=lambda: "")
    return RunEyes.of(policy, bench.trace.plan)


def compared(a: Bench, b: Bench) -> list[Figure]:
    sides = [CompareSide(each.trace, eyes_of(each).working) for each in (a, b)]
    loaded = partial(compare_runs, sides[0], sides[1], CompareQuestion(at=0))
    worked = partial(compare_runs, sides[0], sides[1], CompareQuestion(at=50, sort="amount"))
    assert loaded().counts.only_in_a == a.rows - b.rows
    ours, plain = medians([loaded] * ROUNDS, [partial(joined, a, b)] * ROUNDS)
    return [
        Figure(f"compare {a.rows:,} rows with {b.rows:,}, as loaded", ours, "s"),
        Figure("a plain full outer join in DuckDB over the same files", plain, "s"),
        Figure("compare against the plain join", ours / plain, "x", at_most=1.5),
        Figure("compare after five steps, sorted by difference", medians([worked] * ROUNDS)[0], "s"),
    ]


def joined(a: Bench, b: Bench) -> None:
    """What one would write by hand: counts of rows that differ."""
    differs = " OR ".join(f"a.{name} IS DISTINCT FROM b.{name}" for name in _COLUMNS)
    files = [f"read_parquet('{each.root / 'input'}.parquet')" for each in (a, b)]
    with duckdb.connect() as connection:
        connection.execute(
            f"""SELECT count(*) FILTER (WHERE b.journal_id IS NULL), count(*) FILTER (WHERE a.journal_id IS NULL),
                       count(*) FILTER (WHERE {differs}), sum(a.amount), sum(b.amount)
                FROM {files[0]} AS a FULL OUTER JOIN {files[1]} AS b ON a.journal_id = b.journal_id"""
        ).fetchall()


def attributed(a: Bench, b: Bench) -> list[Figure]:
    sides = [AttributionSide(each.trace, eyes_of(each)) for each in (a, b)]
    question = AttributionQuestion(column="total", where=f"account = {_ACCOUNT}", at=60)
    assert len(attribute(sides[0], sides[1], question).causes) == _CAUSES
    spent = medians([partial(attribute, sides[0], sides[1], question)] * ROUNDS)[0]
    return [Figure(f"causes of a total of {a.rows // GROUPS:,} rows", spent, "s", at_most=1.5)]


def supposed(bench: Bench) -> list[Figure]:
    spent = seconds(partial(_supposed, bench))
    rows = bench.rows // 8
    return [
        Figure(f"what if another expression set {rows:,} rows, until totals are known", spent, "s", at_most=2),
        Figure("rows evaluated again for each second", rows / spent, "rows/s"),
    ]


def _supposed(bench: Bench) -> WhatIf:
    eyes = eyes_of(bench)
    wanted = suppositions_of(bench.trace.plan, eyes, sets=(), drops=(), expressions=("10.amount = amount * 3",))
    return what_if(bench.trace, (eyes.working,), wanted, CompareQuestion(at=60, limit=10))
