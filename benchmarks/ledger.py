"""A ledger of any size and two projects on it, as a Clew workspace and as the same jobs written by hand."""

from collections.abc import Callable
from pathlib import Path

import duckdb
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - what everybody writes

CATEGORIES = 40
"""Travel is category 7: one row in forty."""

_WORKSPACE = """
name: bench
environments:
  dev:
    spark: {master: "local[2]", config: {spark.driver.memory: 4g}}
"""
_CALENDAR = "id: year\nlevels: [year, quarter, month]\ngenerate: {first_year: 2026, last_year: 2026}\n"
_SOURCES = "id: data\ntype: files\noptions: {root: data}\n"
_OUTPUTS = "id: out\ntype: files\noptions: {root: out}\n"
_RESOLVER = """
id: files
is_default: true
rules:
  - {name: files, strategy: {type: path, datasource_id: data, path: "{dataset}.parquet", format: parquet}}
"""
_LINES = """
id: lines
main_table:
  name: lines
  columns:
    - {name: id, type: integer}
    - {name: account, type: integer}
    - {name: category, type: integer}
    - {name: currency, type: string}
    - {name: amount, type: "decimal(18,2)"}
    - {name: centre, type: string}
    - {name: note, type: string}
"""
_RATES = """
id: rates
natural_key: [currency]
main_table: {name: rates, columns: [{name: currency, type: string}, {name: rate, type: "decimal(18,6)"}]}
"""
_CENTRES = """
id: centres
natural_key: [centre]
main_table: {name: centres, columns: [{name: centre, type: string}, {name: region, type: string}]}
"""
_KEEP = """
id: keep
status: active
input_dataset: lines
operations:
  - {seq: 10, name: Keep, type: output, arguments: {destination: {datasource_id: out, path: kept},
     columns: [id, account, category, currency, amount, centre, note], register_as_dataset: ledger}}
"""
_TYPICAL = """
id: typical
status: active
input_dataset: ledger
operations:
  - {seq: 10, name: Convert, type: update, selector: 'lines.currency = "EUR"', arguments: {
      joins: [{alias: rates, dataset_id: rates, on: rates.currency = lines.currency}],
      assignments: [{column: amount, expression: 'ROUND(lines.amount * rates.rate, 2)'}]}}
  - {seq: 20, name: Region, type: update, selector: 'MOD(id, 4) = 0', arguments: {
      joins: [{alias: centres, dataset_id: centres, on: centres.centre = lines.centre}],
      assignments: [{column: region, expression: centres.region}]}}
  - {seq: 30, name: Reclassify, type: update, selector: 'MOD(id, 10) = 3', arguments: {
      assignments: [{column: category, expression: category + 100}]}}
  - {seq: 40, name: Note, type: update, selector: amount > 8100, arguments: {
      assignments: [{column: note, expression: 'CONCAT(note, " large")'}]}}
  - {seq: 50, name: Flag, type: update, selector: 'MOD(id, 20) = 1', arguments: {
      assignments: [{column: flag, expression: '"review"'}]}}
  - {seq: 60, name: Drop, type: delete, selector: 'MOD(id, 20) = 7'}
  - {seq: 70, name: Totals, type: aggregate, arguments: {group_by: [account],
      aggregations: [{column: total, expression: SUM(amount)}]}}
  - {seq: 80, name: Publish, type: output, arguments: {destination: {datasource_id: out, path: typical},
      columns: [id, account, category, currency, amount, centre, note, region, flag, total]}}
"""
_HEAVY = """
id: heavy
status: active
input_dataset: ledger
operations:
  - {seq: 10, name: Convert, type: update, arguments: {
      joins: [{alias: rates, dataset_id: rates, on: rates.currency = lines.currency}],
      assignments: [{column: usd, expression: 'ROUND(lines.amount * rates.rate, 2)'}]}}
  - {seq: 20, name: Tax, type: update, arguments: {assignments: [{column: tax, expression: 'ROUND(usd * 0.19, 2)'}]}}
  - {seq: 30, name: Reclassify, type: update, selector: 'MOD(id, 8) = 3', arguments: {
      assignments: [{column: category, expression: category + 100}]}}
  - {seq: 40, name: Drop, type: delete, selector: 'MOD(id, 6) = 1'}
  - {seq: 50, name: Totals, type: aggregate, arguments: {group_by: [account],
      aggregations: [{column: total, expression: SUM(usd)}]}}
  - {seq: 60, name: Publish, type: output, arguments: {destination: {datasource_id: out, path: heavy},
      columns: [id, account, category, currency, amount, centre, note, usd, tax, total]}}
"""


