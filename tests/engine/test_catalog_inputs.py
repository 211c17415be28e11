"""Tables of Spark catalogs as inputs: Spark's own catalog and one of Iceberg's, with what they have and lack."""

import json
import threading
import uuid
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clew.api.run import Run
from clew.storage.parts import Part
from tests.engine import table_jars
from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.table_lakes import ORDERS, ran
from tests.engine.table_process import TableProcess

pytestmark = pytest.mark.spark

DOUBLE = {
    "seq": 10,
    "name": "Double",
    "type": "update",
    "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
}
ROWS = "(1, 'EUR', 10.00, '2026-01'), (2, 'USD', 20.00, '2026-01'), (3, 'EUR', 30.00, '2026-02')"


def shop_of(root: Path, table: str, **options: str) -> Shop:
    """A workspace whose orders are in a table of a catalog."""
    strategy = {"type": "table", "datasource_id": "lake", "table": table}
    return (
        make_shop(root)
        .write(
            {
                "datasources/lake.yaml": {"id": "lake", "type": "catalog", "options": options},
                "datasets/orders.yaml": {**SHOP["datasets/orders.yaml"], "resolver_id": "lake"},
                "resolvers/lake.yaml": {"id": "lake", "rules": [{"name": "lake", "strategy": strategy}]},
            }
        )
        .project("p", DOUBLE)
    )


def input_of(run: Run) -> Part:
    assert run.error is None, run.error.message
    [found] = [part for part in run.parts() if part.kind == "input"]
    return found


def amounts(run: Run) -> dict[int, Decimal]:
    rows = run.trace(where="id IS NOT NULL", limit=100).rows
    states = [row.state or {} for row in rows]
    return {int(str(state["id"])): Decimal(str(state["amount"])) for state in states}


@pytest.fixture
def schema(table_spark: TableProcess) -> Iterator[str]:
    """A schema of Spark's own catalog and of the Iceberg catalog "lake"."""
    name = f"s{uuid.uuid4().hex[:10]}"
    table_spark.sql(f"CREATE SCHEMA spark_catalog.{name}")
    yield name
    table_spark.sql(f"DROP SCHEMA spark_catalog.{name} CASCADE")


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_table_of_a_catalog_is_pinned_by_version_where_it_lies(
    format_: str, table_spark: TableProcess, schema: str, tmp_path: Path
) -> None:
    table_jars.require(format_)
    catalog = "lake" if format_ == "iceberg" else "spark_catalog"
    table = f"{catalog}.{schema}.orders"
    table_spark.sql(f"CREATE TABLE {table} ({ORDERS}) USING {format_}", f"INSERT INTO {table} VALUES {ROWS}")
    shop = shop_of(tmp_path, f"{catalog}.{schema}.{{table}}", catalog=catalog)
    run = ran(table_spark, shop)
    details = input_of(run).details or {}
    assert (details["pinned"], details["format"]) == ("version", format_)
    assert not list((shop.storage / "runs" / run.id / "input").rglob("*.parquet"))
    assert amounts(run) == {1: Decimal("20.00"), 2: Decimal("40.00")}
    [row] = run.trace(where="id = 1").rows
    source = run.trace(row.row_id).entries[0].source
    assert source is not None
    word = "version" if format_ == "delta" else "snapshot"
    assert str(source.file).startswith(f"{table} {word} {details['table_version']}: ")
    table_spark.sql(f"UPDATE {table} SET amount = 99 WHERE id = 1", f"ALTER TABLE {table} ADD COLUMN more STRING")
    assert amounts(run) == {1: Decimal("20.00"), 2: Decimal("40.00")}
    later = ran(table_spark, shop_of(tmp_path / "later", "orders", catalog=catalog, schema=schema))
    assert amounts(later) == {1: Decimal("198.00"), 2: Decimal("40.00")}
    assert (input_of(later).details or {})["table_version"] != details["table_version"]


