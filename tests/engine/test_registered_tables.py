"""Outputs to Delta and Iceberg tables that are registered as they are: no second copy, and every row leads across."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable

from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.tracelink import Lineage
from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.table_lakes import Lake, ran
from tests.engine.table_process import TableProcess

pytestmark = pytest.mark.spark

COLUMNS = ["id", "amount", "_period", "_row_id"]
DOUBLE = {
    "seq": 10,
    "name": "Double",
    "type": "update",
    "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
}
ADD = {**DOUBLE, "name": "Add", "arguments": {"assignments": [{"column": "amount", "expression": "amount + 1"}]}}
SUM = {
    "seq": 20,
    "name": "Sum",
    "type": "aggregate",
    "arguments": {"group_by": ["_period"], "aggregations": [{"column": "amount", "expression": "SUM(amount)"}]},
}


def close(format_: str, mode: str, columns: list[str] | None = None, **more: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": "ledger", "format": format_}
    arguments = {"destination": destination, "mode": mode, "columns": columns or COLUMNS, **more}
    return {
        "seq": 20,
        "name": "Close",
        "type": "output",
        "arguments": {**arguments, "register_as_dataset": "closed"},
    }


def orders(shop: Shop, *rows: str) -> None:
    shop.write({"data/orders.csv": "\n".join(["id,currency,amount,_period", *rows, ""])})


def completed(run: Run) -> Run:
    assert run.error is None, run.error.message
    return run


def newest(folder: Path, format_: str) -> int:
    """The newest version, as an independent reader sees it."""
    if format_ == "delta":
        return int(DeltaTable(folder).version())
    hint = (folder / "metadata" / "version-hint.text").read_text()
    found = StaticTable.from_metadata(f"file://{folder}/metadata/v{hint}.metadata.json").current_snapshot()
    assert found is not None
    return found.snapshot_id


def amounts(run: Run) -> dict[int, Decimal]:
    rows = run.trace(where="id IS NOT NULL", limit=100).rows
    return {int(str((row.state or {})["id"])): Decimal(str((row.state or {})["amount"])) for row in rows}


def row_of(run: Run, where: str) -> str:
    [row] = run.trace(where=where).rows
    return row.row_id


def trace_of(run: Run, where: str) -> int:
    found = run.trace(row_of(run, where)).trace_id
    assert found is not None
    return found


def walked(found: Lineage) -> set[int]:
    return {node.trace_id for node in found.graph.nodes}


def change_behind(table_spark: TableProcess, lake: Lake, folder: Path, statement: str) -> None:
    """Someone else commits to a table that Clew has made."""
    name = f"delta.`{folder}`"
    if lake.format == "iceberg":
        catalog = f"clew_{lake.name}"
        settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop", ".warehouse": folder.parent}
        table_spark.sql(*(f"SET spark.sql.catalog.{catalog}{key}={value}" for key, value in settings.items()))
        name = f"{catalog}.{folder.name}"
    table_spark.sql(statement.replace("{t}", name))


def test_a_dataset_is_the_version_that_the_output_has_committed(
    lake: Lake, table_spark: TableProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An upsert moves rows of the first run into files of the second; each still leads to the run that wrote it."""
    shop = make_shop(tmp_path).project("close", DOUBLE, close(lake.format, "upsert", upsert_by=["id"]))
    shop.project("report", ADD, SUM, dataset="closed")
    folder = tmp_path / "reports" / "ledger"
    first = completed(ran(table_spark, shop, "close"))
    orders(shop, "2,USD,25.00,2026-01")
    second = completed(ran(table_spark, shop, "close"))
    version = newest(folder, lake.format)
    assert command(["datasets", "closed", "--json", "-w", str(tmp_path)]) == 0
    told = json.loads(capsys.readouterr().out)
    [table] = told["versions"][0]["tables"]
    assert (table["table"], table["format"], table["version"]) == ("reports/ledger", lake.format, version)
    assert (told["rows"], table["rows"]) == (2, 2)
    assert not list((shop.storage / "datasets").rglob("*.parquet"))

    change_behind(table_spark, lake, folder, "UPDATE {t} SET amount = 999 WHERE id = 1")
    assert newest(folder, lake.format) != version

    report = completed(ran(table_spark, shop, "report"))
    assert amounts(report) == {1: Decimal("21.00"), 2: Decimal("51.00")}
    [pinned] = [part for part in report.parts() if part.kind == "input"]
    assert (pinned.details or {})["table_version"] == str(version)
    assert not list((shop.storage / "runs" / report.id / "input").rglob("*.parquet"))
    word = "version" if lake.format == "delta" else "snapshot"
    [snapshot] = report.resolver_snapshots()
    assert snapshot.sources.startswith(f"dataset closed v2: reports/ledger {word} {version}")

    for row, run, line in ((1, first, 2), (2, second, 2)):
        told = report.explain(row_of(report, f"id = {row}"), "amount").to_text()
        assert f"reports/ledger {word} {version}: " in told
        assert f"in close, 2026-01, run {run.id[:8]}" in told
        assert f"orders.csv line {line}" in told

    workspace, total = Workspace(tmp_path), trace_of(report, "id IS NULL")
    up, down = workspace.lineage(total), workspace.lineage(trace_of(first, "id = 1"), "down")
    assert {trace_of(first, "id = 1"), trace_of(second, "id = 2"), trace_of(report, "id = 1")} < walked(up)
    assert {(place.project, place.line) for leaf in up.leaves for place in up.places[leaf]} == {("close", 2)}
    assert walked(down) == {trace_of(first, "id = 1"), trace_of(report, "id = 1"), total}

    assert command(["verify", report.id, "-w", str(tmp_path)]) == 0
    capsys.readouterr()
    victim = Path(pinned.files[0].path)
    content = victim.read_bytes()
    victim.write_bytes(content[:10] + bytes([content[10] ^ 1]) + content[11:])
    assert command(["verify", report.id, "--json", "-w", str(tmp_path)]) == 1
    assert victim.name in capsys.readouterr().out
    victim.write_bytes(content)

    assert command(["rm", first.id, "-w", str(tmp_path)]) == 1
    assert "RunNeeded" in capsys.readouterr().err
    assert command(["gc", "--keep", "0d", "-w", str(tmp_path)]) == 0
    assert {workspace.get_run(run.id).status for run in (first, second)} == {"COMPLETED"}


