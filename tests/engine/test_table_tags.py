"""Tags that hold the snapshots of Iceberg tables that runs have read, until the runs are deleted."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from clew.cli.main import run as command
from clew.diagnostics import UserError
from clew.storage.local import LocalStorage
from clew.storage.tables.iceberg import current_metadata
from clew.storage.tables.iceberg_tags import remove_tag, tag_snapshot
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_snapshot import TableProblem
from tests.engine import table_jars
from tests.engine.table_lakes import Lake, Table, ran
from tests.engine.table_process import TableProcess

pytestmark = pytest.mark.spark

DOUBLE = {
    "seq": 10,
    "name": "Double",
    "type": "update",
    "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
}
ROWS = "(1, 'EUR', 10.00, '2026-01'), (2, 'USD', 20.00, '2026-01')"


@pytest.fixture
def lake(table_spark: TableProcess) -> Lake:
    table_jars.require("iceberg")
    return Lake(table_spark, table_spark.folder / "warehouse", "iceberg")


def tags(table: Table) -> list[tuple[Any, ...]]:
    """The tags of a table, as the connector of the format sees them: name, snapshot, age in ms."""
    return table.sql(
        "REFRESH TABLE {t}", "SELECT name, snapshot_id, max_reference_age_in_ms FROM {t}.refs WHERE type = 'TAG'"
    )


def expire(table: Table) -> None:
    """What the owner of a table does who keeps no history."""
    schema, name = table.name.split(".")[-2:]
    table.sql(f"CALL lake.system.expire_snapshots(table => '{schema}.{name}', older_than => now(), retain_last => 1)")


def test_a_snapshot_is_held_while_the_run_is_there_and_let_go_with_it(
    lake: Lake, table_spark: TableProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = lake.create()
    table.sql(f"INSERT INTO {{t}} VALUES {ROWS}")
    version = table.version
    shop = lake.shop(tmp_path, tables={"tag_snapshots": True}, retention={"keep_days": 30}).project("p", DOUBLE)
    run = ran(table_spark, shop)
    assert run.status == "COMPLETED"
    tag = f"clew-{run.id}-{version}"
    assert tags(table) == [(tag, version, 30 * 24 * 3600 * 1000)]
    [part] = [part for part in run.parts() if part.kind == "input"]
    assert (part.details or {})["retention"] is None
    table.sql("INSERT OVERWRITE {t} VALUES (1, 'EUR', 77, '2026-01')")
    expire(table)
    assert [row.state["amount"] for row in run.trace(where="id = 1").rows if row.state] == [20]
    other = ran(table_spark, shop)
    assert {each[0] for each in tags(table)} == {tag, f"clew-{other.id}-{table.version}"}
    assert command(["rm", run.id, "-w", str(shop.root)]) == 0
    assert [each[0] for each in tags(table)] == [f"clew-{other.id}-{table.version}"]
    capsys.readouterr()
    assert command(["gc", "--keep", "0", "--json", "-w", str(shop.root)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (other.id in {each["name"] for each in told["removed"]}, told["problems"]) == (True, [])
    assert tags(table) == []
    assert table.rows("id, amount") == [(1, 77)]


def test_a_run_without_a_tag_says_what_may_happen_and_an_expired_snapshot_is_told(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    table = lake.create()
    table.sql(f"INSERT INTO {{t}} VALUES {ROWS}")
    version = table.version
    run = ran(table_spark, lake.shop(tmp_path, retention={"keep_days": 30}).project("p", DOUBLE))
    assert tags(table) == []
    [part] = [part for part in run.parts() if part.kind == "input"]
    note = f"expire_snapshots may delete snapshot {version} 5 days after it was made"
    assert (part.details or {})["retention"] == note
    careful = lake.shop(tmp_path / "careful", retention={"keep_days": 30}, tables={"short_lived": "copy"})
    copied = ran(table_spark, careful.project("p", DOUBLE))
    [part] = [part for part in copied.parts() if part.kind == "input"]
    assert ((part.details or {})["pinned"], (part.details or {})["reason"]) == ("copy", note)
    table.sql("INSERT OVERWRITE {t} VALUES (1, 'EUR', 77, '2026-01')")
    expire(table)
    with pytest.raises(UserError) as caught:
        run.trace(where="id = 1")
    assert caught.value.code == "TableVersionGone"
    assert f"snapshot {version}" in caught.value.diagnostic.message
    assert [row.state["amount"] for row in copied.trace(where="id = 1").rows if row.state] == [20]


def place(table: Table) -> TablePlace:
    return TablePlace(LocalStorage(table.folder), str(table.folder))


def test_tags_that_many_set_at_once_are_all_there_and_a_commit_of_the_connector_keeps_them(lake: Lake) -> None:
    table = lake.create()
    table.sql(f"INSERT INTO {{t}} VALUES {ROWS}")
    version = table.version
    names = [f"clew-{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: tag_snapshot(place(table), version, name, None), names))
    before = current_metadata(place(table))
    tag_snapshot(place(table), version, names[0], None)
    assert current_metadata(place(table)) == before
    assert sorted(each[0] for each in tags(table)) == names
    table.sql("INSERT INTO {t} VALUES (3, 'EUR', 5, '2026-01')")
    assert sorted(each[0] for each in tags(table)) == names
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda name: remove_tag(place(table), name), names[1:]))
    assert [each[0] for each in tags(table)] == names[:1]
    with pytest.raises(TableProblem, match="snapshot 7 has expired"):
        tag_snapshot(place(table), 7, "late", 1)
    left = {path.name for path in (table.folder / "metadata").iterdir() if "metadata.json" in path.name}
    assert all(name.removeprefix(".").startswith("v") for name in left), left
    table.folder.rename(table.folder.with_name("gone"))
    with pytest.raises(TableProblem):
        remove_tag(place(table), "clew-0")
