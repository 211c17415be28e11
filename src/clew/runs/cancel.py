"""Telling a running step to stop."""

import threading
from collections.abc import Callable
from enum import StrEnum

from clew.diagnostics import ClewError
from clew.diagnostics.codes.runs import STEP_INTERRUPTED


class Interruption(StrEnum):
    """Why a step has to stop."""

    CANCELLED = "the run was cancelled"
    STOPPING = "the worker is stopping"
    LEASE_LOST = "another worker has taken the run"


class StepInterrupted(ClewError):
    """What a step raises that stopped because it was told to."""

    def __init__(self, reason: Interruption) -> None:
        super().__init__(STEP_INTERRUPTED.anywhere(reason=reason.value))
        self.reason = reason


class CancelToken:
    """Shared by the run loop, which cancels, and the step, which looks. Safe to use from any thread."""

    def __init__(self) -> None:
        self._set = threading.Event()
        self._lock = threading.Lock()
        self._reason: Interruption | None = None
        self._callbacks: list[Callable[[], None]] = []

    @property
    def reason(self) -> Interruption | None:
        """Why the step has to stop, or None while it may go on."""
        return self._reason

    def cancel(self, reason: Interruption) -> None:
        """Tell the step to stop. The first reason stays, except that a lost lease outranks all: then nothing counts."""
        with self._lock:
            first = self._reason is None
            if first or reason is Interruption.LEASE_LOST:
                self._reason = reason
            callbacks = self._callbacks if first else []
            self._callbacks = []
        self._set.set()
        for callback in callbacks:
            callback()

    def check(self) -> None:
        """Stop here if the step has to."""
        if self._reason is not None:
            raise StepInterrupted(self._reason)

    def wait(self, seconds: float) -> bool:
        """Sleep, but wake up when the step has to stop; whether it has to."""
        return self._set.wait(seconds)

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Have something called when the step has to stop, such as the cancellation of a job on a cluster."""
        with self._lock:
            if self._reason is None:
                self._callbacks.append(callback)
                return
        callback()
