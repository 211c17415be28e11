from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.budgets import Allowance, QuestionLimits, under
from clew.diagnostics import UserError
from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import (
    ArtifactRange,
    Bounds,
    Direction,
    FrameRow,
    Link,
    PublishedBlock,
    TraceBatch,
    TracedFrame,
    TraceIdBlock,
    TraceLinkStores,
    TracePlace,
    TraceWindow,
    walk,
)
from tests.engine.endless import ended
from tests.tiers import examples

# 6 is a summary of 4 and 5; 4 came from 1 and 2, 5 from 2 and 3.
DIAMOND: list[Link] = [(6, 4), (6, 5), (4, 1), (4, 2), (5, 2), (5, 3)]
LARGEST = 2**64 - 1


@pytest.fixture
def tracing(url: str) -> Iterator[TraceLinkStores]:
    with open_trace_link_stores(url) as stores:
        yield stores


def frame(stream_id: int, seq: int, trace_id: int, *, epoch: int = 1, t_ns: int = 0) -> FrameRow:
    return (stream_id, epoch, seq, 0, t_ns, trace_id, 0)


def seq_window(trace_id: int, stream_id: int, start: int, end: int) -> TraceWindow:
    return TraceWindow(trace_id=trace_id, in_stream_id=stream_id, epoch=1, bounds=Bounds.of_seq(start, end))


def time_window(trace_id: int, stream_id: int, start: int, end: int) -> TraceWindow:
    return TraceWindow(trace_id=trace_id, in_stream_id=stream_id, epoch=1, bounds=Bounds.of_time(start, end))


@contextmanager
def database_of(url: str) -> Iterator[sa.Connection]:
    engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def links_in(url: str) -> set[Link]:
    with database_of(url) as connection:
        rows = connection.exec_driver_sql("SELECT trace_id, parent_trace_id FROM trace_links").all()
    assert len(rows) == len(set(rows))
    return {(row[0], row[1]) for row in rows}


SPECIFIED = {
    "frames": (
        ["stream_id", "epoch", "seq", "stage_id", "t_ns", "trace_id", "status"],
        ["stream_id", "epoch", "seq"],
        ("frames_trace_idx", ["trace_id"]),
    ),
    "trace_links": (
        ["trace_id", "parent_trace_id"],
        ["trace_id", "parent_trace_id"],
        ("trace_links_parent_idx", ["parent_trace_id"]),
    ),
    "trace_windows": (
        ["trace_id", "in_stream_id", "epoch", "seq_start", "seq_end", "t_start_ns", "t_end_ns"],
        ["trace_id", "in_stream_id"],
        ("trace_windows_stream_idx", ["in_stream_id", "epoch"]),
    ),
}
"""Columns, key and index of each table, as the specification has them."""
MAY_BE_MISSING = {"seq_start", "seq_end", "t_start_ns", "t_end_ns"}


@pytest.mark.parametrize("table", SPECIFIED)
@pytest.mark.usefixtures("tracing")
def test_tables_have_the_columns_keys_and_indexes_of_the_specification(url: str, table: str) -> None:
    columns, key, index = SPECIFIED[table]
    with database_of(url) as connection:
        inspector = sa.inspect(connection)
        found = inspector.get_columns(table)
        assert [column["name"] for column in found] == columns
        assert all(isinstance(column["type"], sa.Integer) for column in found)
        assert {column["name"] for column in found if column["nullable"]} == set(columns) & MAY_BE_MISSING
        assert inspector.get_pk_constraint(table)["constrained_columns"] == key
        assert index in [(each["name"], each["column_names"]) for each in inspector.get_indexes(table)]


@pytest.mark.parametrize("table", SPECIFIED)
def test_in_sqlite_the_tables_are_stored_in_the_order_of_their_keys(sqlite_url: str, table: str) -> None:
    with open_trace_link_stores(sqlite_url), database_of(sqlite_url) as connection:
        kinds = {row[1]: row[4] for row in connection.exec_driver_sql("PRAGMA table_list").all()}
        assert kinds[table] == 1, "it has rowids"


def test_sqlite_writes_ahead(sqlite_url: str) -> None:
    with open_trace_link_stores(sqlite_url), database_of(sqlite_url) as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal"


