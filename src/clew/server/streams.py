"""Event streams: however many clients follow a run, its store is polled once."""

import asyncio
import json
import logging
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import field

from starlette.concurrency import run_in_threadpool

from clew.api.event_pages import EventPage
from clew.api.workspace import Workspace
from clew.deferred import dataclass
from clew.diagnostics import ClewError, TransientFailure
from clew.diagnostics.codes.server import TOO_MANY_STREAMS
from clew.events.envelope import StoredEvent
from clew.events.reducer import Gap
from clew.events.snapshot import RunStatus

_log = logging.getLogger(__name__)

_KEPT = 1000
"""The number of events of a run kept for listeners; a listener that is further behind reads from the store."""
_BATCH = 500

StillAllowed = Callable[[], Awaitable[bool]]


@dataclass(slots=True)
class Position:
    """The position of one listener."""

    seen: int
    gap: Gap | None = None


@dataclass(frozen=True, slots=True)
class _Sent:
    """An event as sent to clients, encoded once for all listeners."""

    seq: int
    text: bytes
    without_values: bytes
    """The same for listeners who may not see values of rows, which messages of failures may quote."""


@dataclass
class _Tail:
    """The newest events of a run, while it has listeners."""

    high: int
    """The newest event without a gap before it."""
    events: deque[_Sent] = field(default_factory=lambda: deque(maxlen=_KEPT))
    gap: Gap | None = None
    is_over: bool = False
    status: RunStatus | None = None
    listeners: int = 0
    waiting: set[asyncio.Event] = field(default_factory=set)
    """Listeners that are up to date."""
    task: asyncio.Task[None] | None = None

    @property
    def low(self) -> int:
        """The event after which all events are kept."""
        return self.events[0].seq - 1 if self.events else self.high

    def behind(self, seen: int) -> list[_Sent]:
        return [event for event in self.events if event.seq > seen]

    def wake(self) -> None:
        for listener in self.waiting:
            listener.set()


class EventStreams:
    """Sends events to listeners. Belongs to one event loop."""

    def __init__(self, workspace: Workspace, *, poll_s: float, keep_alive_s: float, most_per_caller: int) -> None:
        self._workspace = workspace
        self._most_per_caller = most_per_caller
        self._callers = Counter[str]()
        self._poll_s = poll_s
        self._keep_alive_s = keep_alive_s
        self._tails: dict[str, _Tail] = {}
        self._closing = False

    @property
    def listeners(self) -> int:
        """The current number of listeners."""
        return sum(tail.listeners for tail in self._tails.values())

    def close(self) -> None:
        """End all streams. Clients reconnect on their own, to this server or another."""
        self._closing = True

    def enter(self, caller: str) -> None:
        """Count a stream of a caller. Raises TransientFailure TooManyStreams if they hold too many."""
        if self._callers[caller] >= self._most_per_caller:
            raise TransientFailure(TOO_MANY_STREAMS.anywhere(streams=self._callers[caller]))
        self._callers[caller] += 1

    def leave(self, caller: str) -> None:
        """A stream of a caller has ended."""
        self._callers[caller] -= 1
        if self._callers[caller] == 0:
            del self._callers[caller]

    async def listen(
        self, run_id: str, position: Position, still_allowed: StillAllowed, *, sees_values: bool
    ) -> AsyncIterator[bytes]:
        """The stream of one listener, from its position until the run has ended."""
        tail = self._enter(run_id, position.seen)
        try:
            while not self._closing:
                parts = await self._news(run_id, tail, position, sees_values=sees_values)
                for part in parts:
                    yield part
                if tail.is_over and tail.gap is None and position.seen >= tail.high:
                    status = tail.status.value if tail.status else None
                    yield _message("end", {"status": status, "last_seq": position.seen})
                    return
                if not parts and not await self._changed(tail, position):
                    if not await still_allowed():
                        return
                    yield b": still here\n\n"
        finally:
            self._leave(run_id, tail)

    async def _news(self, run_id: str, tail: _Tail, position: Position, *, sees_values: bool) -> list[bytes]:
        """The events that the listener has not received yet."""
        parts = list[bytes]()
        events = tail.behind(position.seen)
        if position.seen < tail.low:
            events = await run_in_threadpool(self._read_back, run_id, position.seen)
        if events:
            if position.gap is not None:
                parts.append(_message("resumed", position.gap.to_json()))
                position.gap = None
            parts.extend(event.text if sees_values else event.without_values for event in events)
            position.seen = events[-1].seq
        elif tail.gap is not None and tail.gap != position.gap and position.seen >= tail.high:
            position.gap = tail.gap
            parts.append(_message("stale", tail.gap.to_json()))
        return parts

    def _read_back(self, run_id: str, seen: int) -> list[_Sent]:
        return _sent(self._page(run_id, seen))

    async def _changed(self, tail: _Tail, position: Position) -> bool:
        """Wait for new events; False if none arrived for a while."""
        is_new_gap = tail.gap is not None and tail.gap != position.gap
        if tail.high > position.seen or tail.is_over or is_new_gap:
            return True
        news = asyncio.Event()
        tail.waiting.add(news)
        try:
            await asyncio.wait_for(news.wait(), self._keep_alive_s)
        except TimeoutError:
            return False
        finally:
            tail.waiting.discard(news)
        return True

    def _enter(self, run_id: str, seen: int) -> _Tail:
        tail = self._tails.get(run_id)
        if tail is None:
            tail = self._tails[run_id] = _Tail(seen)
            tail.task = asyncio.get_running_loop().create_task(self._poll(run_id, tail))
        tail.listeners += 1
        return tail

    def _leave(self, run_id: str, tail: _Tail) -> None:
        tail.listeners -= 1
        if tail.listeners == 0 and tail.task is not None:
            tail.task.cancel()
            if self._tails.get(run_id) is tail:
                del self._tails[run_id]

    async def _poll(self, run_id: str, tail: _Tail) -> None:
        while not tail.is_over or tail.gap is not None:
            before = (tail.high, tail.gap, tail.is_over)
            try:
                page = await run_in_threadpool(self._page, run_id, tail.high)
            except TransientFailure as away:
                _log.debug("events of run %s cannot be read: %s", run_id, away)
            except ClewError:
                tail.is_over, tail.gap = True, None
            else:
                tail.events.extend(_sent(page))
                tail.high += len(page.events)
                tail.gap, tail.status = page.gap, page.status
                # Events may have arrived after the status was read: the stream ends only when no more are left.
                tail.is_over = page.status.is_terminal and not page.events and page.gap is None
            if self._closing or before != (tail.high, tail.gap, tail.is_over):
                tail.wake()
            if not tail.is_over or tail.gap is not None:
                await asyncio.sleep(self._poll_s)
        if self._tails.get(run_id) is tail:
            # A failed run may be reopened: later listeners get a new tail.
            del self._tails[run_id]

    def _page(self, run_id: str, seen: int) -> EventPage:
        return self._workspace.find_run(run_id).event_page(after=seen, limit=_BATCH)


def _sent(page: EventPage) -> list[_Sent]:
    both = zip(page.events, page.without_values().events, strict=True)
    return [_Sent(event.run_seq, _text(event), _text(other)) for event, other in both]


def _text(event: StoredEvent) -> bytes:
    data = json.dumps(event.to_json(), separators=(",", ":"))
    return f"id: {event.run_seq}\nevent: run-event\ndata: {data}\n\n".encode()


def _message(name: str, data: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
