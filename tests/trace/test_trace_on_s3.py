"""Traces in an object store: the same answers as on disk, from few requests, and nothing from a file that differs."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.trace_data import Bench, written

from clew.diagnostics import ClewError
from clew.explain.explaining import explain
from clew.plan import Plan
from clew.storage.local_copies import LocalCopies
from clew.storage.object_store import ObjectStorage
from clew.storage.root import StorageRoot
from clew.storage.row_identity import RowIds
from clew.trace.reader import RunTrace
from tests.storage.s3_proxy import DENIED, Cut, Proxy
from tests.storage.s3_server import S3Server

WHERE = 'journal_id = "JE-00000077"'


def remote(bench: Bench, root: ObjectStorage) -> RunTrace:
    """The trace with its files in the store."""
    for part in bench.trace.parts:
        for file in part.files:
            with root.create(file.path) as target:
                target.write((bench.root / file.path).read_bytes())
    return reopened(bench, root)


def reopened(bench: Bench, root: StorageRoot, plan: Plan | None = None) -> RunTrace:
    """The trace as a process opens it that has just started."""
    local = bench.trace
    return RunTrace(root, local.run_id, plan or local.plan, local.parts, local.period, local.today)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = written(tmp_path, 20_000)
    yield made
    made.trace.close()


@pytest.fixture
def trace(bench: Bench, s3: S3Server, proxy: Proxy) -> Iterator[RunTrace]:
    opened = remote(bench, s3.through(proxy.endpoint).storage())
    yield opened
    opened.close()


def row_id(bench: Bench, row: int) -> str:
    return RowIds(bench.trace.run_id).row_id(row)


def test_a_trace_in_a_store_gives_the_same_answers_without_listing(bench: Bench, trace: RunTrace, proxy: Proxy) -> None:
    with proxy.counting() as asked:
        for row in (0, 77, 19_999):
            assert trace.history(row_id(bench, row)) == bench.trace.history(row_id(bench, row))
        assert trace.search(WHERE) == bench.trace.search(WHERE)
        assert trace.search("fee > 10", limit=3) == bench.trace.search("fee > 10", limit=3)
        assert trace.counts() == bench.trace.counts()
    assert not [each for each in asked if each.is_listing or each.method not in {"GET", "HEAD"}]
    trace.verify()


@pytest.mark.slow
def test_a_history_of_one_row_out_of_five_million_takes_at_most_twelve_requests(
    tmp_path: Path, s3: S3Server, proxy: Proxy
) -> None:
    bench = written(tmp_path, 5_000_000)
    trace = remote(bench, s3.through(proxy.endpoint).storage())
    row = row_id(bench, 2_400_000)
    with proxy.counting() as asked:
        found = trace.history(row)
    assert found == bench.trace.history(row)
    assert len(asked) <= 12, asked
    assert proxy.bytes_sent < 16_000_000
    with proxy.counting() as again:
        assert trace.history(row) == found
    assert len(again) < len(asked)
    trace.close()
    explain_a_total_of(bench, trace.root, proxy)
    bench.trace.close()


def explain_a_total_of(bench: Bench, root: StorageRoot, proxy: Proxy) -> None:
    """All row groups are read. Someone who waits for one after the other would wait more than a hundred times."""
    created = next(part for part in bench.trace.parts if part.kind == "created")
    total = row_id(bench, created.files[0].first_ordinal + 3)
    proxy.latency = 0.02
    with closing(reopened(bench, root)) as trace, proxy.counting() as asked:
        found = explain(trace, total, "total")
    assert found == explain(bench.trace, total, "total")
    assert not [each for each in asked if each.is_listing or each.method not in {"GET", "HEAD"}]
    assert len(asked) <= 60, len(asked)
    assert proxy.round_trips <= 30, proxy.round_trips
    assert proxy.bytes_sent < 1.4 * sum(file.size for part in bench.trace.parts for file in part.files)


@pytest.mark.parametrize("rows", [20_000, 400_000], ids=["small files", "a large file"])
def test_a_process_that_starts_anew_asks_for_less_where_copies_are_kept(
    tmp_path: Path, s3: S3Server, proxy: Proxy, rows: int
) -> None:
    bench = written(tmp_path / "bench", rows)
    copies = LocalCopies(tmp_path / "copies", 64 << 20)
    root = replace(s3.through(proxy.endpoint).storage(), copies=copies)
    remote(bench, root).close()
    asked = list[int]()
    for _ in range(2):
        with closing(reopened(bench, root)) as trace, proxy.counting() as requests:
            assert trace.history(row_id(bench, 7)) == bench.trace.history(row_id(bench, 7))
            assert trace.search(WHERE) == bench.trace.search(WHERE)
        asked.append(len(requests))
    assert asked[1] < asked[0], asked
    for path in [path for path in copies.folder.rglob("*") if path.is_file()]:
        path.write_bytes(path.read_bytes()[:-1])
    with closing(reopened(bench, root)) as trace:  # damaged copies are as good as none
        assert trace.history(row_id(bench, 7)) == bench.trace.history(row_id(bench, 7))
    bench.trace.close()


def test_no_rows_of_a_run_that_read_personal_columns_are_kept_on_this_machine(
    bench: Bench, tmp_path: Path, s3: S3Server
) -> None:
    copies = LocalCopies(tmp_path / "copies", 64 << 20)
    root = replace(s3.storage(), copies=copies)
    remote(bench, root).close()
    plan = bench.trace.plan
    columns = tuple(replace(column, privacy="personal") for column in plan.input.columns)
    for protected in (replace(plan, input=replace(plan.input, columns=columns)), plan):
        assert [path for path in tmp_path.glob("copies/?/*") if path.name != ".lock"] == []
        with closing(reopened(bench, root, protected)) as trace:
            assert trace.history(row_id(bench, 7)) == bench.trace.history(row_id(bench, 7))
    assert [path for path in tmp_path.glob("copies/?/*") if path.name != ".lock"] != []


def test_a_file_that_is_not_what_was_written_is_named_and_not_read(bench: Bench, trace: RunTrace) -> None:
    root = trace.root
    [file] = trace.parts[0].files
    content = bytearray(root.read_bytes(file.path))
    content[len(content) // 2] ^= 1
    root.remove(file.path)
    root.write_new(file.path, bytes(content))
    for ask in (lambda: trace.history(row_id(bench, 5)), lambda: trace.search(WHERE)):
        with pytest.raises(ClewError, match="is damaged: its content is not what was written") as caught:
            ask()
        assert caught.value.code == "DamagedTrace"


@pytest.mark.slow
def test_a_store_that_fails_is_not_taken_for_a_damaged_file(bench: Bench, trace: RunTrace, proxy: Proxy) -> None:
    for fault, says in ((DENIED, "no permission"), (Cut(), "broke the connection")):
        with proxy.failing(lambda asked, fault=fault: fault if asked.method == "GET" else None):  # type: ignore[misc]
            with pytest.raises(ClewError, match=says) as caught:
                trace.history(row_id(bench, 5))
            assert caught.value.code == "StorageUnavailable"
    assert trace.history(row_id(bench, 5)) == bench.trace.history(row_id(bench, 5))
