"""What the code finds in place of the clock, threads and random numbers of this machine, while a simulation runs.

Clew calls `time`, `threading`, `random`, `secrets` and `uuid4` by the names under which its modules import them. The
names are exchanged in every module of Clew that has been imported, so no call is forgotten, and set back at the end.
"""

import random as real_random
import secrets as real_secrets
import sys
import threading as real_threading
import time as real_time
import uuid as real_uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from typing import Any

import clew.captures.worker
import clew.runs.clock
from clew.bus.dispatcher import OutboxDispatcher
from clew.runs.projector import Projector
from tests.simulation.kernel import Kernel, Process, Task

_kernel: Kernel | None = None


def kernel() -> Kernel:
    """The simulation at hand."""
    assert _kernel is not None, "no simulation runs"
    return _kernel


class Event:
    """An event that tasks wait for in virtual time."""

    def __init__(self) -> None:
        self._is_set = False
        self._waiting: list[Task] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            if not task.dead:
                kernel().wake(task, kernel().now)

    def clear(self) -> None:
        self._is_set = False

    def wait(self, timeout: float | None = None) -> bool:
        task = kernel().task
        if self._is_set or task is None:
            return self._is_set
        self._waiting.append(task)
        if timeout is None:
            kernel().suspend()
        else:
            kernel().sleep(timeout)
        if task in self._waiting:
            self._waiting.remove(task)
        return self._is_set


class Thread:
    """A task of the process that starts it."""

    def __init__(
        self,
        target: Callable[..., object],
        args: tuple[object, ...] = (),
        name: str = "thread",
        daemon: bool | None = None,
    ) -> None:
        del daemon
        self.name = name
        self._target, self._args = target, args
        self._task: Task | None = None
        self._over = Event()

    def start(self) -> None:
        process = kernel().process
        assert process is not None, "only processes have threads"
        process.require_alive()
        self._task = kernel().start(process, self.name, self._run)

    def _run(self) -> None:
        self._target(*self._args)
        self._over.set()

    def join(self, timeout: float | None = None) -> None:
        self._over.wait(timeout)

    def is_alive(self) -> bool:
        return self._task is not None and not self._over.is_set()


class Lock:
    """A lock that is handed over in order. No task of ours keeps one while it waits for long."""

    def __init__(self) -> None:
        self._holder: Task | None = None
        self._is_held = False
        self._free = Event()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        del blocking
        ends_at = kernel().now + timeout if timeout >= 0 else None
        while self._is_held:
            self._free.clear()
            left = None if ends_at is None else ends_at - kernel().now
            if left is not None and left <= 0:
                return False
            self._free.wait(left)
        self._is_held = True
        return True

    def release(self) -> None:
        self._is_held = False
        self._free.set()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class _Named:
    """A module of which some names are others."""

    def __init__(self, real: object, **others: object) -> None:
        self.__dict__.update(others)
        self._real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


class SimulatedDatetime(datetime):
    """The wall clock of the process at hand."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        moment = wall_clock()
        return moment if tz is None else moment.astimezone(tz)


def wall_clock() -> datetime:
    """What the clock of the process at hand shows; that of the simulation, where there is none."""
    process = kernel().process or Process("simulation", kernel())
    return process.now()


def _monotonic() -> float:
    # Databases are made before a simulation begins.
    return kernel().now if _kernel is not None else real_time.monotonic()


def _sleep(seconds: float) -> None:
    if _kernel is not None:
        _kernel.sleep(seconds)
    else:
        real_time.sleep(seconds)


def _time_ns() -> int:
    return int(wall_clock().timestamp() * 1_000_000_000)


def _uuid4() -> real_uuid.UUID:
    return real_uuid.UUID(int=kernel().random.getrandbits(128), version=4)


def _random() -> float:
    return kernel().random.random()


TIME = _Named(real_time, monotonic=_monotonic, sleep=_sleep, time_ns=_time_ns, time=lambda: _time_ns() / 1e9)
THREADING = _Named(real_threading, Event=Event, Thread=Thread, Lock=Lock)
RANDOM = _Named(real_random, random=_random)
SECRETS = _Named(real_secrets, token_hex=lambda size=16: kernel().hex(size))

SUBSTITUTES: list[tuple[object, object]] = [
    (real_time, TIME),
    (real_time.monotonic, _monotonic),
    (real_time.sleep, _sleep),
    (real_threading, THREADING),
    (real_random, RANDOM),
    (real_random.random, _random),
    (real_secrets, SECRETS),
    (real_uuid.uuid4, _uuid4),
]
"""What is exchanged for what, wherever a module of Clew has it."""

IDLE_POLL_S = 5.0
"""How often idle loops look, where that cannot be set: looking for nothing is most of what they do."""

REAL = ("clew.store.sqlite", "clew.store.sqlite_waiting", "clew.budgets", "clew.deferred")
"""Modules that work on this machine: SQLite's file is real, and its locks are never held while others take turns."""


@contextmanager
def installed() -> Iterator[None]:
    """Exchange the names in all modules of Clew."""
    undo: list[Callable[[], None]] = []
    by_id = {id(real): stand_in for real, stand_in in SUBSTITUTES}

    def put(module: object, name: str, value: object) -> None:
        before = getattr(module, name)
        setattr(module, name, value)
        undo.append(lambda: setattr(module, name, before))

    try:
        for module_name, module in sorted(sys.modules.items()):
            if not module_name.startswith("clew.") or module_name.startswith(REAL):
                continue
            for name, value in list(vars(module).items()):
                if id(value) in by_id:
                    put(module, name, by_id[id(value)])
                for function in _functions_of(value, module_name):
                    _exchange_defaults(function, by_id, undo)
        put(clew.runs.clock, "datetime", SimulatedDatetime)
        put(clew.captures.worker, "_POLL_S", IDLE_POLL_S)
        for function in (Projector.run, OutboxDispatcher.run):
            _exchange_poll(function, undo)
        yield
    finally:
        for each in reversed(undo):
            each()


def _exchange_poll(function: Any, undo: list[Callable[[], None]]) -> None:
    before = function.__kwdefaults__
    function.__kwdefaults__ = {**before, "poll_s": IDLE_POLL_S}
    undo.append(lambda: setattr(function, "__kwdefaults__", before))


def _functions_of(value: object, module_name: str) -> Iterator[Any]:
    """The functions that a module defines, also those of its classes."""
    if getattr(value, "__module__", None) != module_name:
        return
    if isinstance(value, type):
        for member in vars(value).values():
            if hasattr(member, "__kwdefaults__"):
                yield member
    elif hasattr(value, "__kwdefaults__"):
        yield value


def _exchange_defaults(function: Any, by_id: dict[int, object], undo: list[Callable[[], None]]) -> None:
    """Defaults such as `monotonic=time.monotonic` were looked up when the module was imported."""
    before = function.__kwdefaults__
    if not before or not any(id(value) in by_id for value in before.values()):
        return
    function.__kwdefaults__ = {name: by_id.get(id(value), value) for name, value in before.items()}
    undo.append(lambda: setattr(function, "__kwdefaults__", before))


@contextmanager
def simulating(current: Kernel) -> Iterator[None]:
    """Let the substitutes ask this simulation."""
    global _kernel  # noqa: PLW0603 - the code asks for the time without saying whose
    before, _kernel = _kernel, current
    try:
        yield
    finally:
        _kernel = before
