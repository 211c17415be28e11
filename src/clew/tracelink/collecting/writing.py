"""The thread of a collector that writes.

A transaction takes what came within an interval. If the store is away, the batch in hand is tried again and again, and
what comes in the meantime waits in the buffer.
"""

import logging
import threading
import time

from clew.diagnostics import ClewError, TransientFailure
from clew.tracelink.collecting.buffer import DatagramBuffer
from clew.tracelink.collecting.counts import CollectorCounts
from clew.tracelink.collecting.reading import read_datagrams
from clew.tracelink.collecting.settings import CollectorSettings
from clew.tracelink.records import TraceBatch, TraceWriter

_log = logging.getLogger(__name__)
_BYTES_PER_TRANSACTION = 1 << 19
"""About ten thousand frames: some fifty milliseconds in which nobody else writes to a database file."""
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0


class BatchWriting:
    """Takes datagrams out of a buffer and writes what they tell, until it is told to finish."""

    def __init__(self, buffer: DatagramBuffer, writer: TraceWriter, settings: CollectorSettings) -> None:
        self.counts = CollectorCounts()
        self._buffer = buffer
        self._writer = writer
        self._settings = settings
        self._stopping = threading.Event()
        self._give_up_at = float("inf")
        self._thread = threading.Thread(target=self._run, name="clew-collector-writer", daemon=True)

    def start(self) -> None:
        """Start writing."""
        self._thread.start()

    def finish(self) -> None:
        """Write what is left, for no longer than the settings allow, and end. What is left then is dropped."""
        self._give_up_at = time.monotonic() + self._settings.flush_s
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        interval = self._settings.batch_ms / 1000
        while not self._stopping.is_set():
            if self._buffer.wait(interval) and not self._stopping.wait(interval):
                self._write_some()
        while self._write_some():
            pass

    def _write_some(self) -> bool:
        received = self._buffer.take(_BYTES_PER_TRANSACTION)
        if not received:
            return False
        before = self.counts.received - self.counts.untraced
        batch = read_datagrams(received, self.counts, self._settings.stages)
        if not self._write(batch):
            self.counts.dropped += self.counts.received - self.counts.untraced - before
        return True

    def _write(self, batch: TraceBatch) -> bool:
        """Write a batch, however long it takes while the store is away; False where it had to be given up."""
        pause = _FIRST_PAUSE_S
        while len(batch):
            try:
                written = self._writer.write(batch)
            except TransientFailure as away:
                self.counts.failures += 1
                _log.warning("the state store does not take what was collected: %s", away)
                if not self._wait(pause):
                    return False
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            except ClewError:
                self.counts.failures += 1
                _log.exception("the state store refuses what was collected")
                return False
            else:
                self.counts.transactions += 1
                self.counts.written += written
                self.counts.known += len(batch) - written
                return True
        return True

    def _wait(self, seconds: float) -> bool:
        """Wait before another attempt; False where there is to be none, since the end has waited long enough."""
        if not self._stopping.wait(seconds):
            return True
        left = self._give_up_at - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(left, _FIRST_PAUSE_S))
        return True
