"""Windows of a stage that adds up: noted at the cost of a list entry, written to the store now and then."""

from collections import deque

from clew.diagnostics import TransientFailure
from clew.tracelink.records import TraceBatch, TraceWindow, TraceWriter


class WindowLog:
    """Keeps windows until they are written. Beyond its room it drops and counts, like everything in tracing."""

    def __init__(self, capacity: int = 100_000) -> None:
        self._windows: deque[TraceWindow] = deque()
        self._capacity = capacity
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._windows)

    def append(self, window: TraceWindow) -> bool:
        """Note a window; False where there is no room."""
        if len(self._windows) >= self._capacity:
            self.dropped += 1
            return False
        self._windows.append(window)
        return True

    def flush(self, writer: TraceWriter) -> int:
        """Write what is there in one transaction, and tell how many; a store that is away leaves all for later."""
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
