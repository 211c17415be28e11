"""Large remote files in blocks: every reader gets the right bytes, with few requests, or learns that they differ."""

import random
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.storage.block_digests import BLOCK, NotAsWritten, digests_of
from clew.storage.duckdb_files import QueriedFile, RemoteFiles
from clew.storage.remote_blocks import BlockCache, RemoteBlocks, Span
from clew.storage.scan_ahead import ColumnChunks, Scan

SIZE = 5 * BLOCK + 12_345
CONTENT = random.Random(7).randbytes(SIZE)
DIGESTS = digests_of(CONTENT[at : at + BLOCK] for at in range(0, SIZE, BLOCK)).blocks


@dataclass
class Store:
    """What a file is read from: it counts requests."""

    content: bytes = CONTENT
    requests: list[Span] = field(default_factory=list)
    before: Callable[[], object] = lambda: None

    def read_at(self, position: int, count: int) -> bytes:
        self.requests.append((position, count))
        self.before()
        return self.content[position : position + count]

    def file(self, limit: int = 64 << 20, digests: Sequence[str] = DIGESTS) -> RemoteBlocks:
        return RemoteBlocks("f", len(self.content), self.read_at, digests, BlockCache(limit))


SPANS = st.lists(st.tuples(st.integers(0, SIZE + 10), st.integers(0, 3 * BLOCK)), min_size=1, max_size=8)


