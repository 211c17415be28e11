"""Interrupts what a question waits for, once its budget is over or Ctrl-C is pressed.

A query of the database runs outside of Python: it asks no budget, and Python handles no signal meanwhile. So one thread
of the process looks after all queries: it calls `interrupt` again and again until the query has ended, since an
interrupt that comes before the query has begun is lost. And the main thread, which alone handles signals, has its
queries done by another thread.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Generic, TypeVar

from clew.budgets.allowance import Allowance, current

_LOOK_S = 0.02
_Result = TypeVar("_Result")


class _Watch:
    """The queries that are under way, and the thread that looks after them."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[Allowance, Callable[[], None]]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._next = 0

    def add(self, budget: Allowance, interrupt: Callable[[], None]) -> int:
        """Look after a query; the number to remove it by."""
        with self._changed:
            self._next += 1
            self._watched[self._next] = (budget, interrupt)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="clew-questions", daemon=True)
                self._thread.start()
            self._changed.notify()
            return self._next

    def remove(self, number: int) -> None:
        """The query has ended. Interrupts are called under the lock, so none comes to a query that follows it."""
        with self._changed:
            self._watched.pop(number, None)

    def _run(self) -> None:
        pause = threading.Event()
        while True:
            with self._changed:
                while not self._watched:
                    self._changed.wait()
                self._interrupt_those_over()
            pause.wait(_LOOK_S)

    def _interrupt_those_over(self) -> None:
        """A function of its own, so that the thread keeps no connection alive while it waits."""
        for budget, interrupt in self._watched.values():
            if budget.is_over:
                interrupt()


_watch = _Watch()


def interruptibly(work: Callable[[], _Result], interrupt: Callable[[], None]) -> _Result:
    """The result of `work`. `interrupt` is called while it runs on after the budget is over, or after Ctrl-C."""
    budget = current()
    if budget is None:
        return _heeding_signals(work, interrupt)
    budget.check()
    number = _watch.add(budget, interrupt)
    try:
        return _heeding_signals(work, interrupt)
    finally:
        _watch.remove(number)


@contextmanager
def watched(interrupt: Callable[[], None]) -> Iterator[None]:
    """Call `interrupt` while this block goes on after the budget is over. It stays in its thread, whichever that is."""
    budget = current()
    if budget is None:
        yield
        return
    budget.check()
    number = _watch.add(budget, interrupt)
    try:
        yield
    finally:
        _watch.remove(number)


def _heeding_signals(work: Callable[[], _Result], interrupt: Callable[[], None]) -> _Result:
    if threading.current_thread() is not threading.main_thread():
        return work()
    elsewhere = _Elsewhere(work)
    try:
        threading.Thread(target=copy_context().run, args=(elsewhere.run,), name="clew-query", daemon=True).start()
        elsewhere.done.wait()
    except BaseException:
        elsewhere.give_up(interrupt)
        raise
    return elsewhere.result()


class _Elsewhere(Generic[_Result]):
    """Work that another thread does. A signal may come at any moment, also while that thread is being started."""

    def __init__(self, work: Callable[[], _Result]) -> None:
        self.done = threading.Event()
        self._work = work
        self._lock = threading.Lock()
        self._has_begun = self._is_given_up = False
        self._results = list[_Result]()
        self._errors = list[BaseException]()

    def run(self) -> None:
        """Do the work, unless it was given up before it began."""
        with self._lock:
            if self._is_given_up:
                return
            self._has_begun = True
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001 - raised by `result`, in the thread that waits
            self._errors.append(error)
        finally:
            self.done.set()

    def give_up(self, interrupt: Callable[[], None]) -> None:
        """Interrupt the work until it has ended."""
        with self._lock:
            self._is_given_up = True
        while self._has_begun and not self.done.wait(_LOOK_S):
            interrupt()

    def result(self) -> _Result:
        """What the work gave, or raised."""
        if self._errors:
            raise self._errors[0]
        return self._results[0]
