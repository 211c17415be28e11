"""Metadata of tables, against tables that other programs have written, and what these say about them."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType
from pyroaring import BitMap64

from clew.diagnostics import UserError
from clew.storage.committed import sources_of
from clew.storage.local import LocalStorage
from clew.storage.parts import FileView, Part, PartFile, ViewColumn, part_from_json, part_to_json
from clew.storage.tables.roaring import positions_of
from clew.storage.tables.table_places import TablePlace
from clew.storage.tables.table_snapshot import TableProblem, TableSnapshot, UnsupportedTable
from clew.storage.tables.table_versions import LocatedTable, option_then, read_snapshot
from tests.tiers import examples


def place(folder: Path) -> TablePlace:
    return TablePlace(LocalStorage(folder), str(folder))


def rows_of(snapshot: TableSnapshot, *columns: str) -> list[tuple[object, ...]]:
    """The rows, read by hand from the files that a snapshot lists."""
    found = list[tuple[object, ...]]()
    for file in snapshot.files:
        assert Path(file.address).stat().st_size == file.size
        table = pq.read_table(file.address, partitioning=None)
        deleted = set(file.deleted() if file.deleted else ())
        by_name = {column.name: column for column in snapshot.columns}
        for position, row in enumerate(table.to_pylist()):
            if position not in deleted:
                values = (row.get(by_name[name].stored, file.values.get(name)) for name in columns)
                found.append(tuple(values))
    return sorted(found, key=repr)


NUMBERS = st.sets(st.integers(0, 200_000) | st.integers(0, 2**40), max_size=300)
RUNS = st.lists(st.tuples(st.integers(0, 300_000), st.integers(1, 9_000)), max_size=4)


@given(NUMBERS, RUNS, st.booleans())
@settings(max_examples=examples(150))
def test_a_deletion_vector_has_the_positions_that_another_library_put_into_it(
    numbers: set[int], runs: list[tuple[int, int]], optimised: bool
) -> None:
    bitmap = BitMap64(numbers)
    for start, length in runs:
        bitmap |= BitMap64(range(start, start + length))
    if optimised:
        bitmap.run_optimize()
    assert positions_of(bitmap.serialize()) == list(bitmap)


@pytest.mark.parametrize("cut", [0, 3, 9, 14, 20])
def test_a_deletion_vector_that_is_cut_short_is_refused(cut: int) -> None:
    with pytest.raises(ValueError, match=r"cut short|no roaring bitmap"):
        positions_of(BitMap64(range(0, 10_000, 3)).serialize()[:cut])


# Delta


def lines(first: int, count: int, period: str) -> pa.Table:
    return pa.table({"id": range(first, first + count), "_period": [period] * count})


def test_every_version_of_a_delta_table_has_the_files_and_rows_that_its_own_library_sees(tmp_path: Path) -> None:
    folder = tmp_path / "a table"
    for number in range(12):
        write_deltalake(
            folder, lines(number * 10, 3, f"2026-{number % 3 + 1:02}"), mode="append", partition_by=["_period"]
        )
    DeltaTable(folder).delete("id >= 50 AND id < 70")
    DeltaTable(folder).create_checkpoint()
    write_deltalake(folder, lines(900, 2, "2026-01"), mode="append")
    for version in (0, 5, 11, 12, 13):
        known = DeltaTable(folder, version=version)
        found = read_snapshot(place(folder), "delta", {"versionAsOf": str(version)})
        assert found.version == version
        assert found.table_id == str(known.metadata().id)
        expected = known.to_pyarrow_table().select(["id", "_period"]).to_pylist()
        assert rows_of(found, "id", "_period") == sorted(((row["id"], row["_period"]) for row in expected), key=repr)
    assert read_snapshot(place(folder), "delta", {}).version == 13


def test_a_checkpoint_stands_for_the_commits_before_it(tmp_path: Path) -> None:
    for number in range(4):
        write_deltalake(tmp_path, lines(number, 1, "2026-01"), mode="append")
    DeltaTable(tmp_path).create_checkpoint()
    for name in ("0", "1", "2"):
        (tmp_path / "_delta_log" / f"{name:0>20}.json").unlink()
    assert rows_of(read_snapshot(place(tmp_path), "delta", {}), "id") == [(0,), (1,), (2,), (3,)]
    with pytest.raises(TableProblem, match="version 1 can no longer be read: the log has lost version 0"):
        read_snapshot(place(tmp_path), "delta", {"versionAsOf": "1"})
    with pytest.raises(TableProblem, match="it has no version 9; its newest is version 3"):
        read_snapshot(place(tmp_path), "delta", {"versionAsOf": "9"})


def test_a_feature_of_delta_that_readers_must_know_and_we_do_not_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path, lines(0, 1, "2026-01"))
    log = tmp_path / "_delta_log" / f"{0:020}.json"
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["newThing"], "writerFeatures": []}
    actions = [json.loads(line) for line in log.read_text().splitlines()]
    changed = [{"protocol": features} if "protocol" in action else action for action in actions]
    log.write_text("\n".join(map(json.dumps, changed)))
    with pytest.raises(UnsupportedTable, match="newThing"):
        read_snapshot(place(tmp_path), "delta", {})


def test_the_version_of_then_is_told_by_the_times_of_commits(tmp_path: Path) -> None:
    for number in range(3):
        write_deltalake(tmp_path, lines(number, 1, "2026-01"), mode="append")
        log = tmp_path / "_delta_log" / f"{number:020}.json"
        actions = [json.loads(line) for line in log.read_text().splitlines()]
        for action in actions:
            if "commitInfo" in action:
                action["commitInfo"]["timestamp"] = round(hour(number).timestamp() * 1000)
        log.write_text("\n".join(map(json.dumps, actions)))
    table = LocatedTable(place(tmp_path), "orders", "delta")
    expected = {hour(0): 0, hour(0.5): 0, hour(1): 1, hour(1.9): 1, hour(9): 2}
    assert {at: option_then(table, at) for at in expected} == {
        at: {"versionAsOf": str(version)} for at, version in expected.items()
    }
    with pytest.raises(TableProblem, match="it did not exist at that time"):
        option_then(table, hour(-1))
    (tmp_path / "_delta_log" / f"{0:020}.json").unlink()
    with pytest.raises(TableProblem, match="its log goes back to version 1, which was committed later"):
        option_then(table, hour(0.5))


def hour(number: float) -> datetime:
    return datetime(2026, 2, 1, tzinfo=UTC) + timedelta(hours=number)


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_a_folder_that_is_no_table_is_told(tmp_path: Path, format_: str) -> None:
    with pytest.raises(TableProblem, match=r"it is not an? (Delta|Iceberg) table"):
        read_snapshot(place(tmp_path), format_, {})  # type: ignore[arg-type]


def test_a_damaged_log_is_told_without_a_stack_trace(tmp_path: Path) -> None:
    write_deltalake(tmp_path, lines(0, 1, "2026-01"))
    (tmp_path / "_delta_log" / f"{0:020}.json").write_text('{"add": {"path"')
    with pytest.raises(TableProblem, match="its metadata is damaged"):
        read_snapshot(place(tmp_path), "delta", {})


# Iceberg


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    folder = tmp_path / "warehouse"
    folder.mkdir()
    found = load_catalog("here", type="sql", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{folder}")
    found.create_namespace("shop")
    return found


def metadata_of(table: Table) -> tuple[TablePlace, str]:
    folder = Path(table.location().removeprefix("file://"))
    return place(folder), table.metadata_location.removeprefix("file://")


def test_every_snapshot_of_an_iceberg_table_has_the_rows_that_its_own_library_sees(catalog: Catalog) -> None:
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "note", StringType()))
    table = catalog.create_table("shop.orders", schema)
    arrow = pa.schema([("id", pa.int64()), ("note", pa.string())])
    for number in range(3):
        table.append(pa.table({"id": [number, number + 10], "note": ["a", None]}, schema=arrow))
    table.delete("id = 11")
    where, metadata = metadata_of(table)
    for snapshot in table.snapshots():
        found = read_snapshot(where, "iceberg", {"snapshot-id": str(snapshot.snapshot_id)}, metadata)
        expected = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().to_pylist()
        assert rows_of(found, "id", "note") == sorted(((row["id"], row["note"]) for row in expected), key=repr)
    newest = read_snapshot(where, "iceberg", {}, metadata)
    current = table.current_snapshot()
    assert current is not None
    assert newest.version == current.snapshot_id
    assert newest.table_id == str(table.metadata.table_uuid)
    assert [column.field_id for column in newest.columns] == [1, 2]


def test_the_snapshot_of_then_is_told_by_the_log_of_the_table(catalog: Catalog) -> None:
    table = catalog.create_table("shop.orders", Schema(NestedField(1, "id", LongType())))
    for number in range(2):
        table.append(pa.table({"id": pa.array([number], pa.int64())}))
    where, metadata = metadata_of(table)
    located = LocatedTable(where, "orders", "iceberg", metadata)
    for entry in table.history():
        at = datetime.fromtimestamp(entry.timestamp_ms / 1000, UTC)
        assert option_then(located, at) == {"snapshot-id": str(entry.snapshot_id)}
    with pytest.raises(TableProblem, match="it had no snapshot at that time"):
        option_then(located, hour(-1000000))


def test_an_iceberg_table_without_rows_has_no_files(catalog: Catalog) -> None:
    table = catalog.create_table("shop.empty", Schema(NestedField(1, "id", LongType())))
    assert read_snapshot(*_with_format(table)).files == ()


def _with_format(table: Table) -> tuple[TablePlace, Literal["iceberg"], dict[str, str], str]:
    where, metadata = metadata_of(table)
    return where, "iceberg", {}, metadata


def test_an_iceberg_table_of_a_catalog_is_not_guessed_by_its_folder(catalog: Catalog) -> None:
    table = catalog.create_table("shop.orders", Schema(NestedField(1, "id", LongType())))
    with pytest.raises(TableProblem, match="known to a catalog only"):
        read_snapshot(metadata_of(table)[0], "iceberg", {})


def test_an_unknown_snapshot_and_an_unknown_tag_are_told(catalog: Catalog) -> None:
    table = catalog.create_table("shop.orders", Schema(NestedField(1, "id", LongType())))
    table.append(pa.table({"id": pa.array([1], pa.int64())}))
    where, metadata = metadata_of(table)
    with pytest.raises(TableProblem, match="it has no snapshot 17"):
        read_snapshot(where, "iceberg", {"snapshot-id": "17"}, metadata)
    with pytest.raises(TableProblem, match='it has no branch or tag "month-end"'):
        read_snapshot(where, "iceberg", {"tag": "month-end"}, metadata)
    with pytest.raises(UnsupportedTable, match="as-of-timestamp"):
        read_snapshot(where, "iceberg", {"as-of-timestamp": "17"}, metadata)


@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ({"pinned": "version"}, "orders version 3"),
        ({"pinned": "copy", "reason": "the environment says so"}, "orders version 3, copied: the environment says so"),
        (
            {"pinned": "version", "retention": "VACUUM may delete files of version 3"},
            "orders version 3; VACUUM may delete files of version 3",
        ),
    ],
)
def test_a_pinned_table_says_which_version_it_is_and_what_to_know_about_it(
    details: dict[str, str], expected: str
) -> None:
    part = Part("input", "orders", (), (), details={"sources": "orders version 3", "format": "delta", **details})
    assert sources_of(part) == expected


def test_a_part_that_names_files_of_a_table_survives_json() -> None:
    columns = (ViewColumn("id", "bigint", "col-1"), ViewColumn("_period", "string", None, "2026-01"))
    view = FileView("orders version 3", "/lake/orders", columns)
    excluded = PartFile("runs/r/input/orders/a/excluded.parquet", 2, 300, "ab" * 32)
    files = tuple(
        PartFile(f"/lake/orders/{number}.parquet", 9, 99, "", number, view=view, skipped=1, first_row_id=number * 9)
        for number in range(2)
    )
    part = Part("input", "orders", files, (("id", "integer"),), excluded=excluded)
    data = json.loads(json.dumps(part_to_json(part)))
    assert len(data["views"]) == 1
    assert part_from_json(data, "part.json") == part
    assert part.counted == 16
    assert files[1].shown == "orders version 3: 1.parquet"
    data["files"][0]["view"] = 7
    with pytest.raises(UserError, match="DamagedTrace"):
        part_from_json(data, "part.json")
