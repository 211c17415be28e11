"""The sample with its journal and its results in tables of catalogs: Hive's metastore, and one of Iceberg behind REST.

The metastore is a server, and has Delta and Hive tables.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
import yaml
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from clew.api.run import Run
from clew.sample import write_sample
from clew.storage.parts import Part
from tests.engine import table_jars
from tests.engine.engine_workspaces import Shop
from tests.engine.rest_catalog import TOKEN, RestCatalog, rest_catalog
from tests.engine.spark_servers import hive_metastore
from tests.engine.table_lakes import ran
from tests.engine.table_process import TableProcess, table_process

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PERIOD = "2026-01"
FORMATS = {"spark_catalog": "delta", "rest": "iceberg"}
SCHEMAS = {"spark_catalog": "ledger", "rest": "ledger"}
RESULTS = ["row_kind", "journal_id", "line_number", "account_code", "amount_usd", "total_usd", "line_count"]


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalog]:
    with rest_catalog(tmp_path_factory.mktemp("catalog") / "rest") as found:
        yield found


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with hive_metastore(tmp_path_factory.mktemp("metastore")) as address:
        yield address


@pytest.fixture(scope="module")
def catalogs(tmp_path_factory: pytest.TempPathFactory, rest: RestCatalog, metastore: str) -> Iterator[TableProcess]:
    """A Spark that knows a metastore of Hive, and a catalog behind REST."""
    table_jars.require("delta", "iceberg")
    folder = tmp_path_factory.mktemp("catalogs")
    settings = {
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.hive.metastore.uris": metastore,
        "spark.sql.catalog.rest": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.rest.type": "rest",
        "spark.sql.catalog.rest.uri": rest.uri,
        "spark.sql.catalog.rest.token": TOKEN,
    }
    with table_process(folder, settings) as process:
        yield process


def _tables_of_sample(spark: SparkSession, data: str, catalog: str, format_: str) -> None:
    """The journal of two months as a table of a catalog, and the budgets as a table of Hive."""
    for schema in (f"{catalog}.{SCHEMAS[catalog]}", "spark_catalog.ledger"):
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {schema}")
    schema = (
        "journal_id STRING, line_number BIGINT, posting_date DATE, account_code STRING, cost_center STRING, "
        "description STRING, currency STRING, amount_local DECIMAL(18,2), category STRING, entered_by STRING, "
        "_period STRING"
    )
    files = [f"{data}/journal/journal_{period}.csv" for period in (PERIOD, "2026-02")]
    rows = spark.read.schema(schema).option("header", True).csv(files)
    rows.writeTo(f"{catalog}.{SCHEMAS[catalog]}.journal").using(format_).createOrReplace()
    budgets = spark.read.option("header", True).csv(f"{data}/budgets.csv")
    typed = budgets.selectExpr("* EXCEPT (amount_usd)", "CAST(amount_usd AS DECIMAL(18,2)) AS amount_usd")
    typed.write.mode("overwrite").format("hive").saveAsTable("spark_catalog.ledger.budgets")


def sample_on(root: Path, catalog: str) -> Shop:
    """The sample with the journal, the budgets and the closed ledger in tables."""
    write_sample(root)
    shop = Shop(root)
    budgets = yaml.safe_load((root / "datasets/budgets.yaml").read_text())
    project = (root / "projects/gl-close.yaml").read_text()
    named = f"{{datasource_id: named, table: closed, format: {FORMATS[catalog]}, create_missing: table}}"
    by_files = '{datasource_id: reports, path: "gl-closed/{period}", format: parquet}\n      columns:\n'
    assert by_files in project
    project = project.replace(by_files, f"{named}\n      mode: replace_period\n      columns:\n        - _row_id\n")

    def resolver(name: str, datasource: str, table: str) -> dict[str, Any]:
        strategy = {"type": "table", "datasource_id": datasource, "table": table}
        return {"id": name, "rules": [{"name": "a table", "strategy": strategy}]}

    hive = {"catalog": "spark_catalog", "schema": "ledger"}
    return shop.write(
        {
            "datasources/named.yaml": {
                "id": "named",
                "type": "catalog",
                "options": {"catalog": catalog, "schema": SCHEMAS[catalog]},
            },
            "datasources/hive.yaml": {"id": "hive", "type": "catalog", "options": hive},
            "resolvers/journal-files.yaml": resolver("journal-files", "named", "journal"),
            "resolvers/budget-table.yaml": resolver("budget-table", "hive", "{table}"),
            "datasets/budgets.yaml": {**budgets, "resolver_id": "budget-table"},
            "projects/gl-close.yaml": project,
        }
    )


def completed(run: Run) -> Run:
    assert run.error is None, run.error.message
    return run


def input_of(run: Run, name: str) -> Part:
    [found] = [part for part in run.parts() if part.kind == "input" and part.name.startswith(name)]
    return found


def results(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted((tuple(row[name] for name in RESULTS) for row in rows), key=repr)


@pytest.fixture(scope="module")
def by_files(catalogs: TableProcess, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    """The closed ledger of the sample as it comes, from files to files."""
    root = tmp_path_factory.mktemp("by_files")
    write_sample(root)
    completed(ran(catalogs, Shop(root), "gl-close", PERIOD))
    return results(ds.dataset(root / "out" / "gl-closed" / PERIOD).to_table().to_pylist())


@pytest.mark.parametrize("catalog", list(FORMATS))
def test_the_sample_runs_from_tables_to_tables_of_a_catalog(
    catalog: str, catalogs: TableProcess, rest: RestCatalog, by_files: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    shop = sample_on(tmp_path, catalog)
    catalogs(_tables_of_sample, str(tmp_path / "data"), catalog, FORMATS[catalog])
    closed = completed(ran(catalogs, shop, "gl-close", PERIOD))
    again = completed(ran(catalogs, shop, "gl-close", PERIOD))
    assert (input_of(closed, "journal").details or {})["pinned"] == "version"
    budgets = input_of(closed, "budgets").details or {}
    assert (budgets["pinned"], budgets["reason"]) == ("copy", "a hive table keeps no versions")
    if catalog == "rest":
        written = rest.tables.load_table("ledger.closed").scan().to_arrow()
    else:
        described = catalogs.sql(f"DESCRIBE TABLE EXTENDED {catalog}.{SCHEMAS[catalog]}.closed")
        [folder] = [str(row[1]).removeprefix("file:") for row in described if row[0] == "Location"]
        written = DeltaTable(folder).to_pyarrow_table()
    assert results(written.to_pylist()) == by_files
    report = completed(ran(catalogs, shop, "group-report", PERIOD))
    [row] = report.trace(where='row_kind = "report" AND account_type = "revenue"', limit=1).rows
    told = report.explain(row.row_id, "actual_usd").to_text()
    assert f"run {again.id[:8]}" in told
    assert f"{catalog}.{SCHEMAS[catalog]}.journal " in told
