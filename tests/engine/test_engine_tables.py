"""Projects that read from tables of PostgreSQL and write to them, without a JDBC driver."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

import clew
from clew.api.run_view import RunView
from clew.explain.explaining import explain, row_named
from clew.explain.views import as_text
from clew.trace.run_trace import open_trace
from tests.engine.engine_workspaces import EXAMPLE, EXAMPLE_DATA, Shop, make_shop
from tests.store.store_postgres import PostgresServer, postgres_server

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.postgres]

TARGETS = {"alias": "targets", "dataset_id": "targets", "on": "targets.currency = orders.currency"}
ENRICH = {
    "seq": 10,
    "name": "Goals",
    "type": "update",
    "arguments": {"joins": [TARGETS], "assignments": [{"column": "goal", "expression": "targets.goal"}]},
}


def output(seq: int, datasource: str, table: str, mode: str = "overwrite") -> dict[str, Any]:
    destination = {"datasource_id": datasource, "table": table, "mode": mode}
    arguments = {"destination": destination, "columns": ["id", "currency", "amount", "goal", "_period"]}
    return {"seq": seq, "name": f"To {table}", "type": "output", "arguments": arguments}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server() as started:
        with psycopg.connect(started.url, autocommit=True) as connection:
            found = connection.execute("SELECT current_setting('hba_file')").fetchone()
            assert found is not None
            connection.execute(
                "CREATE ROLE clerk LOGIN PASSWORD 'right-enough'; CREATE SCHEMA books AUTHORIZATION clerk"
            )
            path = Path(found[0])
            path.write_text(f"local all clerk scram-sha-256\n{path.read_text()}")
            connection.execute("SELECT pg_reload_conf()")
        yield started


@pytest.fixture
def shop(server: PostgresServer, tmp_path: Path) -> Shop:
    ask(
        server,
        """DROP SCHEMA books CASCADE; CREATE SCHEMA books AUTHORIZATION clerk;
        CREATE TABLE books.targets (currency text, goal int, _period text);
        INSERT INTO books.targets VALUES ('EUR', 1, '2026-01'), ('EUR', 2, '2026-02'), ('USD', 3, '2026-01');
        ALTER TABLE books.targets OWNER TO clerk""",
    )
    url = server.url.replace("postgres@", "clerk@")

    def books(name: str) -> dict[str, Any]:
        options = {"url": url, "schema": "books"}
        return {"id": name, "type": "database", "credential_ref": f"secret://file/{name}", "options": options}

    strategy = {"type": "table", "datasource_id": "books", "table": "{table}"}
    made = make_shop(tmp_path)
    targets = made.root / "datasets/targets.yaml"
    targets.write_text(targets.read_text().replace('"id": "targets",', '"id": "targets", "resolver_id": "t",'))
    return made.write(
        {
            "datasources/books.yaml": books("books"),
            "datasources/ledger.yaml": books("ledger"),
            "resolvers/t.yaml": {"id": "t", "rules": [{"name": "a", "strategy": strategy}]},
            ".clew/secrets/books": "right-enough",
            ".clew/secrets/ledger": "right-enough",
        }
    )


def ask(server: PostgresServer, statement: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(server.url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def told(view: RunView) -> tuple[str, str | None]:
    error = view.snapshot.error
    return view.snapshot.status.value, error.code if error else None


def staged(shop: Shop, view: RunView) -> list[str]:
    return [path.name for path in (shop.storage / "runs" / view.record.run_id / "scratch").rglob("*.parquet")]


def test_tables_are_joined_overwritten_and_added_to(shop: Shop, server: PostgresServer) -> None:
    shop.project("p", ENRICH, output(20, "ledger", "report"), output(30, "ledger", "log", "append"))
    first = shop.run("p")
    assert told(first) == ("COMPLETED", None)
    assert [(each["seq"], each["table"], each["rows"]) for each in first.outputs()] == [
        (20, "report", 2),
        (30, "log", 2),
    ]
    assert told(shop.run("p", "2026-02")) == ("COMPLETED", None)
    rows = "SELECT id, currency, amount::text, goal, _period FROM books.{} ORDER BY id"
    january = [(1, "EUR", "10.00", 1, "2026-01"), (2, "USD", "20.00", 3, "2026-01")]
    february = [(3, "EUR", "30.00", 2, "2026-02")]
    assert ask(server, rows.format("report")) == february
    assert ask(server, rows.format("log")) == january + february
    written = ask(server, "SELECT once, rows::int FROM books.clew_written")
    assert (f"{first.record.run_id}/30", 2) in written
    assert len(written) == 4
    assert staged(shop, first) == []
    with shop.starter() as starter:
        trace = open_trace(first, starter.environment)
        why = as_text(explain(trace, row_named(trace, 'currency = "USD"', None), "goal"))
    assert "targets, table targets of books" in why


def test_the_record_of_an_output_names_the_table_without_placeholders(shop: Shop, server: PostgresServer) -> None:
    shop.project("p", ENRICH, output(20, "ledger", "claims_{year}"))
    view = shop.run("p")
    assert [each["table"] for each in view.outputs()] == ["claims_2026"]
    assert ask(server, "SELECT count(*)::int FROM books.claims_2026") == [(2,)]


def test_the_example_of_the_specification_writes_its_table(tmp_path: Path, server: PostgresServer) -> None:
    """As an active project, so that it goes to the warehouse and not to the sandbox."""
    shutil.copytree(EXAMPLE, tmp_path / "example")
    warehouse = {"id": "ds-warehouse", "type": "database", "options": {"url": server.url}}
    shop = Shop(tmp_path / "example").write({**EXAMPLE_DATA, "datasources/ds-warehouse.yaml": warehouse})
    for file in (shop.root / "datasources").iterdir():
        if "jdbc:" in file.read_text():
            file.unlink()
    workspace = clew.open(shop.root)
    assert workspace.projects.activate("order-processing").version == 1
    assert workspace.run("order-processing", "2026-01").raise_if_failed().status == "COMPLETED"
    columns = "order_id, customer_tier, discounted_price::float8, _labels"
    found = ask(server, f"SELECT {columns} FROM processed_orders ORDER BY order_id")
    assert found == [(1, "gold", 90.0, "{region:EMEA}"), (4, None, 50.0, "")]


def test_a_refused_password_fails_the_run_and_a_retry_after_the_fix_completes(
    shop: Shop, server: PostgresServer
) -> None:
    shop.write({".clew/secrets/books": "wrong-one-1", ".clew/secrets/ledger": "wrong-one-2"})
    shop.project("p", ENRICH, output(20, "ledger", "log", "append"))
    view = shop.run("p")
    assert told(view) == ("FAILED", "SourceUnavailable")
    assert view.failure is not None
    assert "the table targets cannot be used" in view.failure.message
    assert 'password authentication failed for user "clerk"' in view.failure.message

    shop.write({".clew/secrets/books": "right-enough"})
    view = shop.retry(view, "load")
    assert told(view) == ("FAILED", "DestinationUnavailable")
    assert view.failure is not None
    assert 'password authentication failed for user "clerk"' in view.failure.message
    assert view.failure.span is not None
    assert view.failure.span.file == "projects/p.yaml"
    assert "wrong" not in str(view.to_json())
    kept = [path for path in shop.root.rglob("*") if path.is_file() and "secrets" not in path.parts]
    assert len(kept) > 10
    assert [path for path in kept if b"wrong-" in path.read_bytes()] == []
    assert ask(server, "SELECT tablename FROM pg_tables WHERE schemaname = 'books'") == [("targets",)]

    shop.write({".clew/secrets/ledger": "right-enough"})
    done = shop.retry(view, 20)
    assert told(done) == ("COMPLETED", None)
    assert ask(server, "SELECT id, goal FROM books.log ORDER BY id") == [(1, 1), (2, 3)]
    assert staged(shop, done) == []


def test_a_database_that_goes_away_fails_the_run_and_a_retry_after_its_return_completes(
    shop: Shop, server: PostgresServer
) -> None:
    shop.project(
        "p",
        ENRICH | {"arguments": {"assignments": [{"column": "goal", "expression": "1"}]}},
        output(20, "ledger", "orders"),
    )
    server.stop()
    try:
        view = shop.run("p")
    finally:
        server.start()
    assert told(view) == ("FAILED", "DestinationUnavailable")
    assert ask(server, "SELECT tablename FROM pg_tables WHERE tablename = 'orders'") == []
    assert told(shop.retry(view, 20)) == ("COMPLETED", None)
    assert ask(server, "SELECT count(*) FROM books.orders") == [(2,)]


def test_a_table_that_lacks_a_column_is_left_as_it_was(shop: Shop, server: PostgresServer) -> None:
    ask(server, "CREATE TABLE books.report AS SELECT 7 AS id; ALTER TABLE books.report OWNER TO clerk")
    shop.project("p", ENRICH, output(20, "ledger", "report"))
    view = shop.run("p")
    assert told(view) == ("FAILED", "DestinationUnavailable")
    assert view.failure is not None
    assert 'column "currency" of relation "report" does not exist' in view.failure.message
    assert ask(server, "SELECT * FROM books.report") == [(7,)]


def test_other_databases_are_overwritten_through_jdbc_and_not_added_to(shop: Shop, spark: SparkSession) -> None:
    options = {"url": "jdbc:derby:memory:outputs;create=true", "driver": "org.apache.derby.iapi.jdbc.AutoloadedDriver"}
    shop.write({"datasources/derby.yaml": {"id": "derby", "type": "database", "options": options}})
    shop.project("p", ENRICH, output(20, "derby", "report"))
    shop.project("q", ENRICH, output(20, "derby", "report", "append"))
    assert told(shop.run("p")) == ("COMPLETED", None)
    assert told(shop.run("p")) == ("COMPLETED", None)
    refused = shop.run("q")
    assert told(refused) == ("FAILED", "OutputConflict")
    assert refused.failure is not None
    assert "through JDBC a retry could duplicate its rows" in refused.failure.message
    rows = spark.read.format("jdbc").options(url=options["url"], driver=options["driver"], dbtable="report").load()
    assert sorted((row["id"], row["goal"]) for row in rows.collect()) == [(1, 1), (2, 3)]
