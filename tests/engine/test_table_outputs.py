"""Outputs to Delta and Iceberg tables: one commit for each run and step, checked by readers that are not Spark."""

import json
import threading
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import DeltaTable
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession

from clew.api.run import Run
from clew.api.run_view import RunReader
from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from clew.engine.output.attempts import OutputAttempt
from clew.engine.output.lake_commits import LakeCommit
from clew.engine.output.lake_tables import LakeOutputs
from clew.engine.output.places import LocalOutput
from clew.storage.local import LocalStorage
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_versions import read_snapshot
from tests.engine import table_jars
from tests.engine.engine_workspaces import SHOP, Shop, make_shop
from tests.engine.table_lakes import Lake, ran, run_project
from tests.engine.table_process import TableProcess

pytestmark = pytest.mark.spark

COLUMNS = ["id", "currency", "amount", "_period"]


def write(format_: str, mode: str, columns: list[str] | None = None, **more: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": "ledger", "format": format_}
    arguments = {"destination": destination, "mode": mode, "columns": columns or COLUMNS, **more}
    return {"seq": 20, "name": "Write", "type": "output", "arguments": arguments}


def completed(run: Run) -> Run:
    assert run.error is None, run.error.message
    return run


def orders(shop: Shop, *rows: str) -> None:
    shop.write({"data/orders.csv": "\n".join(["id,currency,amount,_period", *rows, ""])})


def files_of(folder: Path, format_: str) -> list[str]:
    found = read_snapshot(TablePlace(LocalStorage(folder), str(folder)), format_, {})  # type: ignore[arg-type]
    assert not any(file.deleted and file.deleted() for file in found.files)
    return [file.address for file in found.files]


def rows_in(folder: Path, format_: str, columns: str = "id, currency, amount, _period") -> list[tuple[Any, ...]]:
    """What an independent library for the format reads, and DuckDB from the files of the version."""
    names = columns.split(", ")
    if format_ == "delta":
        table = DeltaTable(folder).to_pyarrow_table()
    else:
        hint = (folder / "metadata" / "version-hint.text").read_text()
        table = StaticTable.from_metadata(f"file://{folder}/metadata/v{hint}.metadata.json").scan().to_arrow()
    told = sorted((tuple(row[name] for name in names) for row in table.to_pylist()), key=repr)
    files = files_of(folder, format_)
    if files:
        sql = f"SELECT {columns} FROM read_parquet(?, union_by_name = true, hive_partitioning = false)"
        assert sorted(duckdb.execute(sql, [files]).fetchall(), key=repr) == told
    return told


def commits(lake: Lake, folder: Path) -> list[Any]:
    """What the commits of a table say about the outputs that made them, oldest first."""
    if lake.format == "delta":
        history = DeltaTable(folder).history()
        return [json.loads(each["userMetadata"]) for each in reversed(history) if "userMetadata" in each]
    hint = (folder / "metadata" / "version-hint.text").read_text()
    snapshots = StaticTable.from_metadata(f"file://{folder}/metadata/v{hint}.metadata.json").snapshots()
    return [each.summary.additional_properties for each in snapshots if each.summary is not None]


def test_every_mode_is_one_commit_that_names_its_run(lake: Lake, table_spark: TableProcess, tmp_path: Path) -> None:
    shop = make_shop(tmp_path)
    folder = tmp_path / "reports" / "ledger"
    shop.project("add", write(lake.format, "append"))
    shop.project("renew", write(lake.format, "replace_period"))
    shop.project("merge", write(lake.format, "upsert", upsert_by=["id"]))
    shop.project("anew", write(lake.format, "overwrite"))
    january, february = (1, "EUR", Decimal("10.00"), "2026-01"), (3, "EUR", Decimal("30.00"), "2026-02")
    second = (2, "USD", Decimal("20.00"), "2026-01")
    runs = [completed(ran(table_spark, shop, "add")), completed(ran(table_spark, shop, "add", "2026-02"))]
    assert rows_in(folder, lake.format) == [january, second, february]
    orders(shop, "7,GBP,7.00,2026-01", "3,EUR,30.00,2026-02")
    runs.append(completed(ran(table_spark, shop, "renew")))
    seventh = (7, "GBP", Decimal("7.00"), "2026-01")
    assert rows_in(folder, lake.format) == [february, seventh]
    orders(shop, "7,GBP,8.00,2026-01", "9,EUR,9.00,2026-01")
    runs.append(completed(ran(table_spark, shop, "merge")))
    merged = [february, (7, "GBP", Decimal("8.00"), "2026-01"), (9, "EUR", Decimal("9.00"), "2026-01")]
    assert rows_in(folder, lake.format) == merged
    runs.append(completed(ran(table_spark, shop, "anew")))
    assert rows_in(folder, lake.format) == merged[1:]
    told = commits(lake, folder)
    name = "clew_run" if lake.format == "delta" else "clew.run"
    assert [each[name] for each in told] == [run.id for run in runs]
    assert [outcome["rows"] for run in runs for outcome in run.outputs] == [2, 1, 1, 2, 2]


def commit_again(spark: SparkSession, root: str, folder: str, mode: str) -> int:
    """Two workers commit the output of one step, the second because nobody heard of the first."""
    [step] = Workspace(Path(root)).plan(mode).outputs
    rows = spark.createDataFrame(
        [(1, "EUR", Decimal("1.00"), "2026-01")], "id LONG, currency STRING, amount DECIMAL(12,2), _period STRING"
    )
    for fence in (1, 2):
        place = LocalOutput(Path(folder), "ledger", OutputAttempt.of("run-1", step.seq, fence), lambda _run: True)
        lake = LakeOutputs("run-1", LocalStorage(Path(root) / "staged"), ["2026-01"])
        lake.stage(rows, step, place).publish()
    return sum(1 for path in (Path(root) / "staged").rglob("*.parquet"))


def test_a_retry_after_a_commit_that_nobody_heard_of_adds_nothing(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    shop = make_shop(tmp_path)
    for mode in ("append", "upsert"):
        more = {"upsert_by": ["id"]} if mode == "upsert" else {}
        shop.project(mode, write(lake.format, mode, **more))
        folder = tmp_path / "reports" / mode
        table_spark(run_into, str(tmp_path), mode, str(folder), lake.format)
        before = len(commits(lake, folder))
        assert table_spark(commit_again, str(tmp_path), str(folder), mode) == 0
        assert len(commits(lake, folder)) == before + 1
        assert [row[0] for row in rows_in(folder, lake.format)] == [1, 5]


_ONE_OR_BOTH = [["OutputConflict", "committed"], ["committed", "committed"]]


def commit_at_once(spark: SparkSession, root: str, folder: str, mode: str) -> list[str]:
    """Two workers have one step, since one has lost its lease: both find no commit of it before either has made one."""
    [step] = Workspace(Path(root)).plan(mode).outputs
    both, found = threading.Barrier(2), list[str]()
    looks = LakeCommit._is_committed
    waited = set[int]()

    def looked(commit: LakeCommit, table: str) -> bool:
        said = looks(commit, table)
        if threading.get_ident() not in waited:
            waited.add(threading.get_ident())
            both.wait(60)
        return said

    def commit(fence: int) -> None:
        rows = spark.newSession().createDataFrame(
            [(1, "EUR", Decimal("1.00"), "2026-01")], "id LONG, currency STRING, amount DECIMAL(12,2), _period STRING"
        )
        place = LocalOutput(Path(folder), "ledger", OutputAttempt.of("run-1", step.seq, fence), lambda _run: True)
        lake = LakeOutputs("run-1", LocalStorage(Path(root) / "staged"), ["2026-01"])
        try:
            lake.stage(rows, step, place).publish()
            found.append("committed")
        except UserError as error:
            found.append(error.code)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LakeCommit, "_is_committed", looked)
        threads = [threading.Thread(target=commit, args=(fence,)) for fence in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return found


@pytest.mark.parametrize("mode", ["overwrite", "replace_period", "upsert"])
def test_a_worker_that_was_overtaken_before_its_commit_adds_nothing(
    mode: str, table_spark: TableProcess, tmp_path: Path
) -> None:
    """Iceberg does not know runs and steps, as Delta does, so that two commits of one step can come at once."""
    table_jars.require("iceberg")
    shop = make_shop(tmp_path)
    folder = tmp_path / "reports" / mode
    shop.project("first", write("iceberg", "append"))
    shop.project(mode, write("iceberg", mode, **({"upsert_by": ["id"]} if mode == "upsert" else {})))
    table_spark(run_into, str(tmp_path), "first", str(folder), "iceberg")
    found = table_spark(commit_at_once, str(tmp_path), str(folder), mode)
    # Which of two merges comes first makes no difference, and both may have been let through, one after the other.
    assert sorted(found) in ([["OutputConflict", "committed"]] if mode == "overwrite" else _ONE_OR_BOTH)
    ids = [row[0] for row in rows_in(folder, "iceberg")]
    assert ids == ([1] if mode in {"overwrite", "replace_period"} else [1, 5])


def run_into(spark: SparkSession, root: str, mode: str, folder: str, format_: str) -> None:
    """A table with a row that was there before."""
    [step] = Workspace(Path(root)).plan(mode).outputs
    rows = spark.createDataFrame(
        [(5, "EUR", Decimal("1.00"), "2026-01")], "id LONG, currency STRING, amount DECIMAL(12,2), _period STRING"
    )
    place = LocalOutput(Path(folder), "ledger", OutputAttempt.of("run-0", step.seq, 1), lambda _run: True)
    LakeOutputs("run-0", LocalStorage(Path(root) / "staged"), ["2026-01"]).stage(rows, step, place).publish()


def run_at_once(spark: SparkSession, root: str, periods: list[str]) -> list[str]:
    """Runs of a project for several periods at the same time."""
    found = list[str]()
    threads = [
        threading.Thread(target=lambda each=each: found.append(run_project(spark, root, "p", each))) for each in periods
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_two_runs_that_write_one_table_at_once_both_count(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    shop = make_shop(tmp_path).project("p", write(lake.format, "append"))
    completed(ran(table_spark, shop))
    runs = [
        Workspace(tmp_path).get_run(each) for each in table_spark(run_at_once, str(tmp_path), ["2026-01", "2026-02"])
    ]
    assert [completed(run).status for run in runs] == ["COMPLETED", "COMPLETED"]
    assert [row[0] for row in rows_in(tmp_path / "reports" / "ledger", lake.format)] == [1, 1, 2, 2, 3]


@pytest.mark.parametrize("mode", ["replace_period", "upsert"])
def test_two_runs_that_replace_the_same_rows_at_once_leave_each_row_once(
    mode: str, lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    """Both may count, or one is refused by name and counts when it is retried."""
    keys: dict[str, Any] = {"upsert_by": ["id"]} if mode == "upsert" else {}
    shop = make_shop(tmp_path).project("p", write(lake.format, mode, **keys))
    completed(ran(table_spark, shop))
    ids = table_spark(run_at_once, str(tmp_path), ["2026-01", "2026-01"])
    runs = [Workspace(tmp_path).get_run(each) for each in ids]
    refused = [run for run in runs if run.error is not None]
    assert len(refused) < 2
    assert {run.error.code for run in refused if run.error is not None} <= {"OutputConflict"}
    for run in refused:
        assert table_spark(retry_write, str(tmp_path), run.id) == "COMPLETED"
    assert [row[0] for row in rows_in(tmp_path / "reports" / "ledger", lake.format)] == [1, 2]


def retry_write(spark: SparkSession, root: str, run_id: str) -> str:
    del spark
    shop = Shop(Path(root))
    with shop.starter() as starter:
        view = RunReader(starter.state, starter.environment).view(run_id)
    return str(shop.retry(view, 20).record.status)


def test_new_columns_are_refused_or_added_as_the_output_says(
    lake: Lake, table_spark: TableProcess, tmp_path: Path
) -> None:
    shop = make_shop(tmp_path)
    folder = tmp_path / "reports" / "ledger"
    shop.project("narrow", write(lake.format, "append", ["id", "_period"]))
    shop.project("wide", write(lake.format, "append"))
    shop.project("widening", write(lake.format, "append", new_columns="add"))
    completed(ran(table_spark, shop, "narrow"))
    refused = ran(table_spark, shop, "wide", "2026-02")
    assert refused.error is not None
    assert refused.error.code == "OutputConflict"
    assert "reports/ledger" in refused.error.message
    assert rows_in(folder, lake.format, "id, _period") == [(1, "2026-01"), (2, "2026-01")]
    completed(ran(table_spark, shop, "widening", "2026-02"))
    assert rows_in(folder, lake.format) == [
        (1, None, None, "2026-01"),
        (2, None, None, "2026-01"),
        (3, "EUR", Decimal("30.00"), "2026-02"),
    ]


def test_one_format_in_and_the_other_out_and_back(table_spark: TableProcess, tmp_path: Path) -> None:
    """The second project explains its rows by the version of the table that the first has written."""
    table_jars.require("delta", "iceberg")
    lake = Lake(table_spark, table_spark.folder / "warehouse", "delta")
    lake.create().sql("INSERT INTO {t} VALUES (1, 'EUR', 10.00, '2026-01'), (2, 'USD', 20.00, '2026-01')")
    double = {
        "seq": 10,
        "name": "Double",
        "type": "update",
        "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
    }
    strategy = {"type": "path", "datasource_id": "reports", "path": "ledger", "format": "iceberg"}
    shop = lake.shop(tmp_path).project("first", double, write("iceberg", "append"))
    back = write("delta", "overwrite")
    back["arguments"]["destination"]["path"] = "back"
    shop.write(
        {
            "datasets/ledger.yaml": {**SHOP["datasets/orders.yaml"], "id": "ledger", "resolver_id": "ledger"},
            "resolvers/ledger.yaml": {"id": "ledger", "rules": [{"name": "a", "strategy": strategy}]},
        }
    ).project("second", double, back, dataset="ledger")
    first = completed(ran(table_spark, shop, "first"))
    second = completed(ran(table_spark, shop, "second"))
    assert rows_in(tmp_path / "reports" / "back", "delta") == [
        (1, "EUR", Decimal("40.00"), "2026-01"),
        (2, "USD", Decimal("80.00"), "2026-01"),
    ]
    completed(ran(table_spark, shop, "first"))
    [row] = second.trace(where="id = 2").rows
    told = second.explain(row.row_id, "amount").to_text()
    assert "ledger snapshot " in told
    assert "amount = 80.00" in told
    assert f"in first, 2026-01, run {first.id[:8]}, row 2: amount = 40.00" in told
    assert "amount = 20.00  loaded, orders, orders version 1: " in told
    Workspace(tmp_path).get_run(first.id).remove(force=True)
    assert "in first" not in second.explain(row.row_id, "amount").to_text()
