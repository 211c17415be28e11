"""What changed, why, and what if, on TPC-H data and real Spark: every answer is what DuckDB calculates from the files.

CLEW_TPCH_SCALE=1 does it at scale factor 1, with a million and a half orders.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest

from clew.api.run import Run
from clew.api.workspace import Workspace
from tests.engine.engine_workspaces import SHOP, Shop
from tests.engine.tpch.test_engine_tpch import output
from tests.engine.tpch.tpch_data import dataset, generated, pairs, step

pytestmark = pytest.mark.usefixtures("spark")

SCALE = os.environ.get("CLEW_TPCH_SCALE", "0.01")
BEFORE = {"AUTOMOBILE": "1.02", "BUILDING": "1.05", "FURNITURE": "1.00", "HOUSEHOLD": "0.98", "MACHINERY": "1.10"}
AFTER = {**BEFORE, "BUILDING": "1.08", "MACHINERY": "1.01"}
FACTORS = {
    "id": "factors",
    "natural_key": ["segment"],
    "main_table": {
        "name": "factors",
        "columns": [{"name": "segment", "type": "string"}, {"name": "factor", "type": "decimal(4,2)"}],
    },
}
DAY = "1995-06-17"
CUSTOMER = {"alias": "c", "dataset_id": "customer", "on": "c.c_custkey = orders.o_custkey"}
FACTOR = {"alias": "f", "dataset_id": "factors", "on": "f.segment = orders.segment"}


def operations(fee: str) -> list[dict[str, Any]]:
    return [
        step(10, "update", joins=[CUSTOMER], assignments=pairs(segment="c.c_mktsegment")),
        step(20, "update", joins=[FACTOR], assignments=pairs(worth="ROUND(o_totalprice * f.factor, 2)")),
        step(30, "update", 'STARTSWITH(o_orderpriority, "1-")', assignments=pairs(worth=f"worth + {fee}")),
        step(40, "delete", 'o_orderstatus = "P"'),
        step(50, "aggregate", group_by=["segment"], aggregations=pairs(total="SUM(worth)", orders="COUNT_ALL()")),
        output(60, "totals", "total IS NOT NULL", "segment total orders"),
        output(70, "orders", "total IS NULL", "o_orderkey o_custkey o_orderdate segment worth"),
    ]


@dataclass
class Tpch:
    """Two runs: the second has other factors, another fee, and the orders of nine in ten customers."""

    shop: Shop
    workspace: Workspace
    before: Run
    after: Run
    database: duckdb.DuckDBPyConnection

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.database.execute(query).fetchall()

    def differing(self, one: str, other: str) -> list[tuple[Any, ...]]:
        """The rows that only one of two queries gives."""
        return self.rows(f"(({one}) EXCEPT ALL ({other})) UNION ALL (({other}) EXCEPT ALL ({one}))")

    def keep(self, run: Run, seq: int, table: str) -> None:
        """Have what an output of a run has written as a table."""
        [path] = [out["path"] for out in run.outputs if out["seq"] == seq]
        self.database.execute(f"CREATE TABLE {table} AS FROM '{self.shop.root / str(path)}/*.parquet'")

    def orders(self, factors: Mapping[str, str], fee: str, where: str = "TRUE") -> str:
        """The orders that a run writes, as a query."""
        listed = ", ".join(f"('{segment}', {factor}::DECIMAL(4,2))" for segment, factor in factors.items())
        return f"""
            SELECT o_orderkey, o_custkey, o_orderdate, c_mktsegment AS segment,
                   round(o_totalprice::DECIMAL(18,2) * factor, 2)::DECIMAL(20,2)
                       + CASE WHEN o_orderpriority LIKE '1-%' THEN {fee} ELSE 0 END AS worth
            FROM all_orders JOIN customer ON c_custkey = o_custkey JOIN (VALUES {listed}) AS f(name, factor)
                ON name = c_mktsegment
            WHERE o_orderstatus <> 'P' AND {where}"""


KEPT = "o_custkey % 10 <> 3"


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tpch]:
    root = tmp_path_factory.mktemp("changes")
    data = generated(root, SCALE, ("orders", "customer"))
    resolver = {"type": "path", "datasource_id": "data", "path": "{table}.parquet", "format": "parquet"}
    shop = Shop(root).write({name: SHOP[name] for name in SHOP if not name.startswith("datasets/")})
    shop.write({"resolvers/r.yaml": {"id": "r", "is_default": True, "rules": [{"name": "a", "strategy": resolver}]}})
    shop.write(
        {f"datasets/{name}.yaml": dataset(name) for name in ("orders", "customer")} | {"datasets/factors.yaml": FACTORS}
    )
    with duckdb.connect() as database:
        database.execute(f"CREATE TABLE all_orders AS FROM '{data}/orders.parquet'")
        database.execute(f"CREATE VIEW customer AS FROM '{data}/customer.parquet'")
        before = _run(shop, database, data, BEFORE, "10.00", "TRUE")
        after = _run(shop, database, data, AFTER, "12.50", KEPT)
        with Workspace(root) as workspace:
            tpch = Tpch(shop, workspace, workspace.get_run(before), workspace.get_run(after), database)
            for number, run in (("10", tpch.before), ("12", tpch.after)):
                tpch.keep(run, 60, f"totals_{number}")
                tpch.keep(run, 70, f"orders_{number}")
            yield tpch


def _run(
    shop: Shop,
    database: duckdb.DuckDBPyConnection,
    data: Path,
    factors: Mapping[str, str],
    fee: str,
    where: str,
) -> str:
    """Run the project on these factors and orders."""
    listed = ", ".join(f"('{segment}', {factor}::DECIMAL(4,2))" for segment, factor in factors.items())
    database.execute(f"COPY (FROM (VALUES {listed}) AS f(segment, factor)) TO '{data}/factors.parquet'")
    database.execute(f"COPY (FROM all_orders WHERE {where}) TO '{data}/orders.parquet'")
    shop.project("worth", *operations(fee), dataset="orders", status="draft")
    view = shop.run("worth")
    assert view.failure is None
    return view.record.run_id


def test_runs_write_what_the_queries_give(tpch: Tpch) -> None:
    """The oracle of the other tests."""
    for number, query in (("10", tpch.orders(BEFORE, "10.00")), ("12", tpch.orders(AFTER, "12.50", KEPT))):
        rows = tpch.rows(
            f"({query} EXCEPT ALL FROM orders_{number}) UNION ALL (FROM orders_{number} EXCEPT ALL {query})"
        )
        assert rows == []
        assert tpch.rows(f"SELECT count(*) FROM orders_{number}")[0][0] > 1_000


def test_compare_is_a_full_join_of_both_outputs(tpch: Tpch) -> None:
    found = tpch.before.compare(tpch.after, sort="worth", limit=50)
    joined = "orders_10 AS a FULL JOIN orders_12 AS b USING (o_orderkey)"
    [(gone, new, changed, was, now)] = tpch.rows(
        f"""SELECT count(*) FILTER (WHERE b.worth IS NULL), count(*) FILTER (WHERE a.worth IS NULL),
                   count(*) FILTER (WHERE a.worth <> b.worth), sum(a.worth), sum(b.worth) FROM {joined}"""
    )
    assert (found.counts.only_in_a, found.counts.only_in_b, found.counts.changed) == (gone, new, changed)
    [worth] = [each for each in found.columns if each.name == "worth"]
    assert (worth.total_a, worth.total_b, worth.changed) == (was, now, changed)
    size = "abs(coalesce(b.worth, 0) - coalesce(a.worth, 0))"
    sizes = tpch.rows(f"SELECT {size} AS size FROM {joined} ORDER BY size DESC LIMIT 50")
    shown = [row.columns["worth"] for row in found.rows]
    assert [abs(amount(each.new) - amount(each.old)) for each in shown] == [size for (size,) in sizes]
    totals = tpch.before.compare(tpch.after, output=60)
    assert {row.key["segment"]: row.columns["total"].new for row in totals.rows} == dict(
        tpch.rows("SELECT segment, total FROM totals_12")
    )


def amount(value: Any) -> Decimal:
    return Decimal(value or 0)


def test_causes_add_up_and_each_is_what_a_query_with_it_alone_gives(tpch: Tpch) -> None:
    where = f"o_orderdate = DATE '{DAY}'"
    worth = {
        name: tpch.rows(f"SELECT sum(worth) FROM ({query}) WHERE {where}")[0][0]
        for name, query in {
            "before": tpch.orders(BEFORE, "10.00"),
            "after": tpch.orders(AFTER, "12.50", KEPT),
            "code": tpch.orders(BEFORE, "12.50"),
            "input": tpch.orders(BEFORE, "10.00", KEPT),
            **{
                segment: tpch.orders({**BEFORE, segment: AFTER[segment]}, "10.00")
                for segment in ("BUILDING", "MACHINERY")
            },
        }.items()
    }
    found = tpch.before.why_changed(tpch.after, "worth", where=f'o_orderdate = DATE("{DAY}")')
    assert (found.value_a, found.value_b) == (worth["before"], worth["after"])
    assert sum((each.amount for each in found.causes), Decimal(0)) == worth["after"] - worth["before"]
    alone = {
        each.rows[0].key["segment"] if each.kind == "reference" else each.kind: each.alone for each in found.causes
    }
    expected = {name: value - worth["before"] for name, value in worth.items() if name not in {"before", "after"}}
    assert alone == {name: value for name, value in expected.items() if value}


@pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])
def test_what_if_is_what_a_query_with_the_change_made_gives(
    tpch: Tpch, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    is_large = float(SCALE) > 0.1  # evaluating so many rows one by one would take minutes
    monkeypatch.setattr("clew.change.what_if.MOST_SINGLE", 0 if at_once or is_large else 10**9)
    sets = ['factors where segment = "BUILDING": factor = 1.08']
    supposed = tpch.orders({**BEFORE, "BUILDING": "1.08"}, "10.00")
    found = tpch.before.what_if(sets=sets, drops=["orders where o_custkey = 7"], limit=None)
    [(changed, gone, before, after)] = tpch.rows(
        f"""SELECT count(*) FILTER (WHERE a.worth <> b.worth), count(*) FILTER (WHERE b.worth IS NULL),
                   sum(a.worth), sum(b.worth)
            FROM orders_10 AS a FULL JOIN (FROM ({supposed}) WHERE o_custkey <> 7) AS b USING (o_orderkey)"""
    )
    assert (found.changed, found.gone, found.new) == (changed, gone, 0)
    [worth] = [each for each in found.columns if each.name == "worth"]
    assert (worth.total_a, worth.total_b) == (before, after)
    then = dict(tpch.rows(f"SELECT o_orderkey, worth FROM ({supposed}) WHERE o_custkey <> 7"))
    assert all(row.columns["worth"].new == then.get(row.key["o_orderkey"]) for row in found.rows)
    totals = tpch.before.what_if(sets=sets, output=60)
    segments = dict(tpch.rows(f"SELECT segment, sum(worth) FROM ({supposed}) GROUP BY segment"))
    assert [(row.columns["total"].new, row.key["segment"]) for row in totals.rows] == [
        (segments["BUILDING"], "BUILDING")
    ]


def test_an_edited_project_is_what_a_query_with_the_other_fee_gives(tpch: Tpch) -> None:
    """The file is that of the second run by now."""
    found = tpch.before.impact()
    edited = tpch.orders(BEFORE, "12.50")
    [orders] = [each.difference for each in found.outputs if each.seq == 70]
    assert orders is not None
    [worth] = [each for each in orders.columns if each.name == "worth"]
    assert worth.total_b == tpch.rows(f"SELECT sum(worth) FROM ({edited})")[0][0]
    assert (
        orders.changed
        == tpch.rows(
            f"SELECT count(*) FROM orders_10 AS a JOIN ({edited}) AS b USING (o_orderkey) WHERE a.worth <> b.worth"
        )[0][0]
    )


def test_running_again_after_an_edit_gives_what_a_full_run_gives(tpch: Tpch) -> None:
    again = tpch.workspace.get_run(tpch.before.id).rerun()
    assert again.status == "COMPLETED", again.error
    assert [step.seq for step in again.steps if step.reuse is not None and step.reuse.run_id is not None] == [10, 20]
    edited = tpch.orders(BEFORE, "12.50")
    tpch.keep(again, 70, "again")
    assert tpch.differing(edited, "FROM again") == []
