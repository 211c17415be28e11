"""The worker of a server: a process of its own, which the server starts, restarts and ends.

Spark's memory and a crash of it are the worker's, not the server's, and what the worker computes slows no page down.
Its standard input is a pipe from the server, on which nothing is sent: when it ends, by order or because the server
was killed, the worker finishes its step and ends too.
"""

import logging
import subprocess
import threading
import time
from collections.abc import Sequence

_log = logging.getLogger(__name__)
_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_GOOD_RUN_S = 60.0
"""A worker that has lived so long was not broken from the start."""


class HostedWorker:
    """Keeps a process running that executes runs from the queue and keeps Spark warm."""

    def __init__(
        self, command: Sequence[str], *, is_quiet: bool = False, first_pause_s: float = _FIRST_PAUSE_S
    ) -> None:
        self._command = command
        self._output = subprocess.DEVNULL if is_quiet else None
        self._first_pause_s = first_pause_s
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._run, name="hosted worker")
        self.starts = 0
        """How often the process was started."""

    @property
    def process_id(self) -> int | None:
        """The id of the process; None while there is none."""
        process = self._process
        return None if process is None else process.pid

    def start(self) -> None:
        """Start the process, and a thread that starts it again if it dies."""
        self._thread.start()

    def stop(self) -> None:
        """Have the worker finish its step and return its run to the queue, and wait until it has ended."""
        self._stopping.set()
        with self._lock:
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.close()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        pause_s = self._first_pause_s
        while not self._stopping.is_set():
            began = time.monotonic()
            status = self._once()
            if self._stopping.is_set():
                return
            if time.monotonic() - began > _GOOD_RUN_S:
                pause_s = self._first_pause_s
            _log.error("the worker has ended with status %s; it is started again in %g s", status, pause_s)
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _once(self) -> int | None:
        """Start the process and wait until it has ended. Its own session keeps Ctrl-C for the server from it."""
        try:
            with self._lock:
                if self._stopping.is_set():
                    return None
                self._process = subprocess.Popen(  # noqa: S603 - the command is our own
                    self._command, stdin=subprocess.PIPE, stdout=self._output, start_new_session=True
                )
                self.starts += 1
            return self._process.wait()
        except OSError:
            _log.exception("the worker cannot be started")
            return None
        finally:
            with self._lock:
                if self._process is not None and self._process.stdin is not None:
                    self._process.stdin.close()
                self._process = None
