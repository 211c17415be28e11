"""Outputs to tables by their names in a Spark catalog: the same commits as by path, and what a catalog refuses."""

import json
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.definitions import CatalogDatasource
from clew.engine.output.attempts import OutputAttempt
from clew.engine.output.catalog_targets import CatalogTarget
from clew.engine.output.lake_tables import LakeOutputs
from clew.storage.local import LocalStorage
from tests.engine import table_jars
from tests.engine.engine_workspaces import Shop, make_shop
from tests.engine.table_lakes import Lake, ran
from tests.engine.table_process import TableProcess

pytestmark = pytest.mark.spark

COLUMNS = ["id", "amount", "_period", "_row_id"]
CATALOGS = {"delta": "spark_catalog", "iceberg": "lake"}


def write(format_: str, table: str, mode: str, missing: str | None = None, **more: Any) -> dict[str, Any]:
    destination = {"datasource_id": "lake", "table": table, "format": format_}
    if missing is not None:
        destination["create_missing"] = missing
    arguments = {"destination": destination, "mode": mode, "columns": COLUMNS, **more}
    return {"seq": 20, "name": "Write", "type": "output", "arguments": arguments}


def shop_of(root: Path, catalog: str) -> Shop:
    options = {"catalog": catalog}
    return make_shop(root).write({"datasources/lake.yaml": {"id": "lake", "type": "catalog", "options": options}})


def completed(run: Run) -> Run:
    assert run.error is None, run.error.message
    return run


def refused(run: Run) -> tuple[str, str]:
    assert run.error is not None
    return run.error.code, run.error.message


def orders(shop: Shop, *rows: str) -> None:
    shop.write({"data/orders.csv": "\n".join(["id,currency,amount,_period", *rows, ""])})


@pytest.fixture
def schema(lake: Lake, table_spark: TableProcess) -> Iterator[str]:
    """The name of a schema that is not there yet."""
    name = f"s{uuid.uuid4().hex[:10]}"
    yield name
    table_spark.sql(f"DROP SCHEMA IF EXISTS spark_catalog.{name} CASCADE")


def table_of(lake: Lake, schema: str) -> Path:
    """Where the catalogs of the tests keep a table."""
    if lake.format == "delta":
        return lake.process.folder / "spark-warehouse" / f"{schema}.db" / "ledger"
    return lake.process.folder / "warehouse" / schema / "ledger"


def opened(lake: Lake, schema: str) -> Any:
    """The table as an independent library reads it."""
    folder = table_of(lake, schema)
    if lake.format == "delta":
        return DeltaTable(folder)
    hint = (folder / "metadata" / "version-hint.text").read_text()
    return StaticTable.from_metadata(f"file://{folder}/metadata/v{hint}.metadata.json")


def rows_in(lake: Lake, schema: str) -> list[tuple[Any, ...]]:
    table = opened(lake, schema)
    found = table.to_pyarrow_table() if lake.format == "delta" else table.scan().to_arrow()
    return sorted((row["id"], row["amount"], row["_period"]) for row in found.to_pylist())


def writers(lake: Lake, schema: str) -> list[tuple[str, int]]:
    """The runs and steps that the commits name, oldest first."""
    table = opened(lake, schema)
    if lake.format == "delta":
        told = [json.loads(each["userMetadata"]) for each in reversed(table.history()) if "userMetadata" in each]
        return [(each["clew_run"], each["clew_step"]) for each in told]
    summaries = [each.summary.additional_properties for each in table.snapshots()]
    return [(each["clew.run"], int(each["clew.step"])) for each in summaries]


def test_every_mode_is_one_commit_to_the_table_that_a_catalog_names(
    lake: Lake, schema: str, table_spark: TableProcess, tmp_path: Path
) -> None:
    catalog = CATALOGS[lake.format]
    shop = shop_of(tmp_path, catalog)
    name = f"{catalog}.{schema}.ledger"
    shop.project("first", write(lake.format, f"{schema}.ledger", "append"))
    shop.project("add", write(lake.format, name, "append", "schema"))
    shop.project("renew", write(lake.format, f"{schema}.ledger", "replace_period", "nothing"))
    shop.project("merge", write(lake.format, name, "upsert", upsert_by=["id"], register_as_dataset="ledger"))
    shop.project("anew", write(lake.format, name, "overwrite"))
    shop.project("report", dataset="ledger")
    absent = refused(ran(table_spark, shop, "renew"))
    assert absent == ("OutputConflict", f'the catalog "{catalog}" of "lake" has no table {name}')
    outside = refused(ran(table_spark, shop, "first"))
    assert outside == (
        "OutputConflict",
        f'the catalog "{catalog}" of "lake" has no schema {schema}, which {name} would be in',
    )
    runs = [completed(ran(table_spark, shop, "add")), completed(ran(table_spark, shop, "first", "2026-02"))]
    january, february = (1, Decimal("10.00"), "2026-01"), (3, Decimal("30.00"), "2026-02")
    assert rows_in(lake, schema) == [january, (2, Decimal("20.00"), "2026-01"), february]
    orders(shop, "7,GBP,7.00,2026-01", "3,EUR,30.00,2026-02")
    runs.append(completed(ran(table_spark, shop, "renew")))
    assert rows_in(lake, schema) == [february, (7, Decimal("7.00"), "2026-01")]
    orders(shop, "7,GBP,8.00,2026-01", "9,EUR,9.00,2026-01")
    runs.append(completed(ran(table_spark, shop, "merge")))
    merged = [february, (7, Decimal("8.00"), "2026-01"), (9, Decimal("9.00"), "2026-01")]
    assert rows_in(lake, schema) == merged
    runs.append(completed(ran(table_spark, shop, "anew")))
    assert rows_in(lake, schema) == merged[1:]
    assert writers(lake, schema) == [(run.id, 20) for run in runs]
    assert [outcome["table"] for outcome in runs[-1].outputs] == [name]
    assert not list(shop.storage.glob("datasets/**/*.parquet"))
    report = completed(ran(table_spark, shop, "report"))
    [row] = report.trace(where="id = 7").rows
    told = report.explain(row.row_id, "amount").to_text()
    assert f"{name} {'version' if lake.format == 'delta' else 'snapshot'} " in told
    assert f"in merge, 2026-01, run {runs[3].id[:8]}" in told