@given(SPANS, st.sampled_from([BLOCK, 3 * BLOCK, 64 << 20]))
def test_bytes_are_those_of_the_file_whatever_was_read_before(spans: list[Span], limit: int) -> None:
    store = Store()
    file = store.file(limit)
    for position, count in spans:
        assert file.read_at(position, count) == CONTENT[position : position + count]
    if limit > SIZE:
        asked = [number for at, count in store.requests for number in range(at // BLOCK, -(-(at + count) // BLOCK))]
        assert len(asked) == len(set(asked)), "a block was asked for twice"


def test_threads_that_need_the_same_block_share_one_request() -> None:
    all_wait = threading.Event()
    store = Store(before=all_wait.wait)
    file = store.file()
    with ThreadPoolExecutor(8) as threads:
        found = [threads.submit(file.read_at, 10, 20) for _ in range(8)]
        all_wait.set()
        assert {each.result() for each in found} == {CONTENT[10:30]}
    assert len(store.requests) == 1


def test_blocks_side_by_side_are_one_request_and_others_are_asked_for_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=60)
    store = Store(before=both.wait)
    store.file().fetch([(0, 2 * BLOCK), (4 * BLOCK, SIZE)])  # ends only if both requests are under way together
    assert sorted(store.requests) == [(0, 2 * BLOCK), (4 * BLOCK, SIZE - 4 * BLOCK)]


@pytest.mark.parametrize("number", range(6))
def test_no_byte_of_a_block_that_differs_is_given(number: int) -> None:
    changed = bytearray(CONTENT)
    changed[number * BLOCK + 99] ^= 1
    file = Store(bytes(changed)).file()
    file.fetch_ahead([(0, SIZE)])
    with pytest.raises(NotAsWritten, match=f"from byte {number * BLOCK:,} on"):
        file.read_at(number * BLOCK, 10)
    with pytest.raises(NotAsWritten, match=f"from byte {number * BLOCK:,} on"):
        file.read_at(0, SIZE)
    for other in set(range(6)) - {number}:
        assert file.read_at(other * BLOCK, 50) == CONTENT[other * BLOCK : other * BLOCK + 50]


def test_a_file_that_became_shorter_is_not_as_it_was_written() -> None:
    store = Store()
    file = store.file(digests=())
    store.content = CONTENT[: SIZE - 1]
    with pytest.raises(NotAsWritten, match="it ends before byte"):
        file.read_at(SIZE - 10, 10)


def test_a_request_that_failed_is_made_again_by_the_next_reader() -> None:
    store, failures = Store(), [OSError("the network is gone")]

    def fails_once() -> None:
        if failures:
            raise failures.pop()

    store.before = fails_once
    file = store.file()
    with pytest.raises(OSError, match="the network is gone"):
        file.read_at(0, 5)
    assert file.read_at(0, 5) == CONTENT[:5]


ROWS = 120_000


@pytest.fixture(scope="module")
def table() -> bytes:
    """A file with forty row groups of about a block each, and columns that few read."""
    values = random.Random(3)
    rows = pa.table(
        {
            "n": range(ROWS),
            "wide": [values.randbytes(100).hex() for _ in range(ROWS)],
            "amount": [values.random() for _ in range(ROWS)],
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, row_group_size=ROWS // 40)
    return bytes(sink.getvalue())


def queried(content: bytes, store: Store) -> QueriedFile:
    blocks = digests_of(content[at : at + BLOCK] for at in range(0, len(content), BLOCK)).blocks
    return QueriedFile(store.file(digests=blocks), ColumnChunks(pq.read_metadata(pa.BufferReader(content))))


def test_a_query_over_all_rows_reads_ahead_and_one_over_few_does_not(table: bytes) -> None:
    asked = list[list[Span]]()
    for where in ("true", "n = 60000"):
        store = Store(table)
        with duckdb.connect() as connection:
            RemoteFiles(connection).give("clew://t", lambda store=store: queried(table, store))  # type: ignore[misc]
            found = connection.execute(
                f"SELECT count(*), sum(length(wide)) FROM read_parquet('clew://t') WHERE {where}"
            ).fetchone()
        rows = ROWS if where == "true" else 1
        assert found == (rows, rows * 200)
        asked.append(store.requests)
    everything, one = asked
    assert sum(count for _, count in everything) == len(table), "every block once"
    assert len(everything) <= 20
    assert max(count for _, count in everything) > 2 * BLOCK, "several row groups in one request"
    assert sum(count for _, count in one) <= 4 * BLOCK


def test_a_scan_asks_for_the_same_columns_of_the_next_row_groups_twice_as_many_each_time() -> None:
    sink = pa.BufferOutputStream()
    wide = pa.table({"a": range(32_000), "b": [str(n) * 9 for n in range(32_000)], "c": range(32_000)})
    pq.write_table(wide, sink, row_group_size=1_000)
    content = sink.getvalue().to_pybytes()
    chunks = ColumnChunks(pq.read_metadata(pa.BufferReader(content)))
    ahead = list[list[Span]]()

    class Recording(RemoteBlocks):
        def fetch_ahead(self, spans: object) -> None:
            ahead.append(list(spans))  # type: ignore[call-overload]

    scan = Scan(Recording("f", len(content), Store(content).read_at, (), BlockCache()), chunks)
    for group in range(8):
        start, end = chunks.groups[group][0]
        assert scan.read_at(start, end - start) == content[start:end]
    groups = [[number for number in range(32) if chunks.groups[number][0] in spans] for spans in ahead]
    assert groups[:4] == [[], [2, 3], [4, 5, 6], [7, 8, 9, 10, 11]]
    assert all(span in {group[0] for group in chunks.groups} for spans in ahead for span in spans)
    assert scan.read_at(len(content) - 8, 8) == content[-8:]


def test_threads_that_share_a_file_of_a_query_each_read_where_they_went(table: bytes) -> None:
    """DuckDB calls seek and read of one file from several threads, one call between those of another."""
    with duckdb.connect() as connection:
        files = RemoteFiles(connection)
        files.give("clew://t", lambda: queried(table, Store(table)))
        opened = files.open("clew://t")
        went, other = threading.Event(), threading.Event()

        def first() -> bytes:
            opened.seek(100)
            went.set()
            other.wait(60)
            return bytes(opened.read(10))

        with ThreadPoolExecutor(1) as threads:
            found = threads.submit(first)
            went.wait(60)
            opened.seek(5_000)
            assert opened.read(10) == table[5_000:5_010]
            other.set()
            assert found.result() == table[100:110]
