"""How explanations, traces and pages cite rows of tables: table, version, file, row, and the table's own row id."""

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from clew.api.run import Run
from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.cli.main import run as command
from clew.server.application import create_app
from clew.server.pages import addresses
from clew.server.settings import ServerSettings
from clew.trace.records import Source
from tests.engine import table_jars
from tests.engine.engine_workspaces import Shop
from tests.engine.table_lakes import Lake, ran
from tests.engine.table_process import TableProcess
from tests.server.pages_requests import as_page

pytestmark = pytest.mark.spark

DOUBLE = {
    "seq": 10,
    "name": "Double",
    "type": "update",
    "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
}
OWN_IDS = {
    "delta": ({"delta.enableRowTracking": "true"}, "_metadata.row_id"),
    "iceberg": ({"format-version": "3"}, "_row_id"),
}
STATEMENTS = [
    "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, 'EUR', id * 1.5, '2026-01' FROM range(6)",
    "INSERT INTO {t} VALUES (100, 'EUR', 1, '2026-01')",
    "UPDATE {t} SET amount = 99 WHERE id = 3",
    "DELETE FROM {t} WHERE id = 1",
]


def sources(run: Run) -> dict[int, Source]:
    """Where each loaded row stood, by the id in the data."""
    found = dict[int, Source]()
    for row in run.trace(where="id IS NOT NULL", limit=100).rows:
        first = run.trace(row.row_id).entries[0]
        assert first.source is not None
        found[int(str(first.full_state["id"]))] = first.source
    return found


@pytest.mark.parametrize("format_", OWN_IDS)
def test_rows_are_cited_with_the_ids_that_the_table_gives_them(
    format_: str, table_spark: TableProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The connector of the format says which row has which id, also of rows that an update has moved."""
    table_jars.require(format_)
    properties, column = OWN_IDS[format_]
    lake = Lake(table_spark, table_spark.folder / "warehouse", format_)
    table = lake.create(properties=properties)
    table.sql(*STATEMENTS)
    expected = {row[0]: row[1] for row in table.rows(f"id, {column}")}
    assert len(set(expected.values())) == 6
    environments: list[dict[str, Any]] = [{}, {"tables": {"inputs": "copy"}}]
    for settings in environments:
        shop = lake.shop(tmp_path / ("copy" if settings else "version"), **settings).project("p", DOUBLE)
        run = ran(table_spark, shop)
        assert run.status == "COMPLETED"
        cited = sources(run)
        assert {key: each.table_row_id for key, each in cited.items()} == expected
        assert {each.unit for each in cited.values()} == {"row"}
        _require_cited(shop, run, cited[3], capsys)
    again = {row[0]: row[1] for row in table.rows(f"id, {column}")}
    assert again == expected


def _require_cited(shop: Shop, run: Run, source: Source, capsys: pytest.CaptureFixture[str]) -> None:
    """The command, the API and the page say the same."""
    place = f"{source.file} row {source.line} (row id {source.table_row_id} of the table)"
    assert str(source.file).startswith("orders ")
    [row] = run.trace(where="id = 3").rows
    for arguments in (["explain", run.id, row.row_id, "amount"], ["trace", run.id, row.row_id]):
        assert command([*arguments, "-w", str(shop.root)]) == 0
        told = " ".join(capsys.readouterr().out.split())
        assert place in told.replace(" | ", " "), told
    assert command(["explain", run.id, row.row_id, "amount", "--json", "-w", str(shop.root)]) == 0
    [loaded] = json.loads(capsys.readouterr().out)["cause"]["inputs"]
    found = loaded["explanation"]["cause"]["source"]
    assert (found["line"], found["unit"], found["table_row_id"]) == (source.line, "row", source.table_row_id)
    with open_workspace(shop.root).following_files() as workspace:
        token = workspace.tokens.create("Ada", role=AccessRole.ENGINEER, days=1).text
        client = TestClient(create_app(workspace, ServerSettings()), base_url="http://127.0.0.1")
        client.headers["Authorization"] = f"Bearer {token}"
        page = as_page(client, addresses.row(run.id, row.row_id))
    assert page.status_code == 200
    assert place in page.text, page.text


def test_a_table_without_ids_of_its_own_is_cited_by_version_file_and_row(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    table = lake.create()
    table.sql("INSERT INTO {t} VALUES (1, 'EUR', 10, '2026-01')")
    run = ran(table_spark, lake.shop(tmp_path).project("p", DOUBLE))
    [source] = sources(run).values()
    version = f"{'version' if lake.format == 'delta' else 'snapshot'} {table.version}"
    assert str(source.file).startswith(f"orders {version}: ")
    assert (source.line, source.unit, source.table_row_id) == (1, "row", None)
    [row] = run.trace(where="id = 1").rows
    told = run.explain(row.row_id, "amount").to_text()
    assert f"{source.file} row 1\n" in told
    assert " line " not in told