def test_what_comes_twice_is_kept_once_and_the_first_stays(tracing: TraceLinkStores) -> None:
    batch = TraceBatch(frames=[frame(1, 1, 10), frame(1, 2, 11), frame(1, 2, 11)], links=[(20, 10), (20, 11), (20, 10)])
    assert tracing.writer.write(batch) == 4
    assert tracing.writer.write(batch) == 0
    assert tracing.writer.write(TraceBatch(frames=[frame(1, 1, 99), frame(1, 3, 12)])) == 1
    assert tracing.writer.write(TraceBatch()) == 0
    assert list(tracing.reader.frames([99])) == []


def test_a_batch_that_fails_leaves_nothing_behind(tracing: TraceLinkStores) -> None:
    with pytest.raises(UserError) as refusal:
        tracing.writer.write(TraceBatch(frames=[frame(1, 1, 10)], links=[(2**64, 1)]))
    assert refusal.value.code == "StoreRefusedValue"
    assert list(tracing.reader.frames([10])) == []


def test_the_frames_of_a_trace_come_in_the_order_of_time(tracing: TraceLinkStores) -> None:
    rows = [frame(1, 5, 42, t_ns=30), frame(2, 9, 42, t_ns=10), frame(3, 1, 42, t_ns=20), frame(3, 2, 43, t_ns=5)]
    tracing.writer.write(TraceBatch(frames=rows))
    assert [(f.stream_id, f.seq, f.t_ns) for f in tracing.reader.frames([42])] == [(2, 9, 10), (3, 1, 20), (1, 5, 30)]


def test_immediate_parents_and_downstream_effects(tracing: TraceLinkStores) -> None:
    tracing.writer.write(TraceBatch(links=DIAMOND))
    assert list(tracing.reader.parents([6])) == [(6, 4), (6, 5)]
    assert list(tracing.reader.children([2])) == [(4, 2), (5, 2)]
    assert list(tracing.reader.parents([1, 77])) == []


def test_lineage_is_followed_both_ways_over_all_hops_and_no_deeper_than_asked(tracing: TraceLinkStores) -> None:
    tracing.writer.write(TraceBatch(links=DIAMOND))
    up = walk(tracing.reader, 6, Direction.UP)
    assert {node.trace_id: node.depth for node in up.nodes} == {6: 0, 4: 1, 5: 1, 1: 2, 2: 2, 3: 2}
    assert set(up.links) == set(DIAMOND)
    down = walk(tracing.reader, 2, Direction.DOWN)
    assert {node.trace_id: node.depth for node in down.nodes} == {2: 0, 4: 1, 5: 1, 6: 2}
    one_hop = walk(tracing.reader, 6, Direction.UP, max_depth=1)
    assert {node.trace_id for node in one_hop.nodes} == {6, 4, 5}
    assert not one_hop.is_complete


def test_a_circle_of_links_does_not_keep_a_question(tracing: TraceLinkStores) -> None:
    tracing.writer.write(TraceBatch(links=[(1, 2), (2, 3), (3, 1)]))
    for direction in Direction:
        graph = walk(tracing.reader, 1, direction)
        assert {node.trace_id for node in graph.nodes} == {1, 2, 3}
        assert graph.is_complete


def test_numbers_of_all_64_bits_come_back_as_they_were(tracing: TraceLinkStores) -> None:
    numbers = (2**63 - 1, 2**63, LARGEST)
    for number in numbers:
        row = (2**32 - 1, number, number, 0, number, number, 0)
        tracing.writer.write(TraceBatch(frames=[row], links=[(number, 7), (8, number)]))
    for number in numbers:
        expected = TracedFrame(trace_id=number, stream_id=2**32 - 1, epoch=number, seq=number, t_ns=number)
        assert list(tracing.reader.frames([number])) == [expected]
        assert list(tracing.reader.parents([number])) == [(number, 7)]
        assert list(tracing.reader.children([number])) == [(8, number)]
    assert sorted(parent for _, parent in tracing.reader.parents([8])) == sorted(numbers)


