"""Places for questions about rows: a few at once for each caller and in all, some more wait, the rest are refused.

Whatever else the server does, health and metrics among it, needs no place. A question is stopped when its deadline
passes, when its caller leaves, and when the server stops.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import field

from fastapi import Request

from clew.api.asking import Question
from clew.api.workspace import Workspace
from clew.deferred import dataclass
from clew.definitions.settings import QuestionSettings
from clew.diagnostics import ClewError, TransientFailure, UserError
from clew.diagnostics.codes.questions import (
    CALLER_GONE,
    QUESTION_CODES,
    QUESTIONS_BUSY,
    SERVER_STOPPING,
    TOO_MANY_QUESTIONS,
)

_REASONS = frozenset(code.name for code in QUESTION_CODES)


@dataclass(eq=False)
class _Asked:
    """A question with a place, or one that waits for its turn."""

    question: Question
    caller: str
    turn: "asyncio.Future[None]"
    has_place: bool = False

    def stop(self, error: ClewError) -> None:
        """Stop it. May be called from any thread."""
        self.question.stop(error)
        self._settle_soon(error)

    def take_place(self) -> None:
        """It is its turn."""
        self.has_place = True
        self._settle_soon(None)

    def _settle_soon(self, error: ClewError | None) -> None:
        self.turn.get_loop().call_soon_threadsafe(self._settle, error)

    def _settle(self, error: ClewError | None) -> None:
        if not self.turn.done():
            if error is None:
                self.turn.set_result(None)
            else:
                self.turn.set_exception(error)


@dataclass(eq=False)
class QuestionPool:
    """The places of one application. The settings are those of its environment."""

    workspace: Workspace
    _asked: list[_Asked] = field(default_factory=list)
    """In the order of their arrival."""
    _stopped: Counter[str] = field(default_factory=Counter)
    _closing: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def running(self) -> int:
        """How many questions have a place."""
        return sum(each.has_place for each in self._asked)

    @property
    def waiting(self) -> int:
        """How many questions wait for a place."""
        return sum(not each.has_place for each in self._asked)

    @property
    def stopped(self) -> Mapping[str, int]:
        """How many questions were refused or stopped, by the code of the error."""
        return {reason: self._stopped[reason] for reason in _REASONS}

    @asynccontextmanager
    async def place(self, request: Request, caller: str) -> AsyncIterator[None]:
        """A question with a place. Raises the error that refuses or stops it."""
        try:
            asked = self._enter(caller)
            watching = asyncio.create_task(_watch(request, asked))
            try:
                await self._turn(asked)
                with asked.question.answering():
                    yield
            finally:
                self._leave(asked)
                watching.cancel()
        except ClewError as error:
            if error.code in _REASONS:
                self._stopped[error.code] += 1
            raise

    def close(self) -> None:
        """Stop all questions and refuse new ones."""
        with self._lock:
            self._closing = True
            asked = list(self._asked)
        for each in asked:
            each.stop(_stopping())

    def _enter(self, caller: str) -> _Asked:
        """Take a place, or a place in the queue. Raises TransientFailure if the queue is full."""
        asked = _Asked(self.workspace.question(), caller, asyncio.get_running_loop().create_future())
        settings = self.workspace.question_settings
        with self._lock:
            if self._closing:
                raise _stopping()
            if self._has_room(caller, settings):
                asked.take_place()
            else:
                self._require_room_to_wait(caller, settings)
            self._asked.append(asked)
        return asked

    def _require_room_to_wait(self, caller: str, settings: QuestionSettings) -> None:
        own = sum(each.caller == caller and not each.has_place for each in self._asked)
        if own >= settings.max_waiting_per_caller:
            retry_after_s = settings.retry_after_seconds
            raise TransientFailure(TOO_MANY_QUESTIONS.anywhere(waiting=own, retry_after_s=retry_after_s))
        if self.waiting >= settings.max_waiting:
            raise _busy(settings)

    async def _turn(self, asked: _Asked) -> None:
        try:
            await asyncio.wait_for(asked.turn, max(0.0, asked.question.seconds_left))
        except TimeoutError:
            raise _busy(self.workspace.question_settings) from None

    def _leave(self, asked: _Asked) -> None:
        """Give up the place, or the wait for one, and let others have their turn."""
        settings = self.workspace.question_settings
        with self._lock:
            self._asked.remove(asked)
            for each in self._asked:
                if not each.has_place and self._has_room(each.caller, settings):
                    each.take_place()

    def _has_room(self, caller: str, settings: QuestionSettings) -> bool:
        own = sum(each.caller == caller and each.has_place for each in self._asked)
        return self.running < settings.max_running and own < settings.max_running_per_caller


async def _watch(request: Request, asked: _Asked) -> None:
    """Stop a question when its caller leaves, also while it waits."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
    asked.stop(UserError(CALLER_GONE.anywhere()))


def _busy(settings: QuestionSettings) -> TransientFailure:
    return TransientFailure(QUESTIONS_BUSY.anywhere(retry_after_s=settings.retry_after_seconds))


def _stopping() -> TransientFailure:
    return TransientFailure(SERVER_STOPPING.anywhere())
