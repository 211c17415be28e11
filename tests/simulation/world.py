"""A deployment: workers, commands, a person, a garbage collector, receivers of events; and whoever starts them again.

Everything in the processes is Clew's own code, wired as `clew.api` does it. What is simulated is below it.
"""

import errno
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from clew.diagnostics import ClewError, TransientFailure
from clew.events.values import PlanRef
from clew.gc.garbage import Retention
from clew.runs.limits import QueuePolicy
from clew.runs.projector import RunFollower
from clew.runs.request import RunRequest
from clew.runs.signals import Actor, Role, Signal, SignalType
from tests.simulation.engine import SHAPE
from tests.simulation.kernel import EPOCH, Kernel, Process
from tests.simulation.memory_storage import MemoryFiles
from tests.simulation.simulated_store import DatabaseFile
from tests.simulation.site import QUEUE, Site
from tests.simulation.substitutes import Event, simulating, wall_clock
from tests.simulation.watching import Watch

SHORTEST, LONGEST = 15.0, 50.0
"""How long faults last, in virtual seconds."""
PATIENCE_S = 3600.0
"""How long everything may take to come to rest once faults have stopped."""


class World:
    """One seed."""

    def __init__(self, kernel: Kernel, file: DatabaseFile) -> None:
        self.kernel = kernel
        self.file = file
        file.clear()
        self.files = MemoryFiles(
            clock=kernel.timestamp,
            begins=self._storage_begins,
            ends=self._storage_ends,
            room=self._storage_room,
        )
        self.watch = Watch(kernel, file.path, self.files)
        self.files.changes = self._file_changes
        self.followers: dict[str, RunFollower] = {}
        self.outside = Process("outside", kernel)
        """What is not Clew: it never fails."""
        kernel.processes.append(self.outside)
        self.ends_at = kernel.random.uniform(SHORTEST, LONGEST)
        self.has_server_clock = kernel.random.random() < 0.6
        """Whether moments come from the store, as on PostgreSQL, or from whoever asks, as on SQLite."""
        self.store_skew_s = kernel.random.uniform(-30, 30)
        self.skew = kernel.random.choice([0.0, 0.5, 20.0])
        self.queue_policy = QueuePolicy(
            max_running=QUEUE.max_running,
            max_queued=QUEUE.max_queued,
            approval_required=kernel.random.random() < 0.15,
        )
        self.retention = Retention(runs=kernel.random.choice([1, 2]))
        self.accepted: dict[str, str] = {}
        """By request, the run that its sender was told."""
        self.stops: dict[str, Event] = {}
        self.running: dict[str, Process] = {}
        self.people_are_done = False
        self.starts = 0

    def store_clock(self) -> datetime:
        """The clock that dates events."""
        if self.has_server_clock:
            return EPOCH + timedelta(seconds=round(self.kernel.now + self.store_skew_s, 6))
        return wall_clock()

    # Storage

    def _storage_begins(self, what: str, key: str) -> None:
        kernel = self.kernel
        kernel.call("storage", f"{what} {key}", (0.0, 0.001))
        process = kernel.process
        if process is None:
            return
        if process.is_cut_off("storage"):
            raise OSError(errno.EHOSTUNREACH, "No route to host", key)
        if kernel.strikes("storage refuses"):
            raise OSError(errno.EIO, "Input/output error", key)
        if kernel.strikes("storage slow"):
            kernel.sleep(kernel.random.uniform(0.5, 12.0))

    def _storage_ends(self, what: str, key: str) -> None:
        del what
        self.kernel.may_crash()
        if self.kernel.strikes("storage unknown"):
            raise OSError(errno.EIO, "Input/output error behind the write", key)

    def _storage_room(self, key: str, size: int) -> int:
        del key
        return self.kernel.random.randrange(size) if size and self.kernel.strikes("storage full") else size

    def _file_changes(self, what: str, key: str) -> None:
        self.kernel.say(f"storage.{what} {key}: changes")
        self.watch.file_changes(what, key)

    # Processes

    def spawn(self, name: str, work: Callable[[Site], object]) -> Process:
        """A process of Clew. What it raises at its end is a message to its user, and no more."""
        self.starts += 1
        process_name = f"{name} {self.starts}"

        def main() -> None:
            try:
                work(Site(self))
            except ClewError as error:
                self.kernel.say(f"ends: {error}")
            except OSError as error:
                self.kernel.say(f"ends: {error}")

        skew = self.kernel.random.uniform(-self.skew, self.skew)
        self.running[name] = self.kernel.spawn(process_name, main, skew_s=skew)
        return self.running[name]

    def keep_workers(self) -> None:
        """An init system: starts workers again, and stops one now and then."""
        kernel = self.kernel
        while True:
            for name in ("worker-a", "worker-b"):
                process = self.running.get(name)
                if process is None or process.is_over:
                    self._start_worker(name)
                elif not kernel.is_calm and kernel.random.random() < 0.02:
                    kernel.say(f"asks {name} to stop")
                    self.stops[name].set()
            kernel.sleep(kernel.random.uniform(1.0, 6.0))

    def _start_worker(self, name: str) -> None:
        stop = self.stops[name] = Event()
        self.spawn(name, lambda site: site.worker(name).run(cast("Any", stop)))

    def collect(self) -> None:
        """`clew gc`, again and again."""
        kernel = self.kernel
        while not kernel.is_calm:
            kernel.sleep(kernel.random.uniform(5.0, 40.0))
            before = self.running.get("gc")
            if before is None or before.is_over:
                self.spawn("gc", lambda site: site.collector().collect(self.retention))

    def submit(self) -> None:
        """People ask for runs; whoever gets no answer asks again."""
        kernel = self.kernel
        random = kernel.random
        for number in range(1, random.randint(2, 4) + 1):
            kernel.sleep(random.uniform(0.0, self.ends_at / 4))
            count = random.randint(1, 4)
            shape: dict[str, object] = {"steps": count, "fuse": random.randint(1, 3)}
            if random.random() < 0.6:
                shape["reads"] = "ledger"
            if random.random() < 0.7:
                shape["registers"] = "ledger"
            if random.random() < 0.2:
                shape["bad"] = str(random.randint(1, count) * 10)
            request = RunRequest(
                project_id=random.choice(["close", "report"]),
                plan=PlanRef("plan", "1"),
                period=random.choice(["2026-01", "2026-02"]),
                request_id=f"r-{number}",
                requested_by="ada",
                parameters={SHAPE: shape},
            )
            by_hand = random.random() < 0.4
            self.spawn(f"cli-{number}", partial(self._run, request, by_hand))
        self.people_are_done = True

    def _run(self, request: RunRequest, drives: bool, site: Site) -> None:
        submission = None
        while submission is None:
            with suppress(TransientFailure):
                submission = site.queue.submit(request)
            self.kernel.sleep(0.5)
        if submission.rejection is not None:
            return
        told = self.accepted.setdefault(request.request_id, submission.run.run_id)
        if told != submission.run.run_id:
            self.watch.fail("one run for each request", f"{request.request_id}: {told} and {submission.run.run_id}")
        if drives:
            site.worker("cli", with_jobs=False).run_one(submission.run.run_id, cast("Any", Event()))

    def send_signals(self) -> None:
        """An operator, who sends a signal again where no answer comes, and sometimes where one came."""
        kernel, random = self.kernel, self.kernel.random
        number = 0
        while not kernel.is_calm:
            kernel.sleep(random.uniform(1.0, 9.0))
            runs = [known for known in self.watch.runs.values() if not known.is_deleted and known.events]
            if not runs:
                continue
            number += 1
            run = random.choice(runs)
            kind = random.choice([*SignalType, SignalType.RETRY_STEP, SignalType.RESUME, SignalType.APPROVE])
            step = str(random.randint(1, 4) * 10)
            if run.status == "FAILED":
                step = next((e.step_id for e in reversed(run.events) if e.event_type == "StepFailed"), step)
            needs_step = kind in {SignalType.RETRY_STEP, SignalType.SKIP_STEP}
            signal = Signal(signal_id=f"s-{number}", run_id=run.run_id, type=kind, step_id=step if needs_step else None)
            self.spawn(f"signal-{number}", partial(self._send, signal))

    def _send(self, signal: Signal, site: Site) -> None:
        random, again = self.kernel.random, 1
        while again:
            again = 0
            with suppress(TransientFailure):
                decision = site.signals.send(signal, Actor("ada", Role.ADMIN))
                self.kernel.say(f"signal {signal.type} {signal.signal_id} to {signal.run_id}: {decision.refused}")
                again = int(random.random() < 0.15)
                continue
            again = 1
            self.kernel.sleep(random.uniform(0.1, 2.0))

    # The course of a simulation

    def simulate(self) -> None:
        """Let everything happen, then let it come to rest, then look at all of it."""
        kernel = self.kernel
        for name, work in {
            "init": self.keep_workers,
            "people": self.submit,
            "cron": self.collect,
            "operator": self.send_signals,
        }.items():
            kernel.start(self.outside, name, work)
        kernel.run(lambda: self.watch.violation is not None or kernel.now >= self.ends_at)
        self._calm_down()
        kernel.run(lambda: self.watch.violation is not None or kernel.now >= self._deadline or self._is_settled())
        if self.watch.violation is None and not self._is_settled(now=True):
            self.watch.fail("every accepted run ends or waits for a person", "; ".join(self._open()))
        if self.watch.violation is None:
            self._conclude()
        self.watch.at_the_end()

    def _calm_down(self) -> None:
        kernel = self.kernel
        kernel.say("faults stop")
        kernel.is_calm = True
        self._deadline = kernel.now + PATIENCE_S
        self._looked_at = 0
        for process in kernel.processes:
            process.cut_off.clear()
            process.frozen_until = min(process.frozen_until, kernel.now + 1.0)

    def _open(self) -> list[str]:
        people = [] if self.people_are_done else ["people still ask for runs"]
        busy = [
            f"{name} still runs"
            for name, process in self.running.items()
            if not name.startswith("worker") and not process.is_over
        ]
        return [*people, *busy, *self.watch.unsettled()]

    def _is_settled(self, *, now: bool = False) -> bool:
        if not now and self.kernel.steps < self._looked_at + 100:
            return False
        self._looked_at = self.kernel.steps
        return not self._open()

    def _conclude(self) -> None:
        """Stop the workers, collect garbage when nothing is recent any more, and see what is left."""
        kernel = self.kernel
        for name in [each for each in self.outside.tasks if each.name == "init"]:
            kernel.wake(name, kernel.now + 1e9)
        for stop in self.stops.values():
            stop.set()
        deadline = kernel.now + 300.0
        workers = [self.running[name] for name in self.stops]
        kernel.run(lambda: all(each.is_over for each in workers) or kernel.now > deadline)
        if not all(each.is_over for each in workers):
            self.watch.fail("a worker stops when it is asked to", f"not in {300} s")
            return
        for _ in range(2):
            # The first collection takes runs away; what other attempts of theirs have left goes with the second.
            kernel.now += 7200.0
            collector = self.spawn("gc", lambda site: site.collector().collect(self.retention))
            self._let_end(collector)
        left = self.watch.left_over()
        if left:
            self.watch.fail("what nobody needs is deleted", ", ".join(left[:5]))
        self._compare_followers()

    def _let_end(self, process: Process) -> None:
        self.kernel.run(lambda: process.is_over)

    def _compare_followers(self) -> None:
        """Who was sent everything, in whatever order, knows what the store knows."""
        for run_id, follower in self.followers.items():
            known = self.watch.runs[run_id]
            ids = {event.event_id for event in known.events}
            if known.is_deleted or not ids <= self.watch.received["follower"]:
                continue
            if follower.is_stale or follower.snapshot.last_event_seq != len(known.events):
                self.watch.fail("followers catch up", f"{run_id} at {follower.snapshot.last_event_seq}")


