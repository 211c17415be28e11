"""The budget of a question about rows: when it must be answered, and how much memory its answer may take.

The budget of the question at hand is in a context variable, so that evaluators and readers find it without passing it
on. They ask it at every step that takes time or memory; a thread cannot be stopped from outside in any other way.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from clew.deferred import dataclass
from clew.diagnostics import ClewError, UserError
from clew.diagnostics.codes.questions import QUESTION_TOO_LARGE, QUESTION_TOO_LONG

_MEGABYTE = 1_000_000


class QuestionStopped(Exception):
    """A question was stopped before it was answered; `error` says why.

    Readers handle errors of Clew and go on, for instance where one of several files is missing. A stopped question must
    not go on, so this is not one of them; `asking` raises the error at the end of the question.
    """

    def __init__(self, error: ClewError) -> None:
        super().__init__(str(error))
        self.error = error


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionLimits:
    """What one question may cost."""

    deadline_s: float = 120.0
    memory_bytes: int = 1_000 * _MEGABYTE
    spill_bytes: int = 10_000 * _MEGABYTE
    """What the database may write to temporary files while it sorts or joins."""


class Allowance:
    """What is left for one question. Threads other than that of the question only call `stop` and `is_over`."""

    def __init__(self, limits: QuestionLimits, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self._monotonic = monotonic
        self._ends_at = monotonic() + limits.deadline_s
        self._stopped: ClewError | None = None
        self._held = 0
        self._row_bytes = 0
        self._lock = threading.Lock()

    def stop(self, error: ClewError) -> None:
        """Stop the question at its next step; the first reason counts."""
        with self._lock:
            self._stopped = self._stopped or error

    @property
    def seconds_left(self) -> float:
        """The time until the deadline."""
        return self._ends_at - self._monotonic()

    @property
    def is_over(self) -> bool:
        """Whether the question was stopped, or its deadline has passed."""
        return self._stopped is not None or self._monotonic() > self._ends_at

    def check(self) -> None:
        """Raise QuestionStopped if the question may not go on."""
        if self._stopped is not None:
            raise QuestionStopped(self._stopped)
        if self._monotonic() > self._ends_at:
            raise QuestionStopped(UserError(QUESTION_TOO_LONG.anywhere(seconds=f"{self.limits.deadline_s:g}")))

    def hold(self, size: int) -> None:
        """Count memory that the answer keeps until the end. Raises QuestionStopped if that is too much."""
        self.check()
        self._held += size
        self._require_room()

    def release(self, size: int) -> None:
        """Memory that is free again."""
        self._held -= size

    def begin_row(self) -> None:
        """The values of the previous row are free again."""
        self._row_bytes = 0

    def hold_for_row(self, size: int) -> None:
        """Count memory that is needed until the next row begins."""
        self.check()
        self._row_bytes += size
        self._require_room()

    def out_of_memory(self) -> QuestionStopped:
        """The error of a question that needs more memory than it may take."""
        megabytes = max(1, self.limits.memory_bytes // _MEGABYTE)
        return QuestionStopped(UserError(QUESTION_TOO_LARGE.anywhere(megabytes=megabytes)))

    def _require_room(self) -> None:
        if self._held + self._row_bytes > self.limits.memory_bytes:
            raise self.out_of_memory()


_current: ContextVar[Allowance | None] = ContextVar("budget", default=None)


def current() -> Allowance | None:
    """The budget of the question at hand; None outside of questions, such as in a run."""
    return _current.get()


def check() -> None:
    """Raise QuestionStopped if the question at hand may not go on."""
    budget = _current.get()
    if budget is not None:
        budget.check()


def hold(size: int) -> None:
    """Count memory that the answer keeps. Raises QuestionStopped if that is too much."""
    budget = _current.get()
    if budget is not None:
        budget.hold(size)


@contextmanager
def holding(size: int) -> Iterator[None]:
    """Count memory that is needed in this block."""
    budget = _current.get()
    if budget is None:
        yield
        return
    budget.hold(size)
    try:
        yield
    finally:
        budget.release(size)


def begin_row() -> None:
    """The values of the previous row are free again."""
    budget = _current.get()
    if budget is not None:
        budget.begin_row()


@contextmanager
def under(budget: Allowance) -> Iterator[Allowance]:
    """A question with this budget. A stopped question raises the error of Clew that says why."""
    before = _current.set(budget)
    try:
        yield budget
    except QuestionStopped as stopped:
        raise stopped.error from None
    finally:
        _current.reset(before)


@contextmanager
def asking(limits: QuestionLimits | None) -> Iterator[None]:
    """A question with these limits; None sets none. Inside another question, it is a part of that one."""
    budget = _current.get()
    if budget is not None:
        budget.check()
    if budget is not None or limits is None:
        yield
        return
    with under(Allowance(limits)):
        yield


class _Limited(Protocol):
    @property
    def question_limits(self) -> QuestionLimits | None:
        """What one question may cost; None if there is no limit."""
        ...


_Asked = TypeVar("_Asked", bound=_Limited)
_Arguments = ParamSpec("_Arguments")
_Answer = TypeVar("_Answer")


def budgeted(
    method: Callable[Concatenate[_Asked, _Arguments], _Answer],
) -> Callable[Concatenate[_Asked, _Arguments], _Answer]:
    """A method that answers a question, within the limits that its object has."""

    @wraps(method)
    def ask(self: _Asked, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Answer:
        with asking(self.question_limits):
            return method(self, *arguments, **named)

    return ask
