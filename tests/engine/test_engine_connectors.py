"""Tables through a JDBC driver, and Delta: with the jars that `make jars` fetches, in a separate process."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from deltalake import DeltaTable

from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.spark_jars import delta_jars, jars
from tests.store.store_postgres import QUICK, postgres_server

pytestmark = pytest.mark.spark

SMALL = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark.driver.memory": "1g"}
DELTA = {
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
}
DRIVE = """
import json, sys, clew
ws = clew.open(sys.argv[1])
print(json.dumps([ws.run("p", period=period).to_json() for period in sys.argv[2:]]))
"""
TARGETS = {"alias": "targets", "dataset_id": "targets", "on": "targets.currency = orders.currency"}
EXPECTED = [(1, 1), (2, 3), (3, 2)]
GOALS = {
    "seq": 10,
    "name": "Goals",
    "type": "update",
    "arguments": {"joins": [TARGETS], "assignments": [{"column": "goal", "expression": "targets.goal"}]},
}


def output(seq: int, **destination: str) -> dict[str, Any]:
    arguments = {"destination": destination, "columns": ["id", "goal"]}
    return {"seq": seq, "name": f"Write {seq}", "type": "output", "arguments": arguments}


@pytest.fixture
def database() -> Iterator[str]:
    """The address of a database behind a password: JDBC knows no sockets but those with a port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with postgres_server(f"{QUICK} -c listen_addresses=127.0.0.1 -c port={port}") as server:
        with psycopg.connect(f"{server.url}&port={port}", autocommit=True) as connection:
            found = connection.execute("SELECT current_setting('hba_file')").fetchone()
            assert found is not None
            path = Path(found[0])
            path.write_text(f"host all clerk 127.0.0.1/32 scram-sha-256\n{path.read_text()}")
            connection.execute(
                """CREATE ROLE clerk LOGIN PASSWORD 'right-enough'; CREATE SCHEMA books AUTHORIZATION clerk;
                CREATE TABLE books.targets (currency text, goal int, _period text);
                INSERT INTO books.targets VALUES ('EUR', 1, '2026-01'), ('EUR', 2, '2026-02'), ('USD', 3, '2026-01');
                ALTER TABLE books.targets OWNER TO clerk; SELECT pg_reload_conf()"""
            )
        yield f"127.0.0.1:{port}/postgres"


def driven(shop: Shop, *periods: str) -> list[dict[str, Any]]:
    """In a separate process, since a process has one Spark, and this one has its jars already."""
    command = [sys.executable, "-c", DRIVE, str(shop.root), *periods]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    runs: list[dict[str, Any]] = json.loads(done.stdout)
    return runs


def shop_with(root: Path, spark: dict[str, Any]) -> Shop:
    settings = {**SHOP["clew.yaml"], "environments": {"dev": {"mode": "dev", "spark": {"master": "local[2]", **spark}}}}
    return make_shop(root).write({"clew.yaml": settings})


@pytest.mark.postgres
def test_a_table_is_read_through_the_driver_in_the_jar_of_its_datasource(database: str, tmp_path: Path) -> None:
    options = {"url": f"jdbc:postgresql://{database}?user=clerk", "schema": "books", "jar": jars("postgresql")[0]}
    books = {"id": "books", "type": "database", "credential_ref": "secret://file/books", "options": options}
    strategy = {"type": "table", "datasource_id": "books", "table": "targets"}
    shop = shop_with(tmp_path, {"config": SMALL}).write(
        {
            "datasources/books.yaml": books,
            "datasets/targets.yaml": {**SHOP["datasets/targets.yaml"], "resolver_id": "t"},
            "resolvers/t.yaml": {"id": "t", "rules": [{"name": "a", "strategy": strategy}]},
            ".clew/secrets/books": "right-enough",
        }
    )
    shop.project("p", GOALS, output(20, datasource_id="books", table="report", mode="append"))
    runs = driven(shop, "2026-01", "2026-02")
    assert [(run["status"], run["error"]) for run in runs] == [("COMPLETED", None)] * 2
    with psycopg.connect(f"postgresql://clerk:right-enough@{database}") as connection:
        assert connection.execute("SELECT id, goal FROM books.report ORDER BY id").fetchall() == EXPECTED


def test_a_delta_table_is_written_and_appended_to(tmp_path: Path) -> None:
    shop = shop_with(tmp_path, {"config": {**SMALL, **DELTA}, "jars": delta_jars()})
    shop.project("p", GOALS, output(20, datasource_id="reports", path="lake", format="delta", mode="append"))
    runs = driven(shop, "2026-01", "2026-02")
    assert [(run["status"], run["error"]) for run in runs] == [("COMPLETED", None)] * 2
    lake = DeltaTable(shop.root / "reports/lake").to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["goal"]) for row in lake) == EXPECTED