def write_workspace(root: Path, rows: int) -> None:
    """A workspace with a ledger of so many rows, Parquet in eight files' worth of row groups."""
    files = {
        "clew.yaml": _WORKSPACE,
        "calendars/year.yaml": _CALENDAR,
        "datasources/data.yaml": _SOURCES,
        "datasources/out.yaml": _OUTPUTS,
        "resolvers/files.yaml": _RESOLVER,
        "datasets/lines.yaml": _LINES,
        "datasets/rates.yaml": _RATES,
        "datasets/centres.yaml": _CENTRES,
        "projects/keep.yaml": _KEEP,
        "projects/typical.yaml": _TYPICAL,
        "projects/heavy.yaml": _HEAVY,
    }
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    data = root / "data"
    data.mkdir()
    _write_data(data, rows)


def _write_data(data: Path, rows: int) -> None:
    with duckdb.connect() as connection:
        connection.execute(
            f"""
            COPY (
                SELECT i AS id, i % 1000 AS account, i % {CATEGORIES} AS category,
                    ['EUR', 'USD', 'GBP', 'JPY', 'USD', 'USD', 'USD', 'USD'][1 + i % 8] AS currency,
                    ((i * 7919) % 1000000 / 100)::DECIMAL(18, 2) AS amount,
                    'C' || (i % 50) AS centre, 'posting ' || (i % 977) AS note
                FROM range({rows}) AS numbers(i)
            ) TO '{data / "lines.parquet"}' (FORMAT parquet, ROW_GROUP_SIZE 100000)
            """
        )
        connection.execute(
            f"""
            COPY (SELECT * FROM (VALUES ('EUR', 1.092::DECIMAL(18, 6)), ('USD', 1.0), ('GBP', 1.27), ('JPY', 0.0067))
                AS rates(currency, rate)) TO '{data / "rates.parquet"}' (FORMAT parquet)
            """
        )
        connection.execute(
            f"""
            COPY (SELECT 'C' || i AS centre, 'region ' || (i % 5) AS region FROM range(50) AS numbers(i))
            TO '{data / "centres.parquet"}' (FORMAT parquet)
            """
        )


def hand_typical(spark: SparkSession, ledger: list[str], data: Path, out: Path) -> None:
    """The typical job as one would write it in PySpark."""
    rates, centres = spark.read.parquet(str(data / "rates.parquet")), spark.read.parquet(str(data / "centres.parquet"))
    rows = spark.read.parquet(*ledger).select("id", "account", "category", "currency", "amount", "centre", "note")
    rows = rows.join(F.broadcast(rates), "currency", "left")
    rows = rows.withColumn(
        "amount",
        F.when(F.col("currency") == "EUR", F.expr("CAST(round(amount * rate, 2) AS DECIMAL(18, 2))")).otherwise(
            F.col("amount")
        ),
    ).drop("rate")
    rows = rows.join(F.broadcast(centres), "centre", "left")
    rows = rows.withColumn("region", F.when(F.expr("id % 4 = 0"), F.col("region")))
    rows = rows.withColumn("category", F.expr("CASE WHEN id % 10 = 3 THEN category + 100 ELSE category END"))
    rows = rows.withColumn("note", F.expr("CASE WHEN amount > 8100 THEN concat(note, ' large') ELSE note END"))
    rows = rows.withColumn("flag", F.expr("CASE WHEN id % 20 = 1 THEN 'review' END"))
    rows = rows.where("id % 20 <> 7")
    totals = rows.groupBy("account").agg(F.sum("amount").alias("total"))
    rows.withColumn("total", F.lit(None).cast("decimal(28,2)")).unionByName(totals, allowMissingColumns=True).select(
        "id", "account", "category", "currency", "amount", "centre", "note", "region", "flag", "total"
    ).write.mode("overwrite").parquet(str(out))


def hand_heavy(spark: SparkSession, ledger: list[str], data: Path, out: Path) -> None:
    """The heavy job as one would write it in PySpark."""
    rates = spark.read.parquet(str(data / "rates.parquet"))
    rows = spark.read.parquet(*ledger).select("id", "account", "category", "currency", "amount", "centre", "note")
    rows = rows.join(F.broadcast(rates), "currency", "left")
    rows = rows.withColumn("usd", F.expr("round(amount * rate, 2)")).drop("rate")
    rows = rows.withColumn("tax", F.expr("round(usd * 0.19, 2)"))
    rows = rows.withColumn("category", F.expr("CASE WHEN id % 8 = 3 THEN category + 100 ELSE category END"))
    rows = rows.where("id % 6 <> 1")
    totals = rows.groupBy("account").agg(F.sum("usd").alias("total"))
    rows.withColumn("total", F.lit(None).cast("decimal(38,2)")).unionByName(
        totals.withColumn("total", F.col("total").cast("decimal(38,2)")), allowMissingColumns=True
    ).select("id", "account", "category", "currency", "amount", "centre", "note", "usd", "tax", "total").write.mode(
        "overwrite"
    ).parquet(str(out))


HAND: dict[str, Callable[[SparkSession, list[str], Path, Path], None]] = {"typical": hand_typical, "heavy": hand_heavy}
