"""A table of ten thousand small files is pinned by its metadata and footers, without Spark."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.schema import Schema
from pyiceberg.typedef import Record
from pyiceberg.types import LongType, NestedField, StringType

from clew.definitions import FilesDatasource
from clew.definitions.datasource import FilesOptions
from clew.engine.loading import PinRequest
from clew.engine.loading.table_inputs import TableInput, find_tables, table_at_path, table_input
from clew.plan.resolution import ResolvedSource
from clew.storage.drafts import draft
from clew.storage.roots import storage_at
from tests.engine.loading_requests import PERIODS, period, use

MANY = 10_000


def delta_table(folder: Path, periods: tuple[str, ...]) -> None:
    """A partition for each period, with so many files in all."""
    (folder / "_delta_log").mkdir(parents=True)
    one = folder / "one.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2, 3], pa.int64())}), one)
    fields = [{"name": name, "type": type_, "nullable": True, "metadata": {}} for name, type_ in SCHEMA]
    schema = json.dumps({"type": "struct", "fields": fields})
    table = {"id": "t", "format": {"provider": "parquet"}, "schemaString": schema, "partitionColumns": ["_period"]}
    actions: list[dict[str, object]] = [
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {**table, "configuration": {}}},
    ]
    for number in range(MANY):
        path = f"part-{number:05}.parquet"
        (folder / path).hardlink_to(one)
        of = {"_period": periods[number % len(periods)]}
        added = {"path": path, "partitionValues": of, "size": one.stat().st_size, "dataChange": True}
        actions.append({"add": {**added, "modificationTime": 0}})
    log = folder / "_delta_log" / f"{0:020}.json"
    log.write_text("\n".join(map(json.dumps, actions)), encoding="utf-8")


SCHEMA = (("id", "long"), ("_period", "string"))


def iceberg_table(lake: Path) -> str:
    """A table with one manifest that lists so many files; gives the path of its metadata below the lake."""
    lake.mkdir()
    catalog = load_catalog("here", type="sql", uri=f"sqlite:///{lake}/catalog.db", warehouse=f"file://{lake}")
    catalog.create_namespace("shop")
    schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "_period", StringType()))
    table = catalog.create_table("shop.orders", schema, location=f"file://{lake}/orders")
    types = [pa.field("id", pa.int64(), metadata=number(1)), pa.field("_period", pa.string(), metadata=number(2))]
    one = lake / "orders" / "one.parquet"
    pq.write_table(pa.table([[1, 2, 3], ["2026-01"] * 3], schema=pa.schema(types)), one)
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        for index in range(MANY):
            path = lake / "orders" / f"part-{index:05}.parquet"
            path.hardlink_to(one)
            file = DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=f"file://{path}",
                file_format=FileFormat.PARQUET,
                partition=Record(),
                record_count=3,
                file_size_in_bytes=one.stat().st_size,
            )
            file.spec_id = 0
            update.append_data_file(file)
    return table.metadata_location.removeprefix(f"file://{lake}/")


def number(field_id: int) -> dict[str, str]:
    return {"PARQUET:field_id": str(field_id)}


@pytest.mark.parametrize("format_", ["delta", "iceberg"])
def test_ten_thousand_files_are_looked_at_once_and_copied_for_the_sake_of_questions(
    format_: str, tmp_path: Path
) -> None:
    if format_ == "delta":
        delta_table(tmp_path / "lake" / "orders", ("2026-01",))
        found = looked_at(tmp_path)
    else:
        metadata = iceberg_table(tmp_path / "lake")
        found = looked_at(tmp_path, metadata, "iceberg")
    assert len(found.files) == MANY
    assert sum(file.rows for file in found.files) == 3 * MANY
    assert [file.ordinal for file in found.files] == list(range(7, 7 + MANY))
    assert found.reason_to_copy == "it has 10,000 files, and a question about its rows would look into each of them"
    assert found.is_tied == (format_ == "delta")


def test_files_of_other_periods_are_not_opened(tmp_path: Path) -> None:
    """Those of nineteen periods could not be read: they are gone."""
    others = tuple(f"{year}-{month:02}" for year in (2024, 2025) for month in range(1, 13))[:19]
    delta_table(tmp_path / "lake" / "orders", ("2026-01", *others))
    for number in range(MANY):
        if number % 20:
            (tmp_path / "lake" / "orders" / f"part-{number:05}.parquet").unlink()
    found = looked_at(tmp_path)
    assert len(found.files) == MANY // 20
    assert found.reason_to_copy is None


def looked_at(root: Path, path: str = "orders", format_: str = "delta") -> TableInput:
    source = ResolvedSource("lake", "path", path, "the rule", "2026-01", False, format_, {})
    options = FilesOptions(root=str(root / "lake"))
    request = PinRequest(
        use=use("id integer", "period"),
        sources=(source,),
        datasources={"lake": FilesDatasource(id="lake", name="lake", type="files", options=options)},
        workspace_root=root,
        storage_root=storage_at(root / "storage"),
        run_id="run-1",
        period=period("2026-01"),
        periods=PERIODS,
        first_file_ordinal=7,
        secrets=str,
    )
    tables = find_tables(request, lambda each: table_at_path(request, each))
    return table_input(request, tables, draft(request.storage_root, "runs/run-1/input/things"))
