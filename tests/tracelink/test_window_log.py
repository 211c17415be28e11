import tracemalloc
from collections.abc import Iterator

import pytest

from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import STORE_UNAVAILABLE
from clew.tracelink import Bounds, Emitter, TraceBatch, TracedStream, TraceIdGenerator, TraceWindow, WindowLog


class Writer:
    def __init__(self) -> None:
        self.windows: list[TraceWindow] = []
        self.is_away = False

    def write(self, batch: TraceBatch) -> int:
        if self.is_away:
            raise TransientFailure(STORE_UNAVAILABLE.anywhere(reason="away"))
        self.windows.extend(batch.windows)
        return len(batch)


@pytest.fixture
def stream() -> Iterator[TracedStream]:
    with Emitter(("127.0.0.1", 9)) as emitter:
        yield TracedStream(emitter, TraceIdGenerator(1), stream_id=5, epoch=1, windows=WindowLog(capacity=3))


def test_an_output_over_any_number_of_inputs_costs_one_frame_and_one_window_a_stream(stream: TracedStream) -> None:
    """The same for two inputs and for all that a stream can have: nothing grows with the bounds."""
    writer = Writer()
    sizes = []
    for end in (2, 2**62):
        tracemalloc.start()
        stream.integrate(1, {7: Bounds.of_seq(1, end), 8: Bounds.of_time(0, end)}, in_epoch=4)
        sizes.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert len(stream.windows) == 2
        stream.windows.flush(writer)
    assert sizes[1] <= sizes[0] + 1024
    first = writer.windows[0]
    assert (first.in_stream_id, first.epoch, first.bounds) == (7, 4, Bounds.of_seq(1, 2))
    assert len({window.trace_id for window in writer.windows}) == 2


def test_windows_wait_for_a_store_that_is_away(stream: TracedStream) -> None:
    writer = Writer()
    writer.is_away = True
    trace_id = stream.integrate(1, {7: Bounds.of_seq(1, 2)}, in_epoch=1)
    assert stream.windows.flush(writer) == 0
    writer.is_away = False
    assert stream.windows.flush(writer) == 1
    assert [window.trace_id for window in writer.windows] == [trace_id]
    assert stream.windows.flush(writer) == 0


def test_beyond_its_room_a_log_drops_and_counts(stream: TracedStream) -> None:
    for seq in range(5):
        assert stream.integrate(seq, {7: Bounds.of_seq(seq, seq)}, in_epoch=1)
    assert (len(stream.windows), stream.windows.dropped) == (3, 2)
