"""Delta and Iceberg tables in an object store: pinned by version where they lie, and explained without Spark.

A catalog of Iceberg keeps its tables in a folder of a bucket; Delta needs none. The workspace keeps its own data on
this machine, so that what is read from the bucket is the tables' alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from clew.storage.object_store import ObjectStorage
from clew.storage.parts import Part
from tests.engine import table_jars
from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.spark_jars import s3_jars
from tests.engine.table_lakes import ran
from tests.engine.table_process import TableProcess, table_process
from tests.storage.s3_server import KEYS, REGION, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MERGES_ON_READ = {
    "delta": {"delta.enableDeletionVectors": "true"},
    "iceberg": {"format-version": "2", "write.delete.mode": "merge-on-read", "write.update.mode": "merge-on-read"},
}
ROWS = "(1, 'EUR', 10.00, '2026-01'), (2, 'USD', 20.00, '2026-01'), (3, 'EUR', 30.00, '2026-01')"
DOUBLE = {
    "seq": 10,
    "name": "Double",
    "type": "update",
    "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
}
TOTALS = {
    "seq": 20,
    "name": "Totals",
    "type": "aggregate",
    "arguments": {"group_by": ["currency"], "aggregations": [{"column": "total", "expression": "SUM(amount)"}]},
}
COLUMNS = ["id", "currency", "amount", "_period", "_row_id", "_labels", "_deleted"]


@dataclass(frozen=True)
class Bucket:
    """A bucket with tables, and the process that has the connectors."""

    process: TableProcess
    root: ObjectStorage
    endpoint: str

    def table(self, format_: str, name: str) -> str:
        """A table as SQL names it."""
        if format_ == "iceberg":
            return f"bucket.{name}.orders"
        return f"delta.`{self.root.spark_uri(f'{name}/orders')}`"

    def create(self, format_: str, name: str) -> str:
        """A table with three rows."""
        table = self.table(format_, name)
        given = ", ".join(f"'{key}' = '{value}'" for key, value in MERGES_ON_READ[format_].items())
        columns = "id BIGINT, currency STRING, amount DECIMAL(12,2), _period STRING"
        self.process.sql(
            f"CREATE TABLE {table} ({columns}) USING {format_} TBLPROPERTIES ({given})",
            f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ * FROM VALUES {ROWS}",
        )
        return table

    @property
    def access(self) -> dict[str, Any]:
        """How a workspace reaches it."""
        return {"endpoint": self.endpoint, "region": REGION, "path_style": True}


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory, s3: S3Server) -> Iterator[Bucket]:
    table_jars.require("delta", "iceberg")
    folder, root = tmp_path_factory.mktemp("tables"), s3.storage("lake")
    key, secret = KEYS.split(":")
    settings = {
        "spark.jars": ",".join(s3_jars()),
        "spark.sql.catalog.bucket": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.bucket.type": "hadoop",
        "spark.sql.catalog.bucket.warehouse": root.spark_uri(""),
        "spark.hadoop.fs.s3a.endpoint": s3.endpoint,
        "spark.hadoop.fs.s3a.endpoint.region": REGION,
        "spark.hadoop.fs.s3a.path.style.access": "true",
        "spark.hadoop.fs.s3a.connection.ssl.enabled": "false",
        "spark.hadoop.fs.s3a.access.key": key,
        "spark.hadoop.fs.s3a.secret.key": secret,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEDGER_KEYS", KEYS)
        with table_process(folder, settings) as process:
            yield Bucket(process, root, s3.endpoint)


def shop_of(root: Path, bucket: Bucket, format_: str, name: str, *, own: bool, source: dict[str, Any]) -> Shop:
    """A workspace that reads a table; it or its datasource knows how the bucket is reached."""
    settings = dict(SHOP["clew.yaml"]["environments"]["dev"])
    options: dict[str, Any] = {"root": f"{bucket.root.address}/{name}"}
    files: dict[str, Any] = {"id": "bucket", "type": "files", "options": options}
    if own:
        options |= bucket.access
        files["credential_ref"] = "secret://env/LEDGER_KEYS"
    else:
        settings["object_store"] = {**bucket.access, "credential_ref": "secret://env/LEDGER_KEYS"}
    return make_shop(root).write(
        {
            "clew.yaml": {**SHOP["clew.yaml"], "environments": {"dev": settings}},
            "datasources/bucket.yaml": files,
            "datasources/catalog.yaml": {"id": "catalog", "type": "catalog", "options": {"catalog": "bucket"}},
            "datasets/orders.yaml": {**SHOP["datasets/orders.yaml"], "resolver_id": "lake"},
            "resolvers/lake.yaml": {"id": "lake", "rules": [{"name": "lake", "strategy": source}]},
        }
    )


def completed(run: Run) -> Run:
    assert run.error is None, run.error.message
    return run


def input_of(run: Run) -> Part:
    [found] = [part for part in run.parts() if part.kind == "input"]
    return found


def copied(shop: Shop, run: Run) -> list[str]:
    return sorted(path.name for path in (shop.storage / "runs" / run.id / "input").rglob("*.parquet"))


def amounts(run: Run) -> dict[int, Decimal]:
    states = [row.state or {} for row in run.trace(where="id IS NOT NULL", limit=100).rows]
    return {int(str(state["id"])): Decimal(str(state["amount"])) for state in states}


PATH = {"type": "path", "datasource_id": "bucket", "path": "orders"}


@pytest.mark.parametrize(("format_", "own"), [("delta", True), ("iceberg", False)])
def test_a_table_in_a_bucket_is_pinned_by_version_and_read_without_spark(
    format_: str, own: bool, bucket: Bucket, tmp_path: Path
) -> None:
    name = f"pinned_{format_}"
    table = bucket.create(format_, name)
    bucket.process.sql(f"DELETE FROM {table} WHERE id = 3")
    shop = shop_of(tmp_path, bucket, format_, name, own=own, source={**PATH, "format": format_})
    shop.project("p", DOUBLE, TOTALS)
    run = completed(ran(bucket.process, shop))
    details = input_of(run).details or {}
    assert (details["pinned"], details.get("reason")) == ("version", None)
    assert copied(shop, run) == ["excluded.parquet"]
    expected = {1: Decimal("20.00"), 2: Decimal("40.00")}
    assert amounts(run) == expected
    bucket.process.sql(f"UPDATE {table} SET amount = 99", f"INSERT INTO {table} VALUES (9, 'EUR', 1, '2026-01')")
    fresh = Workspace(shop.root).get_run(run.id)
    assert amounts(fresh) == expected
    [total] = fresh.trace(where='currency = "EUR" AND total > 0').rows
    told = fresh.explain(total.row_id, "total").to_text()
    assert f"orders {'version' if format_ == 'delta' else 'snapshot'} {details['table_version']}: " in told
    assert amounts(completed(ran(bucket.process, shop))) == {1: 198, 2: 198, 9: 2}
    description = next((shop.storage / "runs" / run.id / "input").rglob("part.json")).read_text()
    assert not any(part in description for part in KEYS.split(":"))
    assert ("secret://env/LEDGER_KEYS" in description) is own
    for file in input_of(run).files:
        bucket.root.remove(file.path.removeprefix(f"{bucket.root.address}/"))
    with pytest.raises(UserError) as caught:
        Workspace(shop.root).get_run(run.id).explain(total.row_id, "total")
    assert caught.value.code == "TableVersionGone", caught.value


def test_a_table_of_a_catalog_in_a_bucket_is_pinned_by_version(bucket: Bucket, tmp_path: Path) -> None:
    bucket.create("iceberg", "named")
    source = {"type": "table", "datasource_id": "catalog", "table": "named.orders"}
    shop = shop_of(tmp_path, bucket, "iceberg", "named", own=False, source=source).project("p", DOUBLE)
    run = completed(ran(bucket.process, shop))
    assert ((input_of(run).details or {})["pinned"], copied(shop, run)) == ("version", [])
    assert amounts(run) == {1: Decimal("20.00"), 2: Decimal("40.00"), 3: Decimal("60.00")}


def test_a_table_whose_bucket_only_the_catalog_reaches_is_copied_with_the_reason(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever explains the run later has no credentials of the catalog."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    bucket.create("iceberg", "lent")
    source = {"type": "table", "datasource_id": "catalog", "table": "lent.orders"}
    shop = shop_of(tmp_path, bucket, "iceberg", "lent", own=True, source=source).project("p", DOUBLE)
    settings = {**SHOP["clew.yaml"]["environments"]["dev"], "object_store": {"endpoint": "http://127.0.0.1:9"}}
    shop.write({"clew.yaml": {**SHOP["clew.yaml"], "environments": {"dev": settings}}})
    run = completed(ran(bucket.process, shop))
    details = input_of(run).details or {}
    assert details["pinned"] == "copy"
    assert "its store is reached through its catalog only" in str(details["reason"])
    assert amounts(run) == {1: Decimal("20.00"), 2: Decimal("40.00"), 3: Decimal("60.00")}


@pytest.mark.parametrize(("format_", "own"), [("delta", False), ("iceberg", True)])
def test_an_output_in_a_bucket_is_registered_as_it_is_and_read_by_others(
    format_: str, own: bool, bucket: Bucket, tmp_path: Path
) -> None:
    other = {"delta": "iceberg", "iceberg": "delta"}[format_]
    name = f"registered_{format_}"
    bucket.create(other, name)
    shop = shop_of(tmp_path, bucket, other, name, own=own, source={**PATH, "format": other})
    output = {
        "destination": {"datasource_id": "bucket", "path": "closed", "format": format_},
        "columns": COLUMNS,
        "register_as_dataset": "closed",
    }
    shop.project("p", DOUBLE, {"seq": 30, "name": "Publish", "type": "output", "arguments": output})
    shop.project("report", DOUBLE, dataset="closed")
    first = completed(ran(bucket.process, shop))
    assert not (shop.storage / "datasets").exists()
    report = completed(ran(bucket.process, shop, "report"))
    assert copied(shop, report) == []
    assert amounts(report) == {1: Decimal("40.00"), 2: Decimal("80.00"), 3: Decimal("120.00")}
    [row] = report.trace(where="id = 2").rows
    assert f"in p, 2026-01, run {first.id[:8]}" in report.explain(row.row_id, "amount").to_text()
    place = bucket.root.below(f"{name}/closed")
    key, secret = KEYS.split(":")
    if format_ == "delta":
        options = {"endpoint": bucket.endpoint, "region": REGION, "access_key_id": key, "secret_access_key": secret}
        rows = DeltaTable(place.address, storage_options={**options, "allow_http": "true"}).to_pyarrow_table()
    else:
        properties = {"s3.endpoint": bucket.endpoint, "s3.region": REGION}
        properties |= {"s3.access-key-id": key, "s3.secret-access-key": secret}
        newest = f"{place.address}/metadata/v{place.read_bytes('metadata/version-hint.text').decode()}.metadata.json"
        rows = StaticTable.from_metadata(newest, properties).scan().to_arrow()
    found = {row["id"]: row["amount"] for row in rows.to_pylist()}
    assert found == {1: Decimal("20.00"), 2: Decimal("40.00"), 3: Decimal("60.00")}
