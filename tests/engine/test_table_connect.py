"""Tables through Spark Connect, where a session has no JVM at hand: read, written by path and by name, registered."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from clew.api.run import Run
from tests.engine import table_jars
from tests.engine.engine_workspaces import Shop
from tests.engine.spark_servers import connect_server
from tests.engine.table_lakes import Lake, ran
from tests.engine.table_process import TableProcess, connectors, table_process

pytestmark = pytest.mark.spark

CATALOGS = {"delta": "spark_catalog", "iceberg": "lake"}


@pytest.fixture(scope="module")
def connected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TableProcess]:
    """A process that knows Spark by the address of a server only, which has the connectors."""
    folder = tmp_path_factory.mktemp("tables")
    jars, settings = connectors(folder)
    with (
        connect_server(tmp_path_factory.mktemp("server"), {**settings, "spark.jars": ",".join(jars)}) as address,
        table_process(folder, {"spark.master": address}) as process,
    ):
        yield process


@pytest.fixture(params=["delta", "iceberg"])
def lake(request: pytest.FixtureRequest, connected: TableProcess) -> Lake:
    table_jars.require(request.param)
    return Lake(connected, connected.folder / "warehouse", request.param)


def output(seq: int, destination: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"seq": seq, "name": f"o{seq}", "type": "output", "arguments": {"destination": destination, **more}}


def completed(run: Run) -> Run:
    assert run.error is None, run.error.message
    return run


def amounts(run: Run) -> dict[int, Decimal]:
    states = [row.state or {} for row in run.trace(where="id IS NOT NULL", limit=100).rows]
    return {int(str(state["id"])): Decimal(str(state["amount"])) for state in states}


def test_tables_are_read_written_and_registered_without_a_jvm_at_hand(
    lake: Lake, connected: TableProcess, tmp_path: Path
) -> None:
    lake.create().sql("INSERT INTO {t} VALUES (1, 'EUR', 10.00, '2026-01'), (2, 'USD', 20.00, '2026-01')")
    catalog = CATALOGS[lake.format]
    named = {"datasource_id": "named", "table": f"{lake.name}.ledger", "format": lake.format}
    shop: Shop = lake.shop(tmp_path)
    shop.write({"datasources/named.yaml": {"id": "named", "type": "catalog", "options": {"catalog": catalog}}})
    shop.project(
        "p",
        output(10, {"datasource_id": "reports", "path": "all", "format": lake.format}, mode="upsert", upsert_by=["id"]),
        output(20, {**named, "create_missing": "schema"}, mode="replace_period", register_as_dataset="ledger"),
    )
    shop.project("report", dataset="ledger")
    for _ in range(2):
        run = completed(ran(connected, shop))
    report = completed(ran(connected, shop, "report"))
    expected = {1: Decimal("10.00"), 2: Decimal("20.00")}
    assert (amounts(run), amounts(report)) == (expected, expected)
    [row] = report.trace(where="id = 2").rows
    assert f"in p, 2026-01, run {run.id[:8]}" in report.explain(row.row_id, "amount").to_text()


def test_a_format_that_the_server_does_not_have_is_told(connected: TableProcess, tmp_path: Path) -> None:
    lake = Lake(connected, connected.folder / "warehouse", "delta")
    table_jars.require("delta")
    lake.create().sql("INSERT INTO {t} VALUES (1, 'EUR', 10.00, '2026-01')")
    shop = lake.shop(tmp_path)
    shop.project("p", output(10, {"datasource_id": "reports", "path": "all", "format": "hudi"}))
    run = ran(connected, shop)
    assert run.error is not None
    assert run.error.code == "OutputConflict"
    assert "settings of the server" in str(run.error.hint)
