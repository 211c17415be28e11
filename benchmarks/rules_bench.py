"""What checks and windows cost: twenty checks against the run without, a step with OVER against the same by hand.

The rows are a registered dataset, as in the benchmark of the engine; a run writes its trace, the job by hand writes its
output only. The checks are of the kinds that ride on a job: rows, sets, ranges, patterns, expressions, totals.
CLEW_BENCH_ROWS sets how many rows (5,000,000), CLEW_BENCH_ROUNDS how often (5).
"""

import os
from pathlib import Path

from benchmarks import ledger
from benchmarks.figure import Figure
from benchmarks.ledger_runs import interleaved, ledger_runs
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - what everybody writes

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))

_CONVERT = """
  - {seq: 10, name: Convert, type: update, arguments: {
      assignments: [{column: net, expression: 'ROUND(amount / 1.19, 2)'}]}}
  - {seq: 20, name: Publish, type: output, arguments: {destination: {datasource_id: out, path: NAME},
      columns: [id, account, category, currency, amount, centre, net]}}
"""
_RULES = [
    "not_null: [id, account, category, currency, amount]",
    *(f"not_null: {column}" for column in ("centre", "note", "net")),
    "in_set: {column: currency, values: [EUR, USD, GBP, JPY]}",
    *(f"range: {{column: {column}, min: 0}}" for column in ("id", "account", "category")),
    "range: {column: amount, min: 0, max: 100000000}",
    *(f'pattern: {{column: {column}, matches: "^[A-Za-z]"}}' for column in ("currency", "centre", "note")),
    "expression: ABS(net) <= ABS(amount)",
    "expression: LEN(currency) = 3",
    "expression: account >= 0 OR amount = 0",
    "expression: centre <> note",
    "total: COUNT_ALL() > 0",
    "total: SUM(net) < SUM(amount)",
    "total: MIN_AGG(id) >= 0",
    "total: MAX_AGG(account) > MIN_AGG(account)",
]
_WINDOW = """
id: window
status: active
input_dataset: ledger
operations:
  - {seq: 10, name: Share, type: update, arguments: {assignments: [
      {column: part, expression: 'amount / SUM(amount) OVER (PARTITION BY account)'},
      {column: so_far, expression: 'SUM(amount) OVER (PARTITION BY account ORDER BY id)'}]}}
  - {seq: 20, name: Publish, type: output, arguments: {destination: {datasource_id: out, path: window},
      columns: [id, account, amount, part, so_far]}}
"""


def _window_by_hand(spark: SparkSession, lines: list[str], _data: Path, out: Path) -> None:
    of_account = Window.partitionBy("account")
    rows = spark.read.parquet(*lines).select("id", "account", "amount")
    whole = F.sum("amount").over(of_account)
    rows = rows.withColumn("part", F.expr("amount") / whole).withColumn(
        "so_far", F.sum("amount").over(of_account.orderBy("id"))
    )
    rows.write.mode("overwrite").parquet(str(out))


def measure() -> list[Figure]:
    plain = f"id: plain\nstatus: active\ninput_dataset: ledger\noperations:{_CONVERT.replace('NAME', 'plain')}"
    rules = "".join(f'\n  - {{name: "rule {at}", {rule}}}' for at, rule in enumerate(_RULES, start=1))
    checked = plain.replace("plain", "checked") + f"checks:{rules}\n"
    ledger.HAND["window"] = _window_by_hand
    with ledger_runs(ROWS, {"plain": plain, "checked": checked, "window": _WINDOW}) as runs:
        checks = interleaved({"plain": lambda: runs.run("plain"), "checked": lambda: runs.run("checked")}, ROUNDS)
        windows = interleaved({"hand": lambda: runs.run_by_hand("window"), "clew": lambda: runs.run("window")}, ROUNDS)
    with_rules, with_window = checks["checked"] / checks["plain"], windows["clew"] / windows["hand"]
    return [
        Figure(f"{len(_RULES)} checks over {ROWS:,} rows: against the run without", with_rules, "times", at_most=1.1),
        Figure(f"a step with OVER over {ROWS:,} rows: traced run against hand-written", with_window, "times"),
        Figure("the same, median", windows["clew"], "s"),
    ]
