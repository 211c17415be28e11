from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession

from clew.definitions.datasource import DatabaseOptions
from clew.plan.resolution import ResolvedSource
from clew.store.table_transfer import PostgresqlTables
from tests.engine.loading_requests import Bench, day, use
from tests.store.store_postgres import PostgresServer, postgres_server

pytestmark = pytest.mark.postgres

OF = use("id integer!; amount decimal(10,2); name string; day date", "period", key=["id"])
SOURCE = ResolvedSource("warehouse", "table", "things", "the rule", "2026-01", holds_one_period=False)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        yield started


@pytest.fixture
def bench(spark: SparkSession, server: PostgresServer, tmp_path: Path) -> Bench:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS things")
        connection.execute(
            """CREATE TABLE things AS SELECT n AS id, n * 1.25 AS amount, 'n' || n AS name,
            date '2026-01-01' + n AS day, '2026-0' || 1 + n % 3 AS _period, 'not asked for' AS extra
            FROM generate_series(1, 9) n"""
        )
    return Bench(spark, tmp_path, PostgresqlTables(), DatabaseOptions(url=server.url), "hunter2")


def change(server: PostgresServer, statement: str) -> None:
    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(statement)


def test_the_rows_of_a_table_are_those_of_the_period(bench: Bench) -> None:
    pinned = bench.pin(OF, SOURCE, at="2026-02")
    assert bench.placed(pinned, "id", "amount", "name", "day", "_period") == [
        ("table things of warehouse", None, n, n * Decimal("1.25"), f"n{n}", day(f"2026-01-0{n + 1}"), "2026-02")
        for n in (1, 4, 7)
    ]
    assert pinned.sources == ("things",)
    assert pinned.part.details is not None
    assert pinned.part.details["places"] == "table"
    left = sorted(path.name for path in (bench.storage / "runs/run-1/input").iterdir())
    assert left == ["things"]


def test_a_quarter_takes_the_rows_of_its_months(bench: Bench) -> None:
    assert bench.pin(OF, SOURCE, at="2026-Q1").rows_loaded == 9
    assert bench.pin(OF, SOURCE, at="2025").rows_loaded == 0


def test_values_are_checked_as_those_of_files(bench: Bench, server: PostgresServer) -> None:
    change(server, "UPDATE things SET amount = 1.255 WHERE id = 3")
    message = bench.problem(OF, SOURCE)
    assert message == 'column "amount" of "things": "1.255" is not a decimal(10,2), in table things of warehouse'
    change(server, "UPDATE things SET amount = 0, id = NULL WHERE id = 3")
    assert 'column "id" of "things" must not be empty' in bench.problem(OF, SOURCE)
    change(server, "UPDATE things SET id = 6 WHERE id IS NULL")
    assert 'two rows of "things" have the natural key id "6"' in bench.problem(OF, SOURCE)
    change(server, "ALTER TABLE things DROP COLUMN amount")
    assert 'table things of warehouse has no column "amount"' in bench.problem(OF, SOURCE)


def test_a_table_that_is_not_there_is_named(bench: Bench) -> None:
    message = bench.problem(OF, replace(SOURCE, location="nothing"), code="SourceUnavailable")
    assert "nothing" in message
    assert "hunter2" not in message


def test_a_jdbc_driver_serves_types_of_its_own(bench: Bench) -> None:
    url, driver = "jdbc:derby:memory:loading;create=true", "org.apache.derby.iapi.jdbc.AutoloadedDriver"
    rows = bench.spark.sql(
        """SELECT id, CAST(id * 1.25 AS DECIMAL(12,2)) AS amount, 'n' AS name, DATE'2026-01-01' AS day,
        concat('2026-0', CAST(1 + id % 3 AS STRING)) AS _period FROM range(1, 10)"""
    )
    rows.toDF(*(name.upper() for name in rows.columns)).write.jdbc(
        url, "things", "overwrite", {"driver": driver, "createTableColumnTypes": "_PERIOD VARCHAR(9), NAME VARCHAR(9)"}
    )
    bench.database = DatabaseOptions(url=url, driver=driver)
    pinned = bench.pin(OF, SOURCE, at="2026-02")
    assert bench.placed(pinned, "id", "amount", "day") == [
        ("table things of warehouse", None, n, n * Decimal("1.25"), day("2026-01-01")) for n in (1, 4, 7)
    ]
    bench.spark.sql("SELECT 1L AS id, 1.00 AS amount, 'n' AS name, DATE'2026-01-01' AS day, 'p' AS _period").write.jdbc(
        url, "large", "overwrite", {"driver": driver}
    )
    message = bench.problem(OF, replace(SOURCE, location="large"), code="SourceUnavailable")
    assert 'cannot read the table large of "warehouse": Comparisons between' in message
    message = bench.problem(OF, replace(SOURCE, location="nothing"), code="SourceUnavailable")
    assert 'cannot read the table nothing of "warehouse"' in message


def test_jdbc_without_its_driver_says_so(bench: Bench) -> None:
    bench.database = DatabaseOptions(url="jdbc:nodb://localhost:1/db?password=hunter2")
    message = bench.problem(OF, SOURCE, code="SourceUnavailable")
    assert "things" in message
    assert "hunter2" not in message


def test_a_rule_must_name_the_right_kind_of_datasource(bench: Bench) -> None:
    table_in_files = replace(SOURCE, datasource_id="files")
    assert '"files" is files' in bench.problem(OF, table_in_files, code="SourceUnavailable")
    nowhere = replace(SOURCE, datasource_id="elsewhere")
    assert '"elsewhere", which does not exist' in bench.problem(OF, nowhere, code="SourceUnavailable")
