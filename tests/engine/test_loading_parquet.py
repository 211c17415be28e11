import gzip
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc
from pyspark.sql import SparkSession

from clew.diagnostics import UserError
from tests.engine.loading_requests import Bench, path_source, use

OF = use("id integer!; amount decimal(18,2); name string; day date; at timestamp")


@pytest.fixture
def bench(spark: SparkSession, tmp_path: Path) -> Bench:
    return Bench(spark, tmp_path)


def table(first: int = 1, rows: int = 3, **columns: pa.Array) -> pa.Table:
    ids = range(first, first + rows)
    day = date(2026, 1, 1)
    values = {
        "id": pa.array(ids, pa.int32()),
        "amount": pa.array([Decimal(number) / 4 for number in ids], pa.decimal128(12, 2)),
        "name": pa.array([f"n{number}" for number in ids]).dictionary_encode(),
        "day": pa.array([day] * rows, pa.date32()),
        "at": pa.array([datetime.fromisoformat("2026-01-01T10:00+00:00")] * rows, pa.timestamp("us", "UTC")),
    }
    return pa.table({**values, **columns})


def write(bench: Bench, name: str, content: pa.Table, **options: object) -> Path:
    path = bench.data / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(content, path, **options)
    return path


def test_rows_keep_their_position_through_row_groups_and_files(bench: Bench) -> None:
    write(bench, "a b%.parquet", table(1, 5000), row_group_size=700)
    write(bench, "é/b.parquet", table(1, 20, id=pa.array(range(1, 21), pa.int64())))
    write(bench, "é/c.parquet", table(1, 3))
    pinned = bench.pin(OF, path_source("**/*.parquet", "parquet"))
    rows = bench.rows(pinned, "__source_file", "__source_line", "id", "amount", "name", "at")
    assert len(rows) == 5023
    assert {row[0] for row in rows} == {"a b%.parquet", "é/b.parquet", "é/c.parquet"}
    at = datetime.fromisoformat("2026-01-01T10:00")
    assert all(row[1:] == (row[2], row[2], Decimal(str(row[2])) / 4, f"n{row[2]}", at) for row in rows)


def test_types_are_widened_and_other_columns_left_alone(bench: Bench) -> None:
    write(bench, "a.parquet", table(1, 1, amount=pa.array([0.25]), extra=pa.array([[1]])))
    pinned = bench.pin(OF, path_source("a.parquet", "parquet"))
    assert bench.placed(pinned, "id", "amount") == [("a.parquet", 1, 1, Decimal("0.25"))]
    assert (pinned.rows_read, pinned.rows_loaded) == (1, 1)


def test_digits_that_would_be_lost_are_refused_with_their_row(bench: Bench) -> None:
    write(bench, "a.parquet", table(1, 2, amount=pa.array([Decimal("1.250"), Decimal("1.255")], pa.decimal128(9, 3))))
    message = bench.problem(OF, path_source("a.parquet", "parquet"))
    assert 'column "amount" of "things": "1.255" is not a decimal(18,2), in a.parquet, row 2' in message


def test_a_column_of_another_type_is_refused(bench: Bench) -> None:
    write(bench, "a.parquet", table())
    write(bench, "b.parquet", table(amount=pa.array(["1", "2", "3"])))
    message = bench.problem(OF, path_source("*.parquet", "parquet"))
    assert message == 'column "amount" of b.parquet is string, but decimal(18,2) in "things"'


def test_nanoseconds_are_refused_by_name(bench: Bench) -> None:
    write(bench, "a.parquet", table(1, 1, at=pa.array([0], pa.timestamp("ns"))))
    assert "timestamp[ns]" in bench.problem(OF, path_source("a.parquet", "parquet"))


def test_a_missing_column_is_refused(bench: Bench) -> None:
    write(bench, "a.parquet", table().rename_columns(["id", "amuont", "name", "day", "at"]))
    assert 'a.parquet has no column "amount"' in bench.problem(OF, path_source("a.parquet", "parquet"))


def test_a_missing_value_where_there_must_be_one_is_refused(bench: Bench) -> None:
    write(bench, "a.parquet", table(1, 2, id=pa.array([1, None])))
    message = bench.problem(OF, path_source("a.parquet", "parquet"))
    assert message == 'column "id" of "things" must not be empty, but is in a.parquet, row 2'


@pytest.mark.parametrize("content", [b"", b"id,amount\n1,2\n", b"PAR1 and so on PAR1"])
def test_what_is_no_parquet_file_is_named(bench: Bench, content: bytes) -> None:
    write(bench, "a.parquet", table())
    bench.write("b.parquet", content)
    message = bench.problem(OF, path_source("*.parquet", "parquet"), code="SourceUnavailable")
    assert message == "b.parquet is not a Parquet file, or is cut short"


def test_a_text_file_that_is_read_as_parquet_says_which_format_it_has(bench: Bench) -> None:
    bench.write("a.csv.gz", gzip.compress(b"id,amount\n1,2\n"))
    with pytest.raises(UserError) as caught:
        bench.pin(OF, path_source("a.csv.gz", "parquet"))
    assert caught.value.diagnostic.hint == "set `format: csv` in the rule"


def test_a_file_that_is_cut_short_is_named(bench: Bench) -> None:
    path = write(bench, "a.parquet", table(1, 1000))
    path.write_bytes(path.read_bytes()[:-100])
    assert "a.parquet" in bench.problem(OF, path_source("a.parquet", "parquet"), code="SourceUnavailable")


def test_a_file_with_damaged_pages_is_named(bench: Bench) -> None:
    path = write(bench, "a.parquet", table(1, 1000), compression="zstd")
    content = bytearray(path.read_bytes())
    content[4:2000] = b"\xff" * 1996
    path.write_bytes(content)
    message = bench.problem(OF, path_source("a.parquet", "parquet"), code="SourceUnavailable")
    assert "a.parquet cannot be read: it is damaged or cut short" in message


def test_a_file_that_vanishes_while_it_is_read_is_named(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(bench, "a.parquet", table())
    read_schema = pq.read_schema

    def read_and_remove(where: Path) -> pa.Schema:
        schema = read_schema(where)
        path.unlink()
        return schema

    monkeypatch.setattr(pq, "read_schema", read_and_remove)
    message = bench.problem(OF, path_source("a.parquet", "parquet"), code="SourceUnavailable")
    assert "a.parquet no longer exists" in message


def test_an_empty_file_has_no_rows(bench: Bench) -> None:
    write(bench, "a.parquet", table(1, 0))
    pinned = bench.pin(OF, path_source("a.parquet", "parquet"))
    assert (pinned.rows_read, pinned.part.files) == (0, ())


def test_other_formats_of_spark_are_read_by_name(bench: Bench) -> None:
    orc.write_table(pa.table({"id": [1, 2], "name": ["x", "y"]}), bench.data / "a.orc")
    pinned = bench.pin(use("id integer; name string"), path_source("a.orc", "orc"))
    assert bench.placed(pinned, "id", "name") == [("a.orc", None, 1, "x"), ("a.orc", None, 2, "y")]


def test_a_format_that_spark_does_not_know_is_named(bench: Bench) -> None:
    bench.write("a.xyz", "x")
    assert "as xyz" in bench.problem(OF, path_source("a.xyz", "xyz"), code="SourceUnavailable")
