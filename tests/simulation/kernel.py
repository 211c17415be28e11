"""The simulated computer: virtual time, processes whose tasks take turns, and the faults that a seed decides.

One task runs at a time. It hands over only where it calls something that is simulated: the clock does not move in
between, so everything else happens at once. A process dies by an exception that no code may catch for long: whatever
its `finally` blocks call raises it again, and changes nothing.
"""

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from greenlet import getcurrent, greenlet

EPOCH = datetime(2026, 3, 1, tzinfo=UTC)
"""When every simulation begins."""

PLACES = ("store", "storage", "bus")
"""What a process can be cut off from."""


class Crash(BaseException):
    """The process is gone. Not an Exception, so that only the end of the task takes it."""


class Violation(Exception):
    """Something happened that must not happen."""

    def __init__(self, invariant: str, detail: str) -> None:
        super().__init__(f"{invariant}: {detail}")
        self.invariant = invariant


RATES: Mapping[str, float] = {
    "crash": 0.0025,
    "freeze": 0.002,
    "cut off": 0.001,
    "clock jump": 0.002,
    "store refuses": 0.006,
    "store slow": 0.01,
    "store silent": 0.002,
    "store full": 0.003,
    "commit lost": 0.006,
    "commit unknown": 0.012,
    "storage refuses": 0.01,
    "storage slow": 0.01,
    "storage full": 0.01,
    "storage unknown": 0.01,
    "engine fails": 0.03,
    "engine slow": 0.08,
    "bus refuses": 0.08,
    "bus slow": 0.03,
    "bus unknown": 0.06,
    "bus duplicates": 0.06,
    "bus delays": 0.1,
}
"""How likely each fault is where it can happen, before the seed makes it more or less likely, or leaves it out."""


class Task(greenlet):  # type: ignore[misc]  # it has no types
    """A thread of a simulated process."""

    def __init__(self, process: "Process", name: str, work: Callable[[], object]) -> None:
        # Without a parent of its own choice, a task that ends would hand over to whoever has started it.
        super().__init__(self._work, process.kernel.main)
        self.process = process
        self.name = name
        self.turn = 0
        """Counts its waits: an entry in the queue that is older counts no more."""
        self.error: Exception | None = None
        self._to_do = work

    def _work(self) -> None:
        try:
            self._to_do()
        except Crash:
            pass
        except Exception as error:  # noqa: BLE001 - it is looked at by the scheduler
            self.error = error


@dataclass(eq=False)
class Process:
    """A process on a machine of its own."""

    name: str
    kernel: "Kernel"
    skew_s: float = 0.0
    """How far its wall clock is off."""
    is_dead: bool = False
    frozen_until: float = 0.0
    cut_off: dict[str, float] = field(default_factory=dict)
    """Until when it does not reach a place."""
    tasks: list[Task] = field(default_factory=list)

    def now(self) -> datetime:
        """What its wall clock shows."""
        return EPOCH + timedelta(seconds=round(self.kernel.now + self.skew_s, 6))

    def require_alive(self) -> None:
        if self.is_dead:
            raise Crash

    def is_cut_off(self, place: str) -> bool:
        return self.cut_off.get(place, 0.0) > self.kernel.now

    @property
    def is_over(self) -> bool:
        return self.is_dead or all(task.dead for task in self.tasks)


