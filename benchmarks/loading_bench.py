"""Loading a CSV file, checked and with the line of every row, against Spark's own reader writing the same Parquet.

The same once more for a file with dates such as 31.01.2026 and numbers such as 1.234,50, of which one row in a thousand
makes no sense: Clew keeps these apart, Spark's reader casts texts in the same way and makes them NULL.

All take turns in one session; the median of all rounds counts. CLEW_BENCH_ROWS sets how many rows (5,000,000),
CLEW_BENCH_ROUNDS how often (5).
"""

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import duckdb
from benchmarks.figure import Figure
from pyspark.sql import SparkSession

from clew.definitions import FilesDatasource, PeriodTree
from clew.definitions.calendar import Calendar, Generate, periods_of
from clew.definitions.datasource import FilesOptions
from clew.engine.loading import PinRequest, pin
from clew.engine.parts import write_options
from clew.engine.session import SessionSettings, spark_session
from clew.engine.sql import spark_type
from clew.lang.types import parse_type
from clew.plan.datasets import DatasetColumn, DatasetUse
from clew.plan.file_rules import FileRules, TextRules
from clew.plan.resolution import ResolvedSource
from clew.storage.roots import storage_at

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "5000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))
COLUMNS = {
    "line_id": "integer",
    "posting_date": "date",
    "account": "string",
    "centre": "string",
    "description": "string",
    "currency": "string",
    "amount": "decimal(18,2)",
    "_period": "string",
}
PERIODS = PeriodTree(periods_of(Calendar(id="c", name="c", generate=Generate(first_year=2026, last_year=2026))))
_ROWS_SQL = """
SELECT range AS line_id, date '2026-01-01' + CAST(range % 31 AS INTEGER) AS posting_date, 4000 + range % 900 AS account,
  'C' || range % 50 AS centre, CASE range % 3 WHEN 0 THEN 'Supplier, office' ELSE 'Rent' END AS description,
  'EUR' AS currency, CAST((range * 7919 % 1000000) / 100.0 AS DECIMAL(18, 2)) AS amount, '2026-01' AS _period
FROM range({rows})
"""


_DIRTY_SQL = """
SELECT * REPLACE (
  strftime(posting_date, '%d.%m.%Y') AS posting_date,
  CASE WHEN line_id % 1000 = 7 THEN '12,3,4'
    ELSE replace(replace(replace(format('{{:,.2f}}', amount), ',', '_'), '.', ','), '_', '.') END AS amount
) FROM ({clean})
"""
_DIRTY = FileRules(
    columns={
        "posting_date": TextRules(formats=("dd.MM.yyyy",), nulls=("n/a",), trim=True),
        "amount": TextRules(decimal_mark=",", thousands_mark=".", nulls=("n/a",), trim=True),
    },
    others=TextRules(nulls=("n/a",), trim=True),
    bad_rows="quarantine",
)


def measure() -> list[Figure]:
    settings = SessionSettings("local[2]", {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "2"})
    spark = spark_session(settings)
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        folder = Path(name)
        duckdb.sql(f"COPY ({_ROWS_SQL.format(rows=ROWS)}) TO '{folder}/lines.csv' (HEADER)")
        dirty = _DIRTY_SQL.format(clean=_ROWS_SQL.format(rows=ROWS))
        duckdb.sql(f"COPY ({dirty}) TO '{folder}/dirty.csv' (HEADER)")
        plain = lambda: _plain(spark, folder)  # noqa: E731
        without_key, with_key = _request(folder, ()), _request(folder, ("line_id",))
        ways = {"plain": plain, "pin": lambda: _pin(spark, without_key), "key": lambda: _pin(spark, with_key)}
        apart = _request(folder, (), "dirty.csv", _DIRTY)
        ways |= {"casts": lambda: _casts(spark, folder), "dirty": lambda: _pin(spark, apart, ROWS - _wrong())}
        seconds = _interleaved(ways)
    return [
        Figure(f"plain spark.read.csv to Parquet, {ROWS:,} rows", seconds["plain"], "s"),
        Figure("loading with checks and source lines, of that", seconds["pin"] / seconds["plain"], "times"),
        Figure("loading with a natural key checked too, of that", seconds["key"] / seconds["plain"], "times"),
        Figure(f"spark.read.csv with casts of a dirty file to Parquet, {ROWS:,} rows", seconds["casts"], "s"),
        Figure(
            "loading it with formats and quarantine, of that", seconds["dirty"] / seconds["casts"], "times", at_most=1.3
        ),
    ]


def _interleaved(ways: dict[str, Callable[[], None]]) -> dict[str, float]:
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn:
                taken[name].append(time.perf_counter() - start)
    return {name: median(values) for name, values in taken.items()}


def _plain(spark: SparkSession, folder: Path) -> None:
    schema = ", ".join(f"{name} {spark_type(parse_type(type_))}" for name, type_ in COLUMNS.items())
    rows = spark.read.schema(schema).option("header", "true").csv(str(folder / "lines.csv"))
    rows.write.mode("overwrite").options(**write_options(rows.schema)).parquet(str(folder / "plain"))


def _wrong() -> int:
    return (ROWS + 992) // 1000


def _casts(spark: SparkSession, folder: Path) -> None:
    """What one would write for the dirty file: the same casts, and NULL for what is none."""
    texts = ", ".join(f"{name} STRING" for name in COLUMNS)
    rows = spark.read.schema(texts).option("header", "true").csv(str(folder / "dirty.csv"))
    trimmed = {name: f"nullif(trim({name}), 'n/a')" for name in COLUMNS}
    day = f"try_to_timestamp({trimmed['posting_date']}, 'dd.MM.yyyy')"
    number = f"replace(replace({trimmed['amount']}, '.', ''), ',', '.')"
    values = trimmed | {
        "line_id": f"try_cast({trimmed['line_id']} AS BIGINT)",
        "posting_date": f"CAST({day} AS DATE)",
        "amount": f"try_cast({number} AS DECIMAL(18, 2))",
    }
    typed = rows.selectExpr(*(f"{value} AS {name}" for name, value in values.items()))
    typed.write.mode("overwrite").options(**write_options(typed.schema)).parquet(str(folder / "casts"))


def _pin(spark: SparkSession, request: PinRequest, expected: int = ROWS) -> None:
    pinned = pin(spark, request)
    if pinned.rows_loaded != expected:
        raise SystemExit(f"{pinned.rows_loaded} rows were loaded")


def _request(folder: Path, key: tuple[str, ...], file: str = "lines.csv", rules: FileRules | None = None) -> PinRequest:
    columns = tuple(DatasetColumn(name, parse_type(type_), nullable=False) for name, type_ in COLUMNS.items())
    files = FilesDatasource(id="files", name="files", type="files", options=FilesOptions(root="."))
    period = PERIODS.period("2026-01")
    if period is None:
        raise SystemExit("no period")
    return PinRequest(
        use=DatasetUse("lines", "lines", "lines", "period", columns, key),
        sources=(
            ResolvedSource(
                *("files", "path", file, "rule", "2026-01"),
                holds_one_period=False,
                format="csv",
                rules=rules or FileRules(),
            ),
        ),
        datasources={"files": files},
        workspace_root=folder,
        storage_root=storage_at(folder / "storage"),
        run_id="bench",
        period=period,
        periods=PERIODS,
        first_file_ordinal=0,
        secrets=lambda reference: reference,
    )
