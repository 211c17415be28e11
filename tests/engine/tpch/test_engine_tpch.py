"""Three projects on TPC-H data, each output compared with the same logic written as SQL for DuckDB."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import duckdb
import pytest

from tests.engine.engine_workspaces import SHOP, Shop
from tests.engine.tpch.tpch_data import TABLES, dataset, generated, pairs, same, step
from tests.engine.tpch.tpch_states import check_states, check_states_where

pytestmark = pytest.mark.usefixtures("spark")


def output(seq: int, path: str, selector: str | None, columns: str) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path}
    return step(seq, "output", selector, destination=destination, columns=columns.split())


@pytest.fixture(scope="module")
def tpch(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    root = tmp_path_factory.mktemp("tpch")
    generated(root)
    resolver = {"type": "path", "datasource_id": "data", "path": "{table}.parquet", "format": "parquet"}
    shop = Shop(root).write({name: SHOP[name] for name in SHOP if not name.startswith("datasets/")})
    shop.write({"resolvers/r.yaml": {"id": "r", "is_default": True, "rules": [{"name": "a", "strategy": resolver}]}})
    return shop.write({f"datasets/{name}.yaml": dataset(name) for name in TABLES})


def sql(shop: Shop, query: str) -> list[tuple[Any, ...]]:
    with duckdb.connect() as database:
        for name in TABLES:
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM '{shop.root / 'data' / name}.parquet'")
        return database.execute(query).fetchall()


def written(shop: Shop, path: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in shop.read(f"reports/{path}")]


def test_discounts_taxes_and_totals_by_return_flag(tpch: Shop) -> None:
    tpch.project(
        "pricing",
        step(10, "update", assignments=pairs(disc_price="l_extendedprice * (1 - l_discount)")),
        step(20, "update", 'l_returnflag = "R"', assignments=pairs(l_tax="0")),
        step(30, "update", "l_tax > 0.02", assignments=pairs(charge="ROUND(disc_price * (1 + l_tax), 2)")),
        step(40, "delete", 'l_shipdate > DATE("1998-09-02")'),
        step(
            50,
            "aggregate",
            group_by=["lineitem.l_returnflag", "lineitem.l_linestatus"],
            aggregations=pairs(
                sum_qty="SUM(l_quantity)",
                sum_price="SUM(disc_price)",
                sum_charge="SUM(charge)",
                mean_qty="AVG(l_quantity)",
                last="MAX_AGG(l_shipdate)",
                lines="COUNT_ALL()",
                charged="COUNT(charge)",
            ),
        ),
        output(
            60,
            "totals",
            "lines IS NOT NULL",
            "l_returnflag l_linestatus sum_qty sum_price sum_charge mean_qty last lines charged",
        ),
        output(70, "lines", "lines IS NULL AND l_quantity > 40", "l_orderkey l_linenumber disc_price l_tax charge"),
        dataset="lineitem",
    )
    view = tpch.run("pricing")
    assert view.failure is None
    lines = """
        WITH priced AS (SELECT *, l_extendedprice * (1 - l_discount) AS disc_price,
                               CASE WHEN l_returnflag = 'R' THEN 0 ELSE l_tax END::DECIMAL(15,2) AS tax FROM lineitem),
        lines AS (SELECT *, CASE WHEN tax > 0.02
                                 THEN round(disc_price::DECIMAL(30,6) * (1 + tax), 2) END::DECIMAL(30,2) AS charge
                  FROM priced WHERE l_shipdate <= DATE '1998-09-02')
    """
    same(
        written(tpch, "lines"),
        sql(tpch, f"{lines} SELECT l_orderkey, l_linenumber, disc_price, tax, charge FROM lines WHERE l_quantity > 40"),
    )
    totals = sql(
        tpch,
        f"""{lines} SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(disc_price), sum(charge), max(l_shipdate),
                           count(*), count(charge) FROM lines GROUP BY ALL""",
    )
    expected = [
        (
            flag,
            status,
            qty,
            price,
            charge,
            (Decimal(qty) / lines_).quantize(Decimal("1.000000"), ROUND_HALF_UP),
            last,
            lines_,
            charged,
        )
        for flag, status, qty, price, charge, last, lines_, charged in totals
    ]
    same(written(tpch, "totals"), expected)
    deleted = sql(tpch, "SELECT count(*) FROM lineitem WHERE l_shipdate > DATE '1998-09-02'")[0][0]
    assert [step.counts["rows_deleted"] for step in view.snapshot.steps if step.step_id == "40"] == [deleted]
    check_states_where(tpch, view, list(TABLES), pricing_states(), "l_linenumber = 2")


def pricing_states() -> dict[int, str]:
    """All lines after each step that changes rows."""
    loaded = f"SELECT {names('lineitem')}, FALSE AS _deleted FROM lineitem"
    priced = f"SELECT *, l_extendedprice * (1 - l_discount) AS disc_price FROM ({loaded})"
    untaxed = f"""SELECT * REPLACE (CASE WHEN l_returnflag = 'R' THEN 0 ELSE l_tax END::DECIMAL(15,2) AS l_tax)
                  FROM ({priced})"""
    charged = f"""SELECT *, CASE WHEN l_tax > 0.02 THEN round(disc_price::DECIMAL(30,6) * (1 + l_tax), 2)
                            END::DECIMAL(30,2) AS charge FROM ({untaxed})"""
    dropped = f"SELECT * REPLACE (l_shipdate > DATE '1998-09-02' AS _deleted) FROM ({charged})"
    return {0: loaded, 10: priced, 20: untaxed, 30: charged, 40: dropped}


def names(table: str) -> str:
    return ", ".join(text.split()[0] for text in TABLES[table].split(", "))


def test_orders_with_the_nation_of_their_customers(tpch: Shop) -> None:
    customer = {"alias": "c", "dataset_id": "customer", "on": "c.c_custkey = orders.o_custkey"}
    nation = {"alias": "n", "dataset_id": "nation", "on": 'n.n_nationkey = c.c_nationkey AND n.n_name <> "PERU"'}
    columns = pairs(nation="n.n_name", segment="c.c_mktsegment")
    tpch.project(
        "nations",
        step(10, "update", "o_totalprice > 1000", joins=[customer, nation], assignments=columns),
        step(20, "delete", 'segment = "MACHINERY" OR o_orderstatus = "P"'),
        step(
            30,
            "update",
            "{{urgent}} AND nation IS NOT NULL",
            assignments=pairs(o_totalprice="ROUND(o_totalprice * 1.05, 2)"),
        ),
        step(40, "aggregate", group_by=["nation"], aggregations=pairs(orders="COUNT_ALL()", worth="SUM(o_totalprice)")),
        output(50, "by-nation", "orders IS NOT NULL", "nation orders worth"),
        output(60, "orders", "orders IS NULL", "o_orderkey nation segment o_totalprice"),
        dataset="orders",
        selectors={"urgent": 'STARTSWITH(o_orderpriority, "1-")'},
    )
    view = tpch.run("nations")
    assert view.failure is None
    check_states(tpch, view, list(TABLES), nation_states())
    rows = """
        WITH joined AS (
            SELECT o.*, n.n_name AS nation, c.c_mktsegment AS segment
            FROM orders o
            LEFT JOIN customer c ON c.c_custkey = o.o_custkey AND o.o_totalprice > 1000
            LEFT JOIN nation n ON n.n_nationkey = c.c_nationkey AND n.n_name <> 'PERU'),
        kept AS (SELECT * FROM joined WHERE NOT coalesce(segment = 'MACHINERY' OR o_orderstatus = 'P', FALSE)),
        priced AS (SELECT * REPLACE (CASE WHEN o_orderpriority LIKE '1-%' AND nation IS NOT NULL
                                     THEN round(o_totalprice * 1.05, 2) ELSE o_totalprice END::DECIMAL(15,2)
                                AS o_totalprice)
                   FROM kept)
    """
    same(written(tpch, "orders"), sql(tpch, f"{rows} SELECT o_orderkey, nation, segment, o_totalprice FROM priced"))
    same(
        written(tpch, "by-nation"),
        sql(tpch, f"{rows} SELECT nation, count(*), sum(o_totalprice) FROM priced GROUP BY ALL"),
    )


def nation_states() -> dict[int, str]:
    """All orders after each step, with the summary rows at the end."""
    loaded = f"SELECT {names('orders')}, FALSE AS _deleted FROM orders"
    joined = f"""SELECT o.*, n.n_name AS nation, c.c_mktsegment AS segment FROM ({loaded}) o
                 LEFT JOIN customer c ON c.c_custkey = o.o_custkey AND o.o_totalprice > 1000
                 LEFT JOIN nation n ON n.n_nationkey = c.c_nationkey AND n.n_name <> 'PERU'"""
    dropped = f"""SELECT * REPLACE (coalesce(segment = 'MACHINERY' OR o_orderstatus = 'P', FALSE) AS _deleted)
                  FROM ({joined})"""
    raised = f"""SELECT * REPLACE (CASE WHEN o_orderpriority LIKE '1-%' AND nation IS NOT NULL AND NOT _deleted
                                   THEN round(o_totalprice * 1.05, 2) ELSE o_totalprice END::DECIMAL(15,2)
                                   AS o_totalprice) FROM ({dropped})"""
    totals = f"""SELECT nation, FALSE AS _deleted, count(*) AS orders, sum(o_totalprice) AS worth
                 FROM ({raised}) WHERE NOT _deleted GROUP BY nation"""
    summed = f"SELECT *, NULL AS orders, NULL AS worth FROM ({raised}) UNION ALL BY NAME {totals}"
    return {0: loaded, 10: joined, 20: dropped, 30: raised, 40: summed}


def test_nations_with_the_balances_of_their_customers_appended(tpch: Shop) -> None:
    balances = {
        "group_by": ["customer.c_nationkey"],
        "aggregations": pairs(balance="SUM(c_acctbal)", customers="COUNT_ALL()"),
    }
    nation = {"alias": "n", "dataset_id": "nation", "on": "n.n_nationkey = nation.c_nationkey"}
    region = {"alias": "r", "dataset_id": "region", "on": "r.r_regionkey = n.n_regionkey"}
    tpch.project(
        "balances",
        step(
            10,
            "update",
            assignments=pairs(
                c_nationkey="n_nationkey",
                balance="TO_DECIMAL(0, 18, 2)",
                customers="0",
                r_name='""',
                r_regionkey="n_regionkey",
            ),
        ),
        step(20, "append", source={"dataset_id": "customer"}, source_selector="c_acctbal > 0", aggregation=balances),
        step(
            30,
            "update",
            "nation.n_name IS NULL",
            joins=[nation, region],
            assignments=pairs(n_name="n.n_name", r_name="r.r_name"),
        ),
        step(40, "append", source={"dataset_id": "region"}, source_selector='r_name <> "ASIA"'),
        step(50, "delete", "n_nationkey IS NOT NULL"),
        output(60, "balances", None, "c_nationkey n_name r_name balance customers r_regionkey"),
        dataset="nation",
    )
    view = tpch.run("balances")
    assert view.failure is None
    check_states(tpch, view, list(TABLES), balance_states())
    same(
        written(tpch, "balances"),
        sql(
            tpch,
            """SELECT c_nationkey, n_name, r_name, sum(c_acctbal), count(*), NULL
               FROM customer JOIN nation ON n_nationkey = c_nationkey JOIN region ON r_regionkey = n_regionkey
               WHERE c_acctbal > 0 GROUP BY ALL
               UNION ALL SELECT NULL, NULL, r_name, NULL, NULL, r_regionkey FROM region WHERE r_name <> 'ASIA'""",
        ),
    )


def balance_states() -> dict[int, str]:
    """All nations after each step, with what was appended."""
    loaded = f"SELECT {names('nation')}, FALSE AS _deleted FROM nation"
    filled = f"""SELECT *, n_nationkey AS c_nationkey, 0::DECIMAL(18,2) AS balance, 0::BIGINT AS customers,
                        '' AS r_name, n_regionkey AS r_regionkey FROM ({loaded})"""
    summed = f"""FROM ({filled}) UNION ALL BY NAME
                 SELECT c_nationkey, sum(c_acctbal) AS balance, count(*) AS customers, FALSE AS _deleted
                 FROM customer WHERE c_acctbal > 0 GROUP BY c_nationkey"""
    named = f"""SELECT f.* REPLACE (CASE WHEN f.n_name IS NULL THEN n.n_name ELSE f.n_name END AS n_name,
                                    CASE WHEN f.n_name IS NULL THEN r.r_name ELSE f.r_name END AS r_name)
                FROM ({summed}) f LEFT JOIN nation n ON n.n_nationkey = f.c_nationkey
                LEFT JOIN region r ON r.r_regionkey = n.n_regionkey"""
    appended = f"""FROM ({named}) UNION ALL BY NAME
                   SELECT r_regionkey, r_name, FALSE AS _deleted FROM region WHERE r_name <> 'ASIA'"""
    dropped = f"SELECT * REPLACE (n_nationkey IS NOT NULL AS _deleted) FROM ({appended})"
    return {0: loaded, 10: filled, 20: summed, 30: named, 40: appended, 50: dropped}