def test_each_period_keeps_its_version_of_a_table_that_is_overwritten(
    lake: Lake, table_spark: TableProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Closing February does not remove January from the dataset; the version that nobody needs leaves the table be."""
    shop = make_shop(tmp_path).project("close", DOUBLE, close(lake.format, "overwrite"))
    shop.project("report", ADD, dataset="closed")
    folder = tmp_path / "reports" / "ledger"
    completed(ran(table_spark, shop, "close"))
    again = completed(ran(table_spark, shop, "close"))
    completed(ran(table_spark, shop, "close", "2026-02"))
    january, february = (completed(ran(table_spark, shop, "report", period)) for period in ("2026-01", "2026-02"))
    assert (amounts(january), amounts(february)) == (
        {1: Decimal("21.00"), 2: Decimal("41.00")},
        {3: Decimal("61.00")},
    )
    assert f"run {again.id[:8]}" in january.explain(row_of(january, "id = 1"), "amount").to_text()
    before = sorted(folder.rglob("*"))
    assert command(["gc", "--keep", "0d", "--json", "-w", str(tmp_path)]) == 0
    assert "closed@1" in capsys.readouterr().out
    assert sorted(folder.rglob("*")) == before
    later = completed(ran(table_spark, shop, "report"))
    assert amounts(later) == {1: Decimal("21.00"), 2: Decimal("41.00")}


def test_rows_are_copied_where_the_table_does_not_say_which_they_are(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    shop = make_shop(tmp_path).project("close", DOUBLE, close(lake.format, "append", ["id", "amount", "_period"]))
    shop.project("report", ADD, dataset="closed")
    completed(ran(table_spark, shop, "close"))
    assert list((shop.storage / "datasets" / "closed").rglob("*.parquet"))
    assert amounts(completed(ran(table_spark, shop, "report"))) == {1: Decimal("21.00"), 2: Decimal("41.00")}


def test_a_registered_version_that_is_gone_or_changed_is_told(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    shop = make_shop(tmp_path).project("close", DOUBLE, close(lake.format, "append"))
    shop.project("report", ADD, dataset="closed")
    writer = completed(ran(table_spark, shop, "close"))
    copying = {**SHOP["clew.yaml"]["environments"]["dev"], "tables": {"inputs": "copy"}}
    shop.write({"clew.yaml": {**SHOP["clew.yaml"], "environments": {"dev": copying}}})
    mixed = ran(table_spark, shop, "close", "2026-02")
    assert mixed.error is not None
    assert mixed.error.code == "RegistrationConflict"
    assert "is the table reports/ledger" in mixed.error.message
    folder = tmp_path / "reports" / "ledger"
    metadata = folder / "_delta_log" if lake.format == "delta" else folder / "metadata"
    metadata.rename(metadata.with_name("moved"))
    gone = ran(table_spark, shop, "report")
    assert gone.error is not None
    assert gone.error.code == "SourceUnavailable"
    assert 'version 1 of the dataset "closed" is version ' in gone.error.message
    assert "can no longer be read" in gone.error.message
    assert gone.error.hint is not None
    assert writer.id[:8] in gone.error.hint