class Kernel:
    """Virtual time and whose turn it is. Everything random comes from one generator."""

    def __init__(self, seed: int, *, rate: float = 1.0, weather: Mapping[str, float] | None = None) -> None:
        self.seed = seed
        self.random = Random(f"clew {seed}")
        self.now = 0.0
        self.log: list[str] = []
        self.faults: Counter[str] = Counter()
        self.steps = 0
        self.is_calm = False
        """Whether faults have stopped."""
        self.processes: list[Process] = []
        self.rates = {**self._rates(rate), **(weather or {})}
        self._queue: list[tuple[float, int, Task, int]] = []
        self._order = 0
        self.main = getcurrent()
        self._to_kill: list[Task] = []
        self._sheltered = 0

    def _rates(self, rate: float) -> dict[str, float]:
        """Each seed has its own weather: half of the faults do not happen at all, some often."""
        return {
            kind: base * rate * 4 ** self.random.uniform(-1, 1) if self.random.random() < 0.6 else 0.0
            for kind, base in RATES.items()
        }

    # Tasks

    @property
    def task(self) -> Task | None:
        """The task whose turn it is; None for the simulation itself."""
        current = getcurrent()
        return current if isinstance(current, Task) else None

    @property
    def process(self) -> Process | None:
        """The process whose turn it is."""
        task = self.task
        return task.process if task is not None else None

    def start(self, process: Process, name: str, work: Callable[[], object]) -> Task:
        """Start a thread."""
        task = Task(process, name, work)
        # A new greenlet would begin with no context; threads of ours inherit none either.
        process.tasks.append(task)
        self.wake(task, self.now + self.random.uniform(0.0, 0.002))
        return task

    def spawn(self, name: str, work: Callable[[], object], *, skew_s: float = 0.0) -> Process:
        """Start a process."""
        process = Process(name, self, skew_s)
        self.processes.append(process)
        self.say(f"starts, its clock is off by {skew_s:.3f} s", process)
        self.start(process, "main", work)
        return process

    def wake(self, task: Task, at: float) -> None:
        """Give a task its turn at a moment, and not before."""
        task.turn += 1
        self._order += 1
        heapq.heappush(self._queue, (at, self._order, task, task.turn))

    def suspend(self) -> None:
        """Hand over without a moment to come back: someone else has to wake the task."""
        task = self.task
        assert task is not None, "the simulation itself never waits"
        task.process.require_alive()
        self.main.switch()
        task.process.require_alive()

    def sleep(self, seconds: float) -> None:
        """Hand over for a while. Outside of tasks, and where nothing may come between, no time passes."""
        task = self.task
        if task is None or self._sheltered:
            return
        task.process.require_alive()
        self.wake(task, self.now + max(0.0, seconds))
        self.suspend()

    @contextmanager
    def sheltered(self) -> Iterator[None]:
        """A transaction is one step: nothing comes between, and nothing in it fails by itself."""
        self._sheltered += 1
        try:
            yield
        finally:
            self._sheltered -= 1

    def kill(self, process: Process) -> None:
        """End a process at once, in the middle of whatever it does."""
        if process.is_dead:
            return
        process.is_dead = True
        self.say("dies", process)
        self._to_kill.extend(process.tasks)

    def run(self, until: Callable[[], bool]) -> None:
        """Give turns until there is nothing more to do, or a condition holds before a turn."""
        while self._queue:
            self._bury()
            if until():
                return
            at, _, task, turn = heapq.heappop(self._queue)
            if task.dead or task.turn != turn or task.process.is_dead:
                continue
            if task.process.frozen_until > at:
                self._order += 1
                heapq.heappush(self._queue, (task.process.frozen_until, self._order, task, turn))
                continue
            self.now = max(self.now, at)
            self.steps += 1
            task.switch()
            if task.error is not None:
                error, task.error = task.error, None
                raise error
        self._bury()

    def _bury(self) -> None:
        while self._to_kill:
            task = self._to_kill.pop()
            # One that has not begun, or has ended, has no frame.
            if task.gr_frame is not None:
                task.throw(Crash())

    def close(self) -> None:
        """End all processes, so that nothing of them stays in memory."""
        for process in self.processes:
            process.is_dead = True
            self._to_kill.extend(process.tasks)
        self._bury()

    def timestamp(self) -> float:
        """The present moment, in seconds since 1970."""
        return (EPOCH + timedelta(seconds=self.now)).timestamp()

    # What happens

    def say(self, what: str, process: Process | None = None) -> None:
        """Write a line of the log."""
        found = process or self.process
        task = self.task
        who = "simulation" if found is None else found.name
        where = f"/{task.name}" if task is not None and found is task.process else ""
        self.log.append(f"{self.now:12.6f} {who}{where}: {what}")

    @property
    def digest(self) -> str:
        """Of the whole log."""
        return hashlib.sha256("\n".join(self.log).encode()).hexdigest()

    def strikes(self, kind: str) -> bool:
        """Whether a fault happens here. It is counted if it does."""
        if self.is_calm or self.task is None or self._sheltered or self.random.random() >= self.rates[kind]:
            return False
        self.faults[kind] += 1
        self.say(f"FAULT {kind}")
        return True

    def call(self, place: str, what: str, latency_s: tuple[float, float] = (0.0002, 0.004)) -> None:
        """A call begins: time passes, others take turns, and the process may meet its fate."""
        task = self.task
        if task is None or self._sheltered:
            return
        process = task.process
        process.require_alive()
        self.say(f"{place}.{what}")
        self.sleep(self.random.uniform(*latency_s))
        self.may_crash()
        if self.strikes("freeze"):
            process.frozen_until = self.now + self.random.uniform(0.5, 45.0)
            self.sleep(0.0)
        if self.strikes("clock jump"):
            process.skew_s += self.random.choice([-1, 1]) * self.random.uniform(0.5, 40.0)
        if self.strikes("cut off"):
            cut = self.random.choice(PLACES)
            process.cut_off[cut] = self.now + self.random.uniform(1.0, 60.0)
            self.say(f"does not reach the {cut} any more")

    def may_crash(self) -> None:
        """Between two calls, or in the middle of one."""
        process = self.process
        if process is not None and self.strikes("crash"):
            self.kill(process)
            raise Crash

    # Randomness for the code

    def hex(self, size: int) -> str:
        """A random number, as text."""
        return f"{self.random.getrandbits(8 * size):0{2 * size}x}"

    def __repr__(self) -> str:
        return f"seed {self.seed} at {self.now:.3f} s"