@pytest.mark.parametrize(
    "bounds",
    [
        {},
        {"seq_start": 1},
        {"seq_start": 1, "t_end_ns": 2},
        {"seq_start": 1, "seq_end": 2, "t_start_ns": 1, "t_end_ns": 2},
        {"seq_start": 3, "seq_end": 2},
        {"t_start_ns": -1, "t_end_ns": 2},
        {"seq_start": 0, "seq_end": 2**63},
    ],
)
def test_bounds_are_one_range_of_places_or_of_times(bounds: dict[str, int]) -> None:
    with pytest.raises(UserError) as refusal:
        Bounds(**bounds)
    assert refusal.value.code == "InvalidBounds"


def test_a_window_holds_by_sequence_or_by_time_with_both_its_ends(url: str, tracing: TraceLinkStores) -> None:
    rows = [frame(7, seq, 100 + seq, t_ns=1000 + seq) for seq in range(10)]
    others = [frame(8, 4, 900, t_ns=1004), frame(7, 4, 901, epoch=2, t_ns=1004)]
    tracing.writer.write(
        TraceBatch(frames=rows + others, windows=[seq_window(50, 7, 3, 5), time_window(60, 7, 1006, 1008)])
    )
    assert set(tracing.reader.parents([50])) == {(50, 103), (50, 104), (50, 105)}
    assert set(tracing.reader.parents([60])) == {(60, 106), (60, 107), (60, 108)}
    assert set(tracing.reader.children([104, 108])) == {(50, 104), (60, 108)}
    assert links_in(url) == set()


def test_questions_that_end_at_a_limit_let_go_of_the_database(tracing: TraceLinkStores) -> None:
    rows = [frame(7, seq, 1000 + seq) for seq in range(3000)]
    tracing.writer.write(
        TraceBatch(frames=rows, windows=[seq_window(50, 7, 0, 2999)], links=[(51, n[5]) for n in rows])
    )
    for _ in range(40):
        for root in (50, 51):
            graph = walk(tracing.reader, root, Direction.UP, max_nodes=5)
            assert [node.trace_id for node in graph.nodes] == [root, 1000, 1001, 1002, 1003]


