"""Kills and freezes processes that mint trace ids under few leased node ids, with clocks that disagree and step.

python -m tests.chaos.trace_id_chaos --minutes 10 --processes 8 [--postgresql] [--seed N]
"""

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from array import array
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from clew.diagnostics import ClewError
from clew.store import StoreOptions
from clew.store.tracelink import open_trace_link_stores
from clew.tracelink import LeasedTraceIds, NodeLeasePolicy, NodeLeases, monotonic_epoch_clock
from tests.store.store_postgres import postgres_server

POLICY = NodeLeasePolicy(duration_ms=300, cooldown_ms=50)
NODE_IDS = (3, 4, 5)
OPTIONS = StoreOptions(busy_timeout_s=10)
ACTION_S = (0.05, 0.4)


@dataclass(frozen=True)
class Plan:
    """How much chaos."""

    seconds: float
    processes: int
    seed: int = 0


@dataclass(frozen=True)
class Outcome:
    """What was found afterwards."""

    ids: int
    repeated: int
    leases: int
    kills: int
    freezes: int


class SteppingClock:
    """Ahead or behind by up to ten seconds, and set anew from time to time."""

    def __init__(self, chance: random.Random) -> None:
        self._true = monotonic_epoch_clock()
        self._chance = chance
        self._offset = chance.randint(-10_000, 10_000)

    def __call__(self) -> int:
        if self._chance.random() < 0.0005:
            self._offset = self._chance.randint(-10_000, 10_000)
        return self._true() + self._offset


def mint(url: str, folder: str, seed: int) -> None:
    chance = random.Random(seed)
    clock = SteppingClock(chance)
    target = os.open(f"{folder}/{os.getpid()}-{seed}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    with open_trace_link_stores(url, OPTIONS, POLICY) as stores:
        while True:
            try:
                mint_while_held(stores.node_leases, clock, chance, target)
            except ClewError:
                time.sleep(0.02)


def mint_while_held(leases: NodeLeases, clock: SteppingClock, chance: random.Random, target: int) -> None:
    minting = LeasedTraceIds(leases, policy=POLICY, node_id=chance.choice(NODE_IDS), clock_ms=clock)
    for _ in range(chance.randint(5, 200)):
        ids = array("Q", (minting.next_id() for _ in range(100)))
        if chance.random() < 0.1:
            ids.extend(minting.reserve_block(chance.randint(1, 5000)))
        os.write(target, ids.tobytes())
        if chance.random() < 0.3:
            minting.keepalive()
    if chance.random() < 0.5:
        minting.close()


def wreak(url: str, folder: Path, plan: Plan) -> Outcome:
    """Start processes and do things to them until the time is over; then count."""
    chance = random.Random(plan.seed)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["clew.store.tracelink", "trace_id_chaos"])
    with open_trace_link_stores(url, OPTIONS, POLICY):
        pass

    def start(number: int) -> BaseProcess:
        process = context.Process(target=mint, args=(url, str(folder), number), daemon=True)
        process.start()
        return process

    processes = [start(number) for number in range(plan.processes)]
    kills = freezes = 0
    end = time.monotonic() + plan.seconds
    while time.monotonic() < end or not (kills and freezes and has_ids(folder)):
        time.sleep(chance.uniform(*ACTION_S))
        victim = chance.randrange(len(processes))
        if chance.random() < 0.5:
            processes[victim].kill()
            processes[victim].join()
            kills += 1
            processes[victim] = start(plan.processes + kills)
        else:
            freezes += 1
            os.kill(processes[victim].pid or 0, signal.SIGSTOP)
            time.sleep(chance.uniform(0.2, 1.2))
            os.kill(processes[victim].pid or 0, signal.SIGCONT)
    for process in processes:
        process.kill()
        process.join()
    return count(url, folder, kills, freezes)


def has_ids(folder: Path) -> bool:
    return any(path.stat().st_size for path in folder.iterdir())


def count(url: str, folder: Path, kills: int, freezes: int) -> Outcome:
    ids: list[int] = []
    for path in folder.iterdir():
        written = path.read_bytes()
        ids.extend(array("Q", written[: len(written) // 8 * 8]))
    with open_trace_link_stores(url, OPTIONS, POLICY) as stores:
        leases = len(stores.node_leases.record())
    return Outcome(len(ids), len(ids) - len(set(ids)), leases, kills, freezes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    plan = Plan(arguments.minutes * 60, arguments.processes, arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "ids").mkdir()
        if arguments.postgresql:
            with postgres_server() as server:
                outcome = wreak(server.url, Path(name) / "ids", plan)
        else:
            outcome = wreak(f"sqlite:///{name}/state.db", Path(name) / "ids", plan)
    print(f"seed {arguments.seed}: {outcome}")  # noqa: T201
    sys.exit(outcome.repeated > 0)


if __name__ == "__main__":
    main()