def commit_again(spark: SparkSession, root: str, catalog: str, schema: str, mode: str) -> int:
    """Two workers commit the output of one step, the second because nobody heard of the first."""
    workspace = Workspace(Path(root))
    [step] = workspace.plan(mode).outputs
    rows = spark.createDataFrame(
        [(1, Decimal("1.00"), "2026-01", "a")], "id LONG, amount DECIMAL(12,2), _period STRING, _row_id STRING"
    )
    datasource = workspace.files.loaded.workspace.datasource("lake")
    assert isinstance(datasource, CatalogDatasource)
    for fence in (1, 2):
        attempt = OutputAttempt.of("run-1", step.seq, fence)
        target = CatalogTarget(datasource, (catalog, schema, "ledger"), attempt)
        LakeOutputs("run-1", LocalStorage(Path(root) / "staged"), ["2026-01"]).stage(rows, step, target).publish()
    return sum(1 for _ in (Path(root) / "staged").rglob("*.parquet"))


@pytest.mark.parametrize("mode", ["append", "replace_period", "upsert"])
def test_a_retry_after_a_commit_that_nobody_heard_of_adds_nothing(
    mode: str, lake: Lake, schema: str, table_spark: TableProcess, tmp_path: Path
) -> None:
    """Whether the first of the two commits has created the table, or found it there."""
    catalog = CATALOGS[lake.format]
    more = {"upsert_by": ["id"]} if mode == "upsert" else {}
    shop_of(tmp_path, catalog).project(mode, write(lake.format, f"{schema}.ledger", mode, "schema", **more))
    assert table_spark(commit_again, str(tmp_path), catalog, schema, mode) == 0
    assert rows_in(lake, schema) == [(1, Decimal("1.00"), "2026-01")]
    assert writers(lake, schema) == [("run-1", 20)]
    table_spark.sql(f"DELETE FROM {catalog}.{schema}.ledger WHERE id = 1")
    assert table_spark(commit_again, str(tmp_path), catalog, schema, mode) == 0
    assert rows_in(lake, schema) == []


def test_what_a_catalog_does_not_take_is_told(
    lake: Lake, schema: str, table_spark: TableProcess, tmp_path: Path
) -> None:
    table_jars.require("delta", "iceberg")
    catalog, other = CATALOGS[lake.format], "iceberg" if lake.format == "delta" else "delta"
    table_spark.sql(
        f"CREATE SCHEMA {catalog}.{schema}",
        f"CREATE TABLE {catalog}.{schema}.ledger (id BIGINT) USING {lake.format}",
    )
    shop = shop_of(tmp_path, catalog)
    shop.project("other", write(other, f"{schema}.ledger", "append"))
    shop.project("wide", write(lake.format, f"{schema}.ledger", "append"))
    shop.project("nameless", write(lake.format, "a..b", "append"))
    name = f"{catalog}.{schema}.ledger"
    code, message = refused(ran(table_spark, shop, "other"))
    assert (code, message) == (
        "OutputConflict",
        f"cannot write {name} as {other}: it is a table of the format {lake.format}",
    )
    code, message = refused(ran(table_spark, shop, "wide"))
    assert code == "OutputConflict"
    assert message.startswith(f"cannot write {name} as {lake.format}: ")
    assert refused(ran(table_spark, shop, "nameless"))[1] == '"a..b" is not the name of a table'
    unknown = shop_of(tmp_path / "u", "nowhere").project("p", write(lake.format, "finance.ledger", "append"))
    assert refused(ran(table_spark, unknown)) == (
        "DestinationUnavailable",
        'Spark does not know the catalog "nowhere" of "lake"',
    )
    assert rows_of(table_spark, name) == []


def rows_of(table_spark: TableProcess, name: str) -> list[tuple[Any, ...]]:
    return table_spark.sql(f"SELECT * FROM {name}")