@dataclass(frozen=True)
class Outcome:
    """What a seed gave."""

    seed: int
    violation: str | None
    faults: Mapping[str, int]
    steps: int
    virtual_s: float
    log: tuple[str, ...]
    digest: str
    counts: Mapping[str, int]


def simulate(
    seed: int, file: DatabaseFile, *, rate: float = 1.0, weather: Mapping[str, float] | None = None
) -> Outcome:
    """Run one seed. The substitutes must be installed."""
    kernel = Kernel(seed, rate=rate, weather=weather)
    with simulating(kernel):
        world = World(kernel, file)
        try:
            world.simulate()
        finally:
            kernel.close()
            world.watch.close()
    events = [event for known in world.watch.runs.values() for event in known.events]
    counts = {
        "processes": world.starts,
        "runs": len(world.watch.runs),
        "events": len(events),
        "commits looked at": world.watch.checks,
        "moves of the model": sum(known.model.seen.total() for known in world.watch.runs.values()),
        "runs deleted": sum(known.is_deleted for known in world.watch.runs.values()),
    }
    violation = world.watch.violation
    return Outcome(
        seed,
        str(violation) if violation is not None else None,
        dict(kernel.faults),
        kernel.steps,
        kernel.now,
        tuple(kernel.log),
        kernel.digest,
        counts,
    )
