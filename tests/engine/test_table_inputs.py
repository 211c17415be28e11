"""Delta and Iceberg tables as inputs: pinned by version, read where they lie, explained without Spark."""

import shutil
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from clew.storage.parts import Part
from clew.storage.row_identity import RowIds
from tests.engine import table_jars
from tests.engine.engine_workspaces import Shop
from tests.engine.table_lakes import Lake, ran
from tests.engine.table_process import TableProcess

pytestmark = pytest.mark.spark

DOUBLE = {
    "seq": 10,
    "name": "Double",
    "type": "update",
    "selector": 'currency = "EUR"',
    "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
}
TOTALS = {
    "seq": 20,
    "name": "Totals",
    "type": "aggregate",
    "arguments": {"group_by": ["currency"], "aggregations": [{"column": "total", "expression": "SUM(amount)"}]},
}
PUBLISH = {
    "seq": 30,
    "name": "Publish",
    "type": "output",
    "arguments": {
        "destination": {"datasource_id": "reports", "path": "closed"},
        "columns": ["id", "currency", "amount", "total"],
    },
}
ROWS = (
    "(1, 'EUR', 10.00, '2026-01'), (2, 'USD', 20.00, '2026-01'), "
    "(3, 'EUR', 30.00, '2026-02'), (4, 'EUR', 5.50, '2026-01')"
)
CLOSED = [
    (1, "EUR", Decimal("20.00"), None),
    (2, "USD", Decimal("20.00"), None),
    (4, "EUR", Decimal("11.00"), None),
    (None, "EUR", None, Decimal("31.00")),
    (None, "USD", None, Decimal("20.00")),
]


def closing(shop: Shop) -> Shop:
    return shop.project("p", DOUBLE, TOTALS, PUBLISH)


def completed(run: Run) -> Run:
    assert run.error is None, run.error.message
    assert run.status == "COMPLETED"
    return run


def closed(shop: Shop) -> list[tuple[Any, ...]]:
    rows = [(row["id"], row["currency"], row["amount"], row["total"]) for row in shop.read("reports/closed")]
    return sorted(rows, key=repr)


def input_of(run: Run) -> Part:
    [found] = [part for part in run.parts() if part.kind == "input"]
    return found


def copied(shop: Shop, run: Run) -> list[str]:
    """Files with rows below the pinned inputs of a run."""
    folder = shop.storage / "runs" / run.id / "input"
    return sorted(path.name for path in folder.rglob("*.parquet"))


def histories(run: Run) -> dict[Any, tuple[Any, ...]]:
    """Of each loaded row: amount as loaded, amount at the end, file and line."""
    found = dict[Any, tuple[Any, ...]]()
    for row in run.trace(where="id IS NOT NULL").rows:
        history = run.trace(row.row_id)
        source = history.entries[0].source
        assert source is not None
        states = [entry.full_state["amount"] for entry in history.entries]
        found[history.entries[0].full_state["id"]] = (states[0], states[-1], source.file, source.line)
    return found


