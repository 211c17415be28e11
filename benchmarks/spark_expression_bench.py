"""Expressions as Spark SQL against the same ones written by hand in idiomatic PySpark, over the same rows.

CLEW_BENCH_ROWS sets how many rows (2,000,000), CLEW_BENCH_ROUNDS how often (5). Both sides take turns and only
calculate: results go nowhere. Hand-written expressions are what people write, without the cases that the language
settles (a day beyond the year 9999, a negative divisor, a text that Spark would read generously).
"""

import os
import statistics
from collections.abc import Sequence
from datetime import date
from time import perf_counter

from benchmarks.figure import Figure
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody writes

from clew.diagnostics import PlainText
from clew.engine.session import SessionSettings, spark_session
from clew.engine.sql import quoted, sql_of
from clew.lang import Scalar, Scope, Table, check, parse, parse_type

ROWS = int(os.environ.get("CLEW_BENCH_ROWS", "2000000"))
ROUNDS = int(os.environ.get("CLEW_BENCH_ROUNDS", "5"))
TODAY = date(2026, 1, 31)

COLUMNS = {
    "id": "integer",
    "amount": "decimal(18,2)",
    "rate": "decimal(12,6)",
    "quantity": "integer",
    "share": "double",
    "currency": "string",
    "text": "string",
    "digits": "string",
    "posted": "date",
    "open": "boolean",
}
SCOPE = Scope((Table("gl", {name: parse_type(type_) for name, type_ in COLUMNS.items()}),))


def pairs() -> list[tuple[str, Column]]:
    amount, rate, quantity, text = F.col("amount"), F.col("rate"), F.col("quantity"), F.col("text")
    currency, posted, share = F.col("currency"), F.col("posted"), F.col("share")
    return [
        ("amount * rate", amount * rate),
        ("ROUND(amount * rate, 2)", F.round(amount * rate, 2)),
        ("amount / quantity", F.expr("try_divide(amount, CAST(quantity AS DECIMAL(20,0)))")),
        ("amount + amount * 0.19", amount + amount * F.expr("0.19BD")),
        ('IF(currency = "EUR", amount, amount * rate)', F.when(currency == "EUR", amount).otherwise(amount * rate)),
        ("COALESCE(amount, 0) > 100", F.coalesce(amount, F.lit(0)) > 100),
        ('currency IN ("EUR", "USD", "CHF")', currency.isin("EUR", "USD", "CHF")),
        ("amount >= 100 AND NOT open OR quantity < 3", ((amount >= 100) & ~F.col("open")) | (quantity < 3)),
        ("amount IS NULL", amount.isNull()),
        ("ABS(amount) - quantity", F.abs(amount) - quantity),
        ("MOD(id, 12)", F.pmod(F.col("id"), F.lit(12))),
        ("MIN(amount, rate)", F.least(amount, rate)),
        ("FLOOR(share * 100)", F.floor(share * 100)),
        (
            'CONCAT(UPPER(currency), "-", LEFT(text, 3))',
            F.concat(F.upper(currency), F.lit("-"), F.substring(text, 1, 3)),
        ),
        ('REPLACE(TRIM(text), "a", "b")', F.replace(F.trim(text), F.lit("a"), F.lit("b"))),
        ('LEN(text) + IF(CONTAINS(text, "7"), 1, 0)', F.length(text) + F.when(text.contains("7"), 1).otherwise(0)),
        ("TO_STRING(amount)", amount.cast("string")),
        ("TO_INTEGER(digits)", F.col("digits").cast("bigint")),
        ("YEAR(posted) * 100 + MONTH(posted)", F.year(posted) * 100 + F.month(posted)),
        ('DATEDIFF(DATEADD(posted, 30), DATE("2026-01-31"))', F.datediff(F.date_add(posted, 30), F.lit(TODAY))),
    ]


def rows_of(spark: SparkSession) -> DataFrame:
    return (
        spark.range(ROWS, numPartitions=2)
        .selectExpr(
            "id",
            "CAST(id % 100003 AS DECIMAL(18,2)) / 7 AS raw",
            "CAST(1 + (id % 1000) / 1000000 AS DECIMAL(12,6)) AS rate",
            "id % 50 AS quantity",
            "id / 7D AS share",
            "element_at(array('EUR', 'USD', 'GBP', 'CHF'), CAST(id % 4 AS INT) + 1) AS currency",
            "concat(' posting ', id % 977, ' ') AS text",
            "CAST(id % 100000 AS STRING) AS digits",
            "date_add(DATE '2025-01-01', CAST(id % 365 AS INT)) AS posted",
            "id % 3 = 0 AS open",
        )
        .selectExpr("* EXCEPT (raw)", "IF(id % 20 = 0, NULL, CAST(raw AS DECIMAL(18,2))) AS amount")
    )


def ours(source: str) -> Column:
    checked = check(parse(PlainText(source)), SCOPE, Scalar("in a benchmark"))
    if checked.expression is None:
        raise SystemExit(f"{source}: {checked.diagnostics}")
    return F.expr(sql_of(checked.expression, lambda _table, name: quoted(name), TODAY))


def seconds(rows: DataFrame, columns: Sequence[Column]) -> float:
    started = perf_counter()
    rows.select(*(column.alias(f"e{number}") for number, column in enumerate(columns))).write.format("noop").mode(
        "overwrite"
    ).save()
    return perf_counter() - started


def measure() -> list[Figure]:
    started = perf_counter()
    spark = spark_session(SessionSettings(master="local[2]"))
    start_up = perf_counter() - started
    rows = rows_of(spark).cache()
    rows.count()
    by_hand = [column for _, column in pairs()]
    started = perf_counter()
    by_clew = [ours(source) for source, _ in pairs()]
    building = perf_counter() - started
    for columns in (by_hand, by_clew):
        seconds(rows, columns)
    timed = [(seconds(rows, by_hand), seconds(rows, by_clew)) for _ in range(ROUNDS)]
    hand, clew = (statistics.median(each) for each in zip(*timed, strict=True))
    rows.unpersist()
    return [
        Figure(f"20 expressions over {ROWS:,} rows, times hand-written", clew / hand, "x", at_most=1.3),
        Figure("the same, hand-written", hand, "s"),
        Figure("the same, as Spark SQL", clew, "s"),
        Figure("one expression from text to Column", building / len(by_clew) * 1000, "ms"),
        Figure("a Spark session from nothing", start_up, "s"),
    ]