def test_a_question_is_interrupted_at_its_deadline_while_the_database_works_on_it(
    tracing: TraceLinkStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statement would take minutes. Afterwards the database answers again."""
    numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000000)"
    endless = f"{numbers} SELECT count(*), max(i) FROM n WHERE i {{ids}} OR i > 0"
    monkeypatch.setattr("clew.store.tracelink.queries._PARENTS", (endless,))

    def ask() -> str:
        budget = Allowance(QuestionLimits(deadline_s=0.3))
        with pytest.raises(UserError) as error, under(budget):
            walk(tracing.reader, 6, Direction.UP)
        return error.value.code

    assert ended(ask, or_else=lambda: None, within_s=60) == "QuestionTooLong"
    monkeypatch.undo()
    tracing.writer.write(TraceBatch(links=DIAMOND))
    assert {node.trace_id for node in walk(tracing.reader, 6, Direction.UP).nodes} == {1, 2, 3, 4, 5, 6}


def test_an_unexpanded_window_says_what_it_covers(tracing: TraceLinkStores) -> None:
    tracing.writer.write(TraceBatch(windows=[seq_window(50, 7, 3, 5), time_window(60, 7, 10, 20)]))
    assert [place.text for place in tracing.reader.places([50, 60])] == [
        "window over stream 7, epoch 1, seq 3 to 5",
        "window over stream 7, epoch 1, 10 to 20 ns",
    ]


def test_an_artifact_is_found_for_the_frames_of_its_range(tracing: TraceLinkStores) -> None:
    calibration = ArtifactRange(
        artifact_id="7", kind="calibration", uri="file:c7.json", stream_id=3, epoch=1, bounds=Bounds.of_seq(10, 19)
    )
    rates = ArtifactRange(
        artifact_id="ecb", kind="rates", uri="file:ecb.csv", stream_id=3, epoch=1, bounds=Bounds.of_time(500)
    )
    tracing.writer.write(TraceBatch(artifacts=[calibration, rates]))
    assert tracing.writer.write(TraceBatch(artifacts=[calibration])) == 0
    rows = [frame(3, 9, 1, t_ns=400), frame(3, 10, 2, t_ns=499), frame(3, 19, 3, t_ns=500), frame(4, 15, 4, t_ns=600)]
    tracing.writer.write(TraceBatch(frames=rows))
    places = list(tracing.reader.places([1, 2, 3, 4]))
    assert places == [
        TracePlace(trace_id=2, note="calibration 7 (file:c7.json)"),
        TracePlace(trace_id=3, note="calibration 7 (file:c7.json)"),
        TracePlace(trace_id=3, note="rates ecb (file:ecb.csv)"),
    ]


def test_the_rows_behind_a_block_are_found_from_one_entry(tracing: TraceLinkStores) -> None:
    blocks = [TraceIdBlock(node_id=5, first_tick=tick, count=1_000_000) for tick in (10_000_000, 12_000_000)]
    published = [
        PublishedBlock(block=block, run_id="r1", operation_seq=seq, stream_id=seq, epoch=9, first_seq=100)
        for seq, block in enumerate(blocks)
    ]
    for one in (*published, published[0]):
        tracing.blocks.record(one)
    tracing.blocks.record(
        PublishedBlock(block=TraceIdBlock(5, 14_000_000, 0), run_id="r1", operation_seq=9, stream_id=9, epoch=9)
    )
    first, last = blocks[0].trace_id(0), blocks[1].trace_id(999_999)
    elsewhere = [TraceIdBlock(6, 10_000_000, 1).trace_id(0), TraceIdBlock(5, 11_500_000, 1).trace_id(0), LARGEST, 1]
    assert set(tracing.blocks.blocks_of([first, first + 1, last, *elsewhere])) == set(published)
    assert list(tracing.blocks.blocks_of(elsewhere)) == []
    assert tracing.blocks.blocks_of_run("r1") == tuple(published)
    assert [published[1].seq_of(trace_id) for trace_id in (first, last)] == [None, 100 + 999_999]


def test_expansion_writes_each_link_of_a_window_once_and_can_be_run_again(url: str, tracing: TraceLinkStores) -> None:
    rows = [frame(7, seq, 100 + seq // 2, t_ns=1000 + seq) for seq in range(20)]
    windows = [
        seq_window(50, 7, 0, 9),
        seq_window(51, 7, 5, 14),
        time_window(52, 7, 1004, 1005),
        seq_window(53, 9, 0, 9),
    ]
    tracing.writer.write(TraceBatch(frames=rows, windows=windows, links=[(50, 101)]))
    before = set(tracing.reader.parents([50, 51, 52, 53]))
    done = tracing.expander.expand()
    assert (done.windows, done.links) == (4, 11)
    assert links_in(url) == before == set(tracing.reader.parents([50, 51, 52, 53]))
    assert tracing.expander.expand().links == 0


def test_frames_that_come_late_are_linked_by_the_next_expansion(url: str, tracing: TraceLinkStores) -> None:
    tracing.writer.write(TraceBatch(frames=[frame(7, 1, 101)], windows=[seq_window(50, 7, 0, 9)]))
    assert tracing.expander.expand().links == 1
    tracing.writer.write(TraceBatch(frames=[frame(7, 2, 102)]))
    assert tracing.expander.expand().links == 1
    assert links_in(url) == {(50, 101), (50, 102)}


def test_a_window_links_neither_to_itself_nor_to_untraced_frames(url: str, tracing: TraceLinkStores) -> None:
    rows = [frame(7, 1, 50, t_ns=1), frame(7, 2, 0, t_ns=2), frame(7, 3, 101, t_ns=3)]
    tracing.writer.write(TraceBatch(frames=rows, windows=[seq_window(50, 7, 0, 9), time_window(51, 7, 0, 2)]))
    assert set(tracing.reader.parents([50, 51])) == {(50, 101), (51, 50)}
    tracing.expander.expand()
    assert links_in(url) == {(50, 101), (51, 50)}


def test_no_transaction_of_an_expansion_writes_more_links_than_it_may(url: str, tracing: TraceLinkStores) -> None:
    rows = [frame(7, seq, 100_000 + seq, t_ns=seq // 7) for seq in range(1000)]
    small = [seq_window(trace_id, 7, trace_id * 10, trace_id * 10 + 9) for trace_id in range(1, 51)]
    large = [seq_window(90, 7, 0, 10**12), time_window(91, 7, 0, 10**12)]
    tracing.writer.write(TraceBatch(frames=rows, windows=[*small, *large]))
    done = tracing.expander.expand(batch_links=100)
    assert done.links == 500 + 1000 + 1000
    assert done.transactions == 5 + 11 + 11
    expected = {(w.trace_id, 100_000 + w.trace_id * 10 + n) for w in small for n in range(10)}
    assert links_in(url) == expected | {(trace_id, 100_000 + seq) for trace_id in (90, 91) for seq in range(1000)}


def test_expansion_can_begin_with_the_traces_of_a_later_time(url: str, tracing: TraceLinkStores) -> None:
    early, late = (TraceIdBlock(1, ms * 4096, 1).trace_id(0) for ms in (1000, 2000))
    windows = [seq_window(early, 7, 0, 9), seq_window(late, 7, 0, 9)]
    tracing.writer.write(TraceBatch(frames=[frame(7, 1, 101)], windows=windows))
    assert tracing.expander.expand(since_ms=2000).links == 1
    assert links_in(url) == {(late, 101)}


NODES = st.integers(1, 12)
GRAPHS = st.lists(st.tuples(NODES, NODES), max_size=40)


@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(links=GRAPHS, root=NODES, direction=st.sampled_from(Direction), depth=st.integers(0, 6))
def test_lineage_over_a_random_graph_is_that_of_plain_python(
    url: str, tracing: TraceLinkStores, links: list[Link], root: int, direction: Direction, depth: int
) -> None:
    with database_of(url) as connection:
        connection.exec_driver_sql("DELETE FROM trace_links")
    tracing.writer.write(TraceBatch(links=links))
    graph = walk(tracing.reader, root, direction, max_depth=depth)
    assert {node.trace_id: node.depth for node in graph.nodes} == plain_depths(links, root, direction, depth)


FRAMES = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 9), st.integers(0, 9), st.integers(0, 6)), max_size=15)
RANGES = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)
WINDOWS = st.lists(
    st.builds(
        lambda trace_id, stream_id, ends, make: make(trace_id, stream_id, *ends),
        st.integers(5, 9),
        st.integers(1, 2),
        RANGES,
        st.sampled_from([seq_window, time_window]),
    ),
    max_size=6,
    unique_by=lambda window: (window.trace_id, window.in_stream_id),
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=FRAMES, windows=WINDOWS, batch_links=st.integers(1, 8))
def test_windows_give_the_links_of_plain_python_before_and_after_they_are_expanded(
    url: str,
    tracing: TraceLinkStores,
    sent: list[tuple[int, int, int, int]],
    windows: list[TraceWindow],
    batch_links: int,
) -> None:
    with database_of(url) as connection:
        for table in ("frames", "trace_links", "trace_windows"):
            connection.exec_driver_sql(f"DELETE FROM {table}")
    rows = {(s, seq): frame(s, seq, trace_id, t_ns=t_ns) for s, seq, t_ns, trace_id in sent}
    tracing.writer.write(TraceBatch(frames=list(rows.values()), windows=windows))
    expected = {
        (window.trace_id, row[5])
        for window in windows
        for row in rows.values()
        if row[0] == window.in_stream_id and row[5] not in {0, window.trace_id}
        if window.bounds.ends[0] <= (row[2] if window.bounds.is_by_seq else row[4]) <= window.bounds.ends[1]
    }
    everything = range(10)
    assert set(tracing.reader.parents(everything)) == expected == set(tracing.reader.children(everything))
    assert tracing.expander.expand(batch_links=batch_links).links == len(expected)
    assert links_in(url) == expected
    assert set(tracing.reader.parents(everything)) == expected == set(tracing.reader.children(everything))


def plain_depths(links: list[Link], root: int, direction: Direction, depth: int) -> dict[int, int]:
    near, far = (0, 1) if direction is Direction.UP else (1, 0)
    depths = {root: 0}
    for hop in range(1, depth + 1):
        reached = {link[far] for link in links if depths.get(link[near]) == hop - 1}
        depths.update({trace_id: hop for trace_id in reached if trace_id not in depths})
    return depths
