"""A hundred small scenarios in one session, against bare Spark jobs of the same shape on the same rows.

A scenario joins, deletes, sums up, writes an output and leaves a trace. The bare job joins, filters, sums up and
collects. The same scenarios also run without Spark. CLEW_BENCH_SCENARIOS sets how many (100).
"""

import json
import os
import tempfile
import time
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any, Literal

from benchmarks.figure import Figure
from pyspark.sql import SparkSession
from pyspark.sql.functions import expr

import clew

COUNT = int(os.environ.get("CLEW_BENCH_SCENARIOS", "100"))
_ORDERS = [
    {"id": n, "currency": "EUR" if n % 2 else "USD", "amount": f"{n}.50", "_period": "2026-01"} for n in range(1, 9)
]
_RATES = [{"currency": "EUR", "rate": "1.5"}, {"currency": "USD", "rate": "1"}]
_JOIN = {"alias": "rates", "dataset_id": "rates", "on": "rates.currency = orders.currency"}


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        root = Path(name)
        _write_workspace(root)
        _run(root, 5)
        spark = SparkSession.builder.getOrCreate()
        bare = median(_bare_seconds(spark) for _ in range(30))
        seconds = _run(root, COUNT)
        quick = _run(root, COUNT, on="quick")
    return [
        Figure("a bare Spark job that joins, filters, sums up and collects", 1000 * bare, "ms"),
        Figure(f"{COUNT} scenarios", seconds, "s"),
        Figure("one scenario, of the bare job", seconds / COUNT / bare, "times"),
        Figure(f"{COUNT} scenarios, quick", quick, "s", at_most=2 if COUNT <= 100 else None),
    ]


def _run(root: Path, count: int, on: Literal["spark", "quick"] = "spark") -> float:
    for old in (root / "scenarios").glob("*.yaml"):
        old.unlink()
    for number in range(count):
        (root / "scenarios" / f"s{number}.yaml").write_text(json.dumps(_scenario(number)), encoding="utf-8")
    report = clew.open(root).scenario_tests(on=on).run()
    if report.count("pass") != count:
        raise SystemExit(str(next(result for result in report.results if result.status != "pass")))
    return report.seconds


def _bare_seconds(spark: SparkSession) -> float:
    start = time.perf_counter()
    orders = spark.createDataFrame(
        [tuple(row.values()) for row in _ORDERS], "id INT, currency STRING, amount STRING, p STRING"
    )
    rates = spark.createDataFrame([tuple(row.values()) for row in _RATES], "currency STRING, rate STRING")
    joined = orders.join(rates, "currency", "left").where("id <> 3")
    value = expr("sum(CAST(amount AS DECIMAL(12,2)) * CAST(rate AS DECIMAL(9,4)))")
    joined.groupBy("currency").agg(value).collect()
    return time.perf_counter() - start


def _write_workspace(root: Path) -> None:
    (root / "scenarios").mkdir()
    (root / "clew.yaml").write_text("name: bench\n", encoding="utf-8")


def _scenario(number: int) -> dict[str, Any]:
    factor = number + 1
    totals = {"EUR": Decimal(0), "USD": Decimal(0)}
    for row in _ORDERS:
        if row["id"] != 3:
            rate = Decimal("1.5") if row["currency"] == "EUR" else 1
            totals[str(row["currency"])] += Decimal(str(row["amount"])) * rate * factor
    return {
        "name": f"scenario {number}",
        "periods": [{"identifier": "2026-01", "level": "month", "start_date": "2026-01-01", "end_date": "2026-01-31"}],
        "period": "2026-01",
        "datasets": [_dataset("orders", "period", _ORDERS), _dataset("rates", "none", _RATES)],
        "project": _project(factor),
        "expected_output": {
            "rows": [{"currency": currency, "total": float(total)} for currency, total in totals.items()],
        },
        "expected_trace": [{"operation_seq": 2, "change_type": "deleted", "row_match": {"id": 3}}],
    }


def _dataset(name: str, mode: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    types = {"id": "integer", "currency": "string", "amount": "decimal(12,2)", "rate": "decimal(9,4)"}
    columns = [{"name": column, "type": types[column]} for column in rows[0] if column in types]
    return {"id": name, "main_table": {"name": name, "temporal_mode": mode, "columns": columns}, "rows": rows}


def _project(factor: int) -> dict[str, Any]:
    value = {"column": "value", "expression": f"amount * rates.rate * {factor}"}
    total = {"column": "total", "expression": "SUM(value)"}
    destination = {"location": {"format": "parquet", "path": "out"}}
    return {
        "id": "p",
        "input_dataset": "orders",
        "operations": [
            _operation(1, "update", joins=[_JOIN], assignments=[value]),
            {**_operation(2, "delete"), "selector": "id = 3"},
            _operation(3, "aggregate", group_by=["currency"], aggregations=[total]),
            {
                **_operation(4, "output", destination=destination, columns=["currency", "total"]),
                "selector": "id IS NULL",
            },
        ],
    }


def _operation(seq: int, kind: str, **arguments: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"seq": seq, "name": f"{kind} {seq}", "type": kind, "arguments": arguments}
