"""Interrupts what a question waits for, once its budget is over or Ctrl-C is pressed.

A query of the database runs outside of Python: it asks no budget, and Python handles no signal meanwhile. So one thread
of the process looks after all queries: it calls `interrupt` again and again until the query has ended, since an
interrupt that comes before the query has begun is lost. And the main thread, which alone handles signals, has its
queries done by another thread.
"""

import threading
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

from clew.budgets.budget import Budget, current

_LOOK_S = 0.02
_Result = TypeVar("_Result")


class _Watch:
    """The queries that are under way, and the thread that looks after them."""

    def __init__(self) -> None:
        self._watched: dict[int, tuple[Budget, Callable[[], None]]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._next = 0

    def add(self, budget: Budget, interrupt: Callable[[], None]) -> int:
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


def _heeding_signals(work: Callable[[], _Result], interrupt: Callable[[], None]) -> _Result:
    if threading.current_thread() is not threading.main_thread():
        return work()
    results, errors, done = list[_Result](), list[BaseException](), threading.Event()

    def working() -> None:
        try:
            results.append(work())
        except BaseException as error:  # noqa: BLE001 - raised below, in the thread that waits
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=copy_context().run, args=(working,), name="clew-query", daemon=True).start()
    try:
        done.wait()
    except BaseException:
        while not done.wait(_LOOK_S):
            interrupt()
        raise
    if errors:
        raise errors[0]
    return results[0]
