"""TPC-H projects on tables: Delta in and Iceberg out, and the reverse, checked by readers that are not Spark."""

from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from clew.api.run import Run
from clew.storage.local import LocalStorage
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_versions import read_snapshot
from tests.engine import table_jars
from tests.engine.engine_workspaces import SHOP, Shop
from tests.engine.table_lakes import ran
from tests.engine.table_process import TableProcess
from tests.engine.tpch.tpch_data import TABLES, dataset, generated, pairs, same, step

pytestmark = pytest.mark.spark

READ = ("lineitem", "orders", "customer", "nation")
FORMATS = [("delta", "iceberg"), ("iceberg", "delta")]


def load(spark: SparkSession, data: str, schema: str, format_: str) -> None:
    """The data as tables of a format, in folders as their own connectors lay them out."""
    for name in READ:
        rows = spark.read.parquet(f"{data}/{name}.parquet")
        if format_ == "delta":
            rows.write.format("delta").save(f"warehouse/{schema}/{name}")
        else:
            rows.writeTo(f"lake.{schema}.{name}").using("iceberg").create()


def to_table(seq: int, path: str, format_: str, selector: str | None, columns: str) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path, "format": format_}
    return step(seq, "output", selector, destination=destination, columns=columns.split(), mode="append")


def workspace(root: Path, lake: Path, format_: str, other: str) -> Shop:
    strategy = {"type": "path", "datasource_id": "lake", "path": "{table}", "format": format_}
    shop = Shop(root).write({name: SHOP[name] for name in SHOP if not name.startswith("datasets/")})
    shop.write(
        {
            "datasources/lake.yaml": {"id": "lake", "type": "files", "options": {"root": str(lake)}},
            "resolvers/r.yaml": {"id": "r", "is_default": True, "rules": [{"name": "a", "strategy": strategy}]},
            **{f"datasets/{name}.yaml": dataset(name) for name in READ},
        }
    )
    shop.project(
        "pricing",
        step(10, "update", assignments=pairs(disc_price="l_extendedprice * (1 - l_discount)")),
        step(20, "delete", 'l_shipdate > DATE("1998-09-02")'),
        step(
            30,
            "aggregate",
            group_by=["lineitem.l_returnflag", "lineitem.l_linestatus"],
            aggregations=pairs(sum_price="SUM(disc_price)", lines="COUNT_ALL()"),
        ),
        to_table(40, "totals", other, "lines IS NOT NULL", "l_returnflag l_linestatus sum_price lines"),
        to_table(50, "lines", other, "lines IS NULL", "l_orderkey l_linenumber disc_price _row_id"),
        dataset="lineitem",
    )
    customer = {"alias": "c", "dataset_id": "customer", "on": "c.c_custkey = orders.o_custkey"}
    nation = {"alias": "n", "dataset_id": "nation", "on": "n.n_nationkey = c.c_nationkey"}
    return shop.project(
        "nations",
        step(10, "update", joins=[customer, nation], assignments=pairs(nation="n.n_name")),
        step(20, "aggregate", group_by=["nation"], aggregations=pairs(count="COUNT_ALL()", worth="SUM(o_totalprice)")),
        to_table(30, "by-nation", other, "count IS NOT NULL", "nation count worth"),
        dataset="orders",
    )


def written(folder: Path, format_: str, columns: str) -> list[tuple[Any, ...]]:
    """What the library of the format reads; DuckDB gets the same from the files of the version."""
    names = columns.split(", ")
    if format_ == "delta":
        table = DeltaTable(folder).to_pyarrow_table()
    else:
        hint = (folder / "metadata" / "version-hint.text").read_text()
        table = StaticTable.from_metadata(f"file://{folder}/metadata/v{hint}.metadata.json").scan().to_arrow()
    found = [tuple(row[name] for name in names) for row in table.select(names).to_pylist()]
    snapshot = read_snapshot(TablePlace(LocalStorage(folder), str(folder)), format_, {})  # type: ignore[arg-type]
    files = [file.address for file in snapshot.files]
    same(found, duckdb.execute(f"SELECT {columns} FROM read_parquet(?)", [files]).fetchall())
    return found


def completed(run: Run) -> Run:
    assert run.error is None, run.error.message
    return run


@pytest.mark.parametrize(("format_", "other"), FORMATS, ids=["delta-in", "iceberg-in"])
def test_one_format_in_and_the_other_out(format_: str, other: str, table_spark: TableProcess, tmp_path: Path) -> None:
    table_jars.require("delta", "iceberg")
    data, schema = generated(tmp_path), f"tpch_{format_}"
    table_spark(load, str(data), schema, format_)
    shop = workspace(tmp_path, table_spark.folder / "warehouse" / schema, format_, other)
    pricing, nations = (completed(ran(table_spark, shop, name)) for name in ("pricing", "nations"))
    for run in (pricing, nations):
        inputs = [part for part in run.parts() if part.kind == "input"]
        assert {(part.details or {})["pinned"] for part in inputs} == {"version"}
        assert not list((shop.storage / "runs" / run.id / "input").rglob("*.parquet"))

    def sql(query: str) -> list[tuple[Any, ...]]:
        with duckdb.connect() as database:
            for name in TABLES:
                database.execute(f"CREATE VIEW {name} AS SELECT * FROM '{data / name}.parquet'")
            return database.execute(query).fetchall()

    kept = "FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'"
    price = "l_extendedprice * (1 - l_discount)"
    reports = tmp_path / "reports"
    same(
        written(reports / "totals", other, "l_returnflag, l_linestatus, sum_price, lines"),
        sql(f"SELECT l_returnflag, l_linestatus, sum({price}), count(*) {kept} GROUP BY ALL"),
    )
    same(
        written(reports / "lines", other, "l_orderkey, l_linenumber, disc_price"),
        sql(f"SELECT l_orderkey, l_linenumber, {price} {kept}"),
    )
    same(
        written(reports / "by-nation", other, "nation, count, worth"),
        sql(
            "SELECT n_name, count(*), sum(o_totalprice) FROM orders JOIN customer ON c_custkey = o_custkey "
            "JOIN nation ON n_nationkey = c_nationkey GROUP BY ALL"
        ),
    )
    [row] = pricing.trace(where="l_orderkey = 1 AND l_linenumber = 2 AND lines IS NULL").rows
    told = pricing.explain(row.row_id, "disc_price").to_text()
    assert f"lineitem {'version' if format_ == 'delta' else 'snapshot'} " in told