def test_a_version_is_read_where_it_lies_and_stays_what_it_was(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    table = lake.create()
    table.sql(f"INSERT INTO {{t}} VALUES {ROWS}")
    version = table.version
    shop = closing(lake.shop(tmp_path))
    run = completed(ran(table_spark, shop))
    assert closed(shop) == sorted(CLOSED, key=repr)
    assert copied(shop, run) == []
    details = input_of(run).details or {}
    assert details["pinned"] == "version"
    assert details["table_version"] == str(version)
    assert details["rows"] == 3
    before = histories(run)
    assert {key: value[:2] for key, value in before.items()} == {
        1: (Decimal("10.00"), Decimal("20.00")),
        2: (Decimal("20.00"), Decimal("20.00")),
        4: (Decimal("5.50"), Decimal("11.00")),
    }
    table.sql(
        "DELETE FROM {t} WHERE id = 4",
        "UPDATE {t} SET amount = 99 WHERE id = 1",
        "INSERT INTO {t} VALUES (9, 'EUR', 1, '2026-01')",
    )
    assert histories(run) == before
    again = completed(ran(table_spark, shop))
    assert {key: value[0] for key, value in histories(again).items()} == {1: 99, 2: 20, 9: 1}
    [total] = run.trace(where='currency = "EUR" AND total > 0').rows
    told = run.explain(total.row_id, "total").to_text()
    title = f"orders {'version' if lake.format == 'delta' else 'snapshot'} {version}"
    assert f"{title}: " in told
    assert all(str(value[2]).startswith(title) and value[3] >= 1 for value in before.values())
    absent = run.why_not("id = 3").to_text()
    assert "2026-02" in absent


def run_while_it_changes(spark: SparkSession, root: str, table: str) -> str:
    """A run, while another writer commits to the table that it reads, as often as it can."""
    is_over = threading.Event()

    def change() -> None:
        while not is_over.is_set():
            spark.sql(f"UPDATE {table} SET amount = amount + 1").collect()

    writer = threading.Thread(target=change)
    writer.start()
    try:
        return Shop(Path(root)).run("p", "2026-01").record.run_id
    finally:
        is_over.set()
        writer.join()


def test_a_table_that_changes_during_a_run_is_read_in_one_version(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    """Each version has other amounts, so rows of two versions would show in the output."""
    table = lake.create()
    table.sql(f"INSERT INTO {{t}} VALUES {ROWS}")
    shop = closing(lake.shop(tmp_path))
    run = completed(Workspace(shop.root).get_run(table_spark(run_while_it_changes, str(shop.root), table.name)))
    version = int(str((input_of(run).details or {})["table_version"]))
    assert table.version != version
    rows = table.rows("id, currency, amount, _period", at=table.travelled(version))
    of_period = [row for row in rows if row[3] == "2026-01"]
    doubled = {row[0]: row[2] * 2 if row[1] == "EUR" else row[2] for row in of_period}
    assert {key: value[:2] for key, value in histories(run).items()} == {
        row[0]: (row[2], doubled[row[0]]) for row in of_period
    }
    totals = {row[1]: row[3] for row in closed(shop) if row[0] is None}
    assert totals == {"EUR": doubled[1] + doubled[4], "USD": doubled[2]}


LAYOUTS = [
    ("delta", {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}),
    ("iceberg", {"format-version": "2", "write.delete.mode": "merge-on-read"}),
    ("iceberg", {"format-version": "3", "write.delete.mode": "merge-on-read"}),
]


@pytest.mark.parametrize(("format_", "properties"), LAYOUTS, ids=["delta", "iceberg-v2", "iceberg-v3"])
def test_deleted_rows_renamed_and_added_columns_and_new_partitions_are_those_of_the_version(
    format_: str, properties: dict[str, str], table_spark: TableProcess, tmp_path: Path
) -> None:
    """The rows of every version are compared with what the connector of the format says."""
    table_jars.require(format_)
    lake = Lake(table_spark, table_spark.folder / "warehouse", format_)
    table = lake.create(columns="id BIGINT, amt DECIMAL(12,2), _period STRING", by="_period", properties=properties)
    steps = [
        "INSERT INTO {t} SELECT /*+ COALESCE(1) */ id, id * 1.5, '2026-01' FROM range(20)",
        "DELETE FROM {t} WHERE id IN (3, 7, 8)",
        "ALTER TABLE {t} RENAME COLUMN amt TO amount",
        "ALTER TABLE {t} ADD COLUMN currency STRING",
        "INSERT INTO {t} (id, amount, currency, _period) VALUES (100, 1, 'EUR', '2026-01'), (101, 2, 'USD', '2026-02')",
        "DELETE FROM {t} WHERE id = 12",
    ]
    if format_ == "iceberg":
        steps.insert(4, "ALTER TABLE {t} ADD PARTITION FIELD bucket(2, id)")
        steps.insert(6, "ALTER TABLE {t} DROP PARTITION FIELD _period")
        steps.append("INSERT INTO {t} (id, amount, currency, _period) VALUES (103, 4, 'EUR', '2026-01')")
    table.sql(*steps)
    shop = closing(lake.shop(tmp_path))
    run = completed(ran(table_spark, shop))
    part = input_of(run)
    assert copied(shop, run) == ["excluded.parquet"]
    assert sum(file.skipped for file in part.files) == 4
    expected = table.rows("id, currency, amount, _period")
    loaded = [
        tuple(run.trace(row.row_id).entries[0].full_state[name] for name in ("id", "currency", "amount", "_period"))
        for row in run.trace(where="id IS NOT NULL", limit=100).rows
    ]
    assert sorted(loaded, key=repr) == [row for row in expected if row[3] == "2026-01"]
    assert len(loaded) == part.counted
    assert closed(shop)[:2] == [(0, None, Decimal("0.00"), None), (1, None, Decimal("1.50"), None)]
    gone = RowIds(run.id).row_id(next(file for file in part.files if file.skipped).first_ordinal + 3)
    with pytest.raises(UserError, match="RowNotFound"):
        run.explain(gone, "amount")


def test_a_vacuumed_version_is_told_and_nothing_wrong_is_shown(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    table = lake.create()
    table.sql(f"INSERT INTO {{t}} VALUES {ROWS}")
    shop = closing(lake.shop(tmp_path))
    run = completed(ran(table_spark, shop))
    [row] = run.trace(where="id = 1").rows
    assert run.explain(row.row_id, "amount").to_text()
    for path in table.folder.rglob("*.parquet"):
        if "metadata" not in path.parts and "_delta_log" not in path.parts:
            path.unlink()
    for ask in (
        lambda: run.trace(row.row_id),
        lambda: run.trace(where="id = 2"),
        lambda: run.explain(row.row_id, "amount"),
    ):
        with pytest.raises(UserError) as caught:
            ask()
        assert caught.value.code == "TableVersionGone", caught.value
        assert "orders" in caught.value.diagnostic.message
    again = ran(table_spark, shop)
    assert again.error is not None
    assert (again.status, again.error.code) == ("FAILED", "SourceUnavailable")
    assert "which is gone" in again.error.message


def test_rows_are_copied_where_a_reference_would_not_do_and_the_reason_is_on_record(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    table = lake.create(columns="id INT, currency STRING, amount DOUBLE, _period STRING")
    table.sql(f"INSERT INTO {{t}} VALUES {ROWS}")
    converted = closing(lake.shop(tmp_path / "a"))
    run = completed(ran(table_spark, converted))
    assert closed(converted) == sorted(CLOSED, key=repr)
    details = input_of(run).details or {}
    assert details["reason"] == 'column "amount" is double in the table and decimal(12,2) in the dataset'
    assert details["table_version"] == str(table.version)
    assert copied(converted, run)
    before = histories(run)
    assert all(str(value[2]).startswith("orders ") and value[3] for value in before.values())
    right = lake.create("exact")
    right.sql(f"INSERT INTO {{t}} VALUES {ROWS}")
    careful = closing(lake.shop(tmp_path / "b", path="exact", tables={"inputs": "copy"}))
    run = completed(ran(table_spark, careful))
    assert (input_of(run).details or {})["reason"] == "the environment says so"
    before = histories(run)
    shutil.rmtree(right.folder)
    assert histories(run) == before


def test_rows_that_break_a_rule_of_the_dataset_are_refused(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    table = lake.create()
    shop = closing(lake.shop(tmp_path))
    none = ran(table_spark, shop)
    assert none.error is not None
    assert (none.error.code, none.error.message) == (
        "SourceUnavailable",
        'orders has no rows of "orders" for the period "2026-01"',
    )
    table.sql("INSERT INTO {t} VALUES (1, 'EUR', 1, '2026-01'), (NULL, 'EUR', 1, '2026-02')")
    completed(ran(table_spark, shop))
    table.sql("INSERT INTO {t} VALUES (NULL, 'EUR', 1, '2026-01')")
    empty = ran(table_spark, shop)
    assert empty.error is not None
    assert empty.error.code == "SchemaMismatch"
    assert 'column "id" of "orders" must not be empty, but is in orders ' in empty.error.message
    table.sql("DELETE FROM {t} WHERE id IS NULL", "INSERT INTO {t} VALUES (1, 'USD', 2, '2026-01')")
    double = ran(table_spark, shop)
    assert double.error is not None
    assert 'two rows of "orders" have the natural key id "1"' in double.error.message
