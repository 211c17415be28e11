"""Kills and freezes workers at random while they drive runs, and checks that nothing was lost or doubled.

python -m tests.chaos.chaos --minutes 10 --runs 200 --workers 4 [--postgresql] [--seed N]
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from pathlib import Path

from clew.events import StepCompleted, verify_chain
from clew.events.reducer import project_run
from clew.events.snapshot import RunStatus
from clew.runs.limits import LeasePolicy
from clew.runs.request import RunFilter
from clew.runs.stores import RunStores
from clew.runs.worker import stop_on_signals
from clew.storage.committed import committed_part
from clew.storage.roots import storage_at
from clew.store import StoreOptions, open_run_stores
from tests.runs.runs_crashes import WritingSteps
from tests.runs.runs_workers import MANY, FakeExecutors, Site
from tests.store.seals import KEY, the_key
from tests.store.store_postgres import postgres_server

LEASE = LeasePolicy(ttl_s=1.0, poll_s=0.1)
STEPS = 4
OPTIONS = StoreOptions(key=the_key, busy_timeout_s=10)


@dataclass(frozen=True)
class Plan:
    """How much chaos."""

    seconds: float
    runs: int
    workers: int
    seed: int = 0
    between_s: tuple[float, float] = (0.05, 0.6)


@dataclass
class Outcome:
    """What was found afterwards."""

    kills: int = 0
    freezes: int = 0
    problems: list[str] = field(default_factory=list)


def work(url: str, folder: str) -> None:
    """A worker, until it is killed or told to stop."""
    with open_run_stores(url, OPTIONS) as stores, stop_on_signals() as stop:
        executors = FakeExecutors(STEPS, WritingSteps(Path(folder)), fuse=2)
        Site(stores, executors, policy=MANY, lease=LEASE).worker(name=str(os.getpid()), capacity=3).run(stop)


class Herd:
    """Worker processes. Each that is killed is replaced."""

    def __init__(self, url: str, folder: Path, count: int) -> None:
        self._url = url
        self._folder = folder
        self._context: ForkServerContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["clew.store", "clew.runs.worker", "runs_crashes", "chaos"])
        self._processes: list[BaseProcess] = [self._start() for _ in range(count)]

    def kill(self, chance: random.Random) -> None:
        victim = chance.randrange(len(self._processes))
        self._processes[victim].kill()
        self._processes[victim].join()
        self._processes[victim] = self._start()

    def freeze(self, chance: random.Random, seconds: float) -> None:
        pid = self._processes[chance.randrange(len(self._processes))].pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        threading.Event().wait(seconds)
        os.kill(pid, signal.SIGCONT)

    def stop(self) -> None:
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join(60)
            if process.is_alive():
                process.kill()
                process.join()

    def _start(self) -> BaseProcess:
        process = self._context.Process(target=work, args=(self._url, str(self._folder)))
        process.start()
        return process


def wreak(url: str, folder: Path, plan: Plan) -> Outcome:
    """Submit runs over the whole time, kill and freeze workers meanwhile, let the rest finish, and look."""
    chance = random.Random(plan.seed)
    outcome = Outcome()
    with open_run_stores(url, OPTIONS) as stores:
        site = Site(stores, FakeExecutors())
        herd = Herd(url, folder, plan.workers)
        try:
            started = time.monotonic()
            submitted = 0
            while (elapsed := time.monotonic() - started) < plan.seconds or submitted < plan.runs:
                due = plan.runs if elapsed >= plan.seconds else int(plan.runs * elapsed / plan.seconds) + 1
                while submitted < min(due, plan.runs):
                    submitted += 1
                    site.submit(f"request {submitted}", period=f"p{submitted % (plan.runs // 2 + 1)}")
                threading.Event().wait(chance.uniform(*plan.between_s))
                if chance.random() < 0.15:
                    herd.freeze(chance, LEASE.ttl_s * 1.5)
                    outcome.freezes += 1
                else:
                    herd.kill(chance)
                    outcome.kills += 1
            _let_finish(stores, plan)
        finally:
            herd.stop()
        outcome.problems = problems(stores, plan.runs, folder)
    return outcome


def _let_finish(stores: RunStores, plan: Plan) -> None:
    deadline = time.monotonic() + 60 + plan.runs
    while time.monotonic() < deadline:
        if len(stores.catalog.runs(RunFilter(status=RunStatus.COMPLETED), limit=plan.runs)) == plan.runs:
            return
        threading.Event().wait(0.1)


def problems(stores: RunStores, expected_runs: int, folder: Path) -> list[str]:
    """Everything that contradicts: every run completed, every event once, no gap, chain and files intact."""
    found: list[str] = []
    runs = stores.catalog.runs(RunFilter(), limit=expected_runs + 1)
    if len(runs) != expected_runs:
        found.append(f"{len(runs)} runs instead of {expected_runs}")
    wanted = ["RunQueued", "RunStarted", *["StepStarted"] * STEPS, *["StepCompleted"] * STEPS, "RunCompleted"]
    for run in runs:
        events = stores.reader.events(run.run_id)
        types = sorted(event.event_type for event in events if event.event_type != "AlertRaised")
        if types != sorted(wanted):
            found.append(f"{run.run_id}: {types}")
        if [event.run_seq for event in events] != list(range(1, run.last_seq + 1)):
            found.append(f"{run.run_id}: the numbers of its events have gaps")
        if project_run(run.run_id, events).status is not RunStatus.COMPLETED:
            found.append(f"{run.run_id}: {run.status}")
        chain = verify_chain(
            stores.reader.raw_events(run.run_id), key=KEY, last_seq=run.last_seq, last_hash=run.last_hash
        )
        found.extend(f"{run.run_id}: {broken.problem}" for broken in chain.breaks)
        for event in events:
            if isinstance(event.body, StepCompleted):
                [file] = committed_part(storage_at(folder), event.body.artifacts[0]).files
                text = (folder / file.path).read_text()
                if text != f"half of {event.step_id}, all of {event.step_id}":
                    found.append(f"{run.run_id}: {file.path} was committed and is not whole")
    return found


@contextmanager
def place(*, postgresql: bool) -> Iterator[tuple[str, Path]]:
    """An empty database and a folder for what steps leave behind."""
    with tempfile.TemporaryDirectory(prefix="chaos") as name:
        folder = Path(name)
        if postgresql:
            with postgres_server() as server:
                yield server.url, folder
        else:
            yield f"sqlite:///{folder / 'state.db'}", folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--postgresql", action="store_true")
    given = parser.parse_args()
    plan = Plan(given.minutes * 60, given.runs, given.workers, given.seed)
    with place(postgresql=given.postgresql) as (url, folder):
        outcome = wreak(url, folder, plan)
    print(f"seed {plan.seed}: {outcome.kills} kills, {outcome.freezes} freezes, {plan.runs} runs")  # noqa: T201
    for problem in outcome.problems:
        print(problem)  # noqa: T201
    return 1 if outcome.problems else 0


if __name__ == "__main__":
    sys.exit(main())
