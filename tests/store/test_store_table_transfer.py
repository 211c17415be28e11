import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import psycopg
import pyarrow as pa
import pytest

from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.lang.types import parse_type
from clew.plan.datasets import TableAddress
from clew.store.table_transfer import PostgresqlTables

TABLES = PostgresqlTables()
COLUMNS = [("id", parse_type("integer")), ("amount", parse_type("decimal(10,2)")), ("name", parse_type("string"))]


@pytest.fixture
def connection(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as opened:
        yield opened


def address(url: str, table: str = "things", password: str | None = None) -> TableAddress:
    return TableAddress(url, None, table, password)


def read(url: str, *columns: str, where: tuple[str, list[str]] | None = None) -> list[tuple[object, ...]]:
    batches = TABLES.read(address(url), columns, where)
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def batch(*rows: tuple[int, str | None, str | None]) -> pa.RecordBatch:
    ids, amounts, names = zip(*rows, strict=True)
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "amount": pa.array([None if text is None else Decimal(text) for text in amounts], pa.decimal128(10, 2)),
            "name": pa.array(names, pa.string()),
        }
    )


def test_values_arrive_as_the_texts_that_loading_reads(postgres_url: str, connection: psycopg.Connection) -> None:
    connection.execute(
        """CREATE TABLE things AS SELECT 1 AS id, 12.50::numeric(10,2) AS n, true AS b, date '2026-01-31' AS d,
        timestamp '2026-01-31 10:20:30.5' AS t, timestamptz '2026-01-31 10:00+02' AS z, 1e20::float8 AS f,
        'a "q", b' || chr(10) || 'c' AS s, '' AS e, NULL::text AS missing"""
    )
    assert TABLES.columns(address(postgres_url)) == ("id", "n", "b", "d", "t", "z", "f", "s", "e", "missing")
    assert read(postgres_url, "id", "n", "b", "d", "t") == [
        ("1", "12.50", "true", "2026-01-31", "2026-01-31 10:20:30.5")
    ]
    assert read(postgres_url, "z", "f", "s", "e", "missing") == [
        ("2026-01-31 08:00:00+00", "1e+20", 'a "q", b\nc', "", None)
    ]


def test_only_the_rows_asked_for_are_sent(postgres_url: str, connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE things AS SELECT n AS id, 'p' || n % 3 AS p FROM generate_series(1, 9) n")
    assert sorted(read(postgres_url, "id", where=("p", ["p1", "p2", "it's"]))) == [
        (str(n),) for n in (1, 2, 4, 5, 7, 8)
    ]
    assert read(postgres_url, "id", where=("p", ["none"])) == []


def test_large_tables_come_in_bounded_batches(postgres_url: str, connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE things AS SELECT n AS id, repeat('x', 100) AS s FROM generate_series(1, 150000) n")
    sizes = [each.num_rows for each in TABLES.read(address(postgres_url), ["id", "s"], None)]
    assert sum(sizes) == 150_000
    assert len(sizes) > 2


def test_a_reader_that_stops_early_leaves_no_connection(postgres_url: str, connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE things AS SELECT n AS id, repeat('x', 100) AS s FROM generate_series(1, 150000) n")
    rows = TABLES.read(address(postgres_url), ["id", "s"], None)
    next(rows)
    rows.close()  # type: ignore[attr-defined]
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'clew' AND query LIKE 'COPY%things%'"
    deadline = time.monotonic() + 10
    while connection.execute(count).fetchone() != (0,) and time.monotonic() < deadline:
        connection.execute("SELECT pg_sleep(0.05), pg_stat_clear_snapshot()")
    assert connection.execute(count).fetchone() == (0,)


def test_a_table_is_created_and_replaced(postgres_url: str, connection: psycopg.Connection) -> None:
    there = address(postgres_url)
    first = [batch((1, "1.10", "x"), (2, None, None)), batch((3, "0.00", ""))]
    assert TABLES.write(there, COLUMNS, first, mode="overwrite", once="run-1/1") == 3
    assert connection.execute("SELECT * FROM things ORDER BY id").fetchall() == [
        (1, Decimal("1.10"), "x"),
        (2, None, None),
        (3, Decimal("0.00"), ""),
    ]
    TABLES.write(there, COLUMNS, [batch((4, "4.00", "y"))], mode="overwrite", once="run-2/1")
    assert connection.execute("SELECT id FROM things").fetchall() == [(4,)]


def test_a_retry_appends_nothing_twice(postgres_url: str, connection: psycopg.Connection) -> None:
    for once in ("run-1/1", "run-1/1", "run-2/1"):
        assert TABLES.write(address(postgres_url), COLUMNS, [batch((1, "1", "x"))], mode="append", once=once) == 1
    assert connection.execute("SELECT count(*) FROM things").fetchone() == (2,)


def test_a_write_that_fails_changes_nothing(postgres_url: str, connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE things (id bigint PRIMARY KEY, amount numeric, name text)")
    connection.execute("INSERT INTO things VALUES (9, 9, 'old')")
    rows = [batch((1, "1", "x")), batch((1, "1", "x"))]
    with pytest.raises(UserError) as caught:
        TABLES.write(address(postgres_url), COLUMNS, rows, mode="overwrite", once="run-1/1")
    assert caught.value.code == "SourceUnavailable"
    assert connection.execute("SELECT id FROM things").fetchall() == [(9,)]


def _failure(of: TableAddress) -> ClewError:
    with pytest.raises(ClewError) as caught:
        TABLES.columns(of)
    assert caught.value.code == "SourceUnavailable"
    assert "\n" not in caught.value.diagnostic.message
    assert "hunter2" not in str(caught.value) + repr(of)
    return caught.value


def test_a_value_that_the_table_refuses_is_not_quoted(postgres_url: str, connection: psycopg.Connection) -> None:
    connection.execute("CREATE TABLE things (id integer, amount numeric, name integer)")
    with pytest.raises(UserError) as error:
        TABLES.write(address(postgres_url), COLUMNS, [batch((1, "1.00", "QXPERS"))], mode="append", once="r/1")
    assert 'invalid input syntax for type integer: "…"' in error.value.diagnostic.message
    assert "QXPERS" not in error.value.diagnostic.message


def test_a_table_that_is_not_there_is_the_users_error(postgres_url: str) -> None:
    error = _failure(address(postgres_url, "nothing", "hunter2"))
    assert isinstance(error, UserError)
    assert "nothing" in error.diagnostic.message


def test_a_server_that_is_not_there_may_come_back(tmp_path: object) -> None:
    error = _failure(address(f"postgresql://x@/db?host={tmp_path}", password="hunter2"))
    assert isinstance(error, TransientFailure)


def test_a_wrong_password_is_the_users_error(postgres_url: str, connection: psycopg.Connection) -> None:
    role, hba = connection.execute("SELECT 't' || md5(random()::text), current_setting('hba_file')").fetchone() or (
        "",
        "",
    )
    connection.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'right'")
    path = Path(hba)
    path.write_text(f"local all {role} scram-sha-256\n{path.read_text()}")
    connection.execute("SELECT pg_reload_conf()")
    url = postgres_url.replace("postgres@", f"{role}@")
    with psycopg.connect(url, password="right"):
        error = _failure(address(url, password="hunter2"))
    assert isinstance(error, UserError)
    assert "password authentication failed" in error.diagnostic.message