def test_what_has_no_versions_is_copied_and_the_reason_is_on_record(
    table_spark: TableProcess, schema: str, tmp_path: Path
) -> None:
    table_spark.sql(
        f"CREATE TABLE spark_catalog.{schema}.plain ({ORDERS}) USING parquet",
        f"INSERT INTO spark_catalog.{schema}.plain VALUES {ROWS}",
        f"CREATE VIEW spark_catalog.{schema}.seen AS SELECT * FROM spark_catalog.{schema}.plain WHERE id <> 2",
    )
    plain = ran(table_spark, shop_of(tmp_path / "plain", f"{schema}.plain"))
    view = ran(table_spark, shop_of(tmp_path / "view", f"{schema}.seen"))
    reasons = [(input_of(run).details or {})["reason"] for run in (plain, view)]
    assert reasons == ["a parquet table keeps no versions", "it is a view, whose rows are not kept"]
    assert {(input_of(run).details or {})["pinned"] for run in (plain, view)} == {"copy"}
    before = (amounts(plain), amounts(view))
    assert before == ({1: Decimal("20.00"), 2: Decimal("40.00")}, {1: Decimal("20.00")})
    table_spark.sql(f"DROP VIEW spark_catalog.{schema}.seen", f"DROP TABLE spark_catalog.{schema}.plain")
    assert (amounts(plain), amounts(view)) == before
    [row] = view.trace(where="id = 1").rows
    assert f"table {schema}.seen of lake" in view.explain(row.row_id, "amount").to_text()


def test_a_table_that_takes_its_connector_is_copied_at_its_version(
    table_spark: TableProcess, schema: str, tmp_path: Path
) -> None:
    """Avro files of an Iceberg table are known to its connector only."""
    table_jars.require("iceberg")
    table = f"lake.{schema}.orders"
    table_spark.sql(
        f"CREATE TABLE {table} ({ORDERS}) USING iceberg TBLPROPERTIES ('write.format.default' = 'avro')",
        f"INSERT INTO {table} VALUES {ROWS}",
    )
    [(snapshot,)] = table_spark.sql(f"SELECT snapshot_id FROM {table}.snapshots")
    run = ran(table_spark, shop_of(tmp_path, f"{schema}.orders", catalog="lake"))
    details = input_of(run).details or {}
    assert (details["reason"], details["table_version"]) == ("it has avro files", str(snapshot))
    assert amounts(run) == {1: Decimal("20.00"), 2: Decimal("40.00")}


class _Guard(BaseHTTPRequestHandler):
    """A REST catalog of Iceberg that lets nobody see its tables."""

    def do_GET(self) -> None:
        is_open = self.path.startswith("/v1/config")
        refusal = {"error": {"message": "SELECT on orders is missing", "type": "ForbiddenException", "code": 403}}
        content = json.dumps({"defaults": {}, "overrides": {}} if is_open else refusal).encode()
        self.send_response(200 if is_open else 403)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_HEAD = do_GET  # noqa: N815 - so is this

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _know_catalog(spark: SparkSession, name: str, uri: str) -> None:
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "rest", ".uri": uri}
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)


@pytest.fixture
def guarded(table_spark: TableProcess) -> Iterator[str]:
    """The name of a catalog that refuses everything."""
    table_jars.require("iceberg")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Guard)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    name = f"c{uuid.uuid4().hex[:8]}"
    table_spark(_know_catalog, name, f"http://127.0.0.1:{server.server_port}")
    yield name
    server.shutdown()
    server.server_close()


def refused(run: Run) -> tuple[str, str, str]:
    assert run.error is not None
    return run.status, run.error.code, run.error.message


def test_what_a_catalog_does_not_have_or_show_is_told(
    table_spark: TableProcess, schema: str, guarded: str, tmp_path: Path
) -> None:
    unknown = ran(table_spark, shop_of(tmp_path / "a", f"{schema}.orders", catalog="nowhere"))
    assert refused(unknown) == ("FAILED", "SourceUnavailable", 'Spark does not know the catalog "nowhere" of "lake"')
    absent = ran(table_spark, shop_of(tmp_path / "b", f"{schema}.orders"))
    problem = f'the catalog "spark_catalog" of "lake" has no table spark_catalog.{schema}.orders'
    assert refused(absent) == ("FAILED", "SourceUnavailable", problem)
    elsewhere = ran(table_spark, shop_of(tmp_path / "c", "no_schema.orders"))
    assert refused(elsewhere)[2].endswith("has no table spark_catalog.no_schema.orders")
    forbidden = ran(table_spark, shop_of(tmp_path / "d", "finance.orders", catalog=guarded))
    code, message = refused(forbidden)[1:]
    assert code == "SourceUnavailable"
    assert message.startswith(f'the catalog "{guarded}" of "lake" does not let this user read {guarded}.finance.orders')
    assert "SELECT on orders is missing" in message
    wrong = ran(table_spark, shop_of(tmp_path / "e", "a..b"))
    assert refused(wrong)[2] == '"a..b" is not the name of a table'
