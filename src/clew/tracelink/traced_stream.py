"""A stage outside Spark that takes part in tracing: which trace id an output gets, and what is recorded about it.

- An output without an input begins a trace: a new id (`root`).
- An output made from one input belongs to its trace: the same id, and no links (`derive`).
- An output made from several inputs is a new trace: a new id, linked to theirs (`join`).
- An output that aggregates more inputs than it could name is a new trace, too: a new id, and a window that says which
  inputs these were (`integrate`). That costs the same for ten inputs as for ten million.
- An output that must be distinguishable from its only input is a new trace with one parent (`reroot`).

Trace ids continue across epochs: they are unique without the epoch. Windows are collected in a list and written to the
store now and then.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Protocol

from clew.diagnostics import ClewError, TransientFailure
from clew.tracelink.emitter import Emitter
from clew.tracelink.frames import Bounds, TraceBatch, TraceWindow, TraceWriter
from clew.tracelink.ids import UNTRACED


class WindowLog:
    """Keeps windows until they are written. When it is full it drops and counts, like everything in tracing."""

    def __init__(self, capacity: int = 100_000) -> None:
        self._windows: deque[TraceWindow] = deque()
        self._capacity = capacity
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._windows)

    def append(self, window: TraceWindow) -> bool:
        """Add a window; False if there is no room."""
        if len(self._windows) >= self._capacity:
            self.dropped += 1
            return False
        self._windows.append(window)
        return True

    def flush(self, writer: TraceWriter) -> int:
        """Write all windows in one transaction and return how many; if the store is unavailable, keep them."""
        windows = [self._windows[index] for index in range(len(self._windows))]
        if not windows:
            return 0
        try:
            writer.write(TraceBatch(windows=windows))
        except TransientFailure:
            return 0
        for _ in windows:
            self._windows.popleft()
        return len(windows)


class TraceIds(Protocol):
    """Where new trace ids come from: a generator, or one that works under a lease."""

    def next_id(self) -> int:
        """A new trace id."""
        ...


class TracedStream:
    """The frames that a stage publishes to one stream in one epoch.

    Every method returns the trace id of the output, or 0 if there is none to be had: the stage then continues
    untraced, and `untraced` counts it.
    """

    def __init__(
        self, emitter: Emitter, ids: TraceIds, *, stream_id: int, epoch: int, windows: WindowLog | None = None
    ) -> None:
        self.stream_id = stream_id
        self.epoch = epoch
        self.untraced = 0
        self.windows = windows if windows is not None else WindowLog()
        """What `integrate` noted; flush it now and then."""
        self._emitter = emitter
        self._ids = ids

    def root(self, seq: int, *, timestamp_ns: int | None = None) -> int:
        """Publish a frame that begins a trace."""
        return self._publish(seq, self._mint(), timestamp_ns)

    def derive(self, seq: int, trace_id: int, *, timestamp_ns: int | None = None) -> int:
        """Publish a frame made from one frame, whose trace id this is."""
        return self._publish(seq, trace_id, timestamp_ns)

    def join(self, seq: int, parents: Iterable[int], *, timestamp_ns: int | None = None) -> int:
        """Publish a frame made from several, whose trace ids these are. Untraced ones among them are left out."""
        distinct = tuple(dict.fromkeys(parent for parent in parents if parent != UNTRACED))
        trace_id = self._publish(seq, self._mint(), timestamp_ns)
        if distinct and trace_id != UNTRACED:
            self._emitter.links(self.stream_id, self.epoch, seq, trace_id, distinct)
        return trace_id

    def integrate(
        self, seq: int, inputs: Mapping[int, Bounds], *, in_epoch: int, timestamp_ns: int | None = None
    ) -> int:
        """Publish a frame made from all frames of some streams, given by their ids, within bounds."""
        trace_id = self._publish(seq, self._mint(), timestamp_ns)
        if trace_id != UNTRACED:
            for in_stream_id, bounds in inputs.items():
                self.windows.append(
                    TraceWindow(trace_id=trace_id, in_stream_id=in_stream_id, epoch=in_epoch, bounds=bounds)
                )
        return trace_id

    def reroot(self, seq: int, parent: int, *, timestamp_ns: int | None = None) -> int:
        """Publish a frame made from one frame, as a new trace that is linked to the old."""
        return self.join(seq, (parent,), timestamp_ns=timestamp_ns)

    def _mint(self) -> int:
        try:
            return self._ids.next_id()
        except ClewError:
            return UNTRACED

    def _publish(self, seq: int, trace_id: int, timestamp_ns: int | None) -> int:
        if trace_id == UNTRACED:
            self.untraced += 1
        self._emitter.frame(self.stream_id, self.epoch, seq, timestamp_ns, None, trace_id)
        return trace_id
