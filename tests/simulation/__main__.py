"""`make simulate`: many seeds, or one with its whole log; also with a mistake, or with more faults than usual."""

# ruff: noqa: T201 - a command speaks by printing

import argparse
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count, islice, takewhile
from multiprocessing import get_context

from tests.simulation.mutants import MUTANTS, Mutant, mutated
from tests.simulation.simulated_store import DatabaseFile, database_file
from tests.simulation.substitutes import installed
from tests.simulation.world import Outcome, simulate

_SHOWN = 10
_SEEDS = 1000
"""How many seeds are tried where neither their number nor a time is given."""


@dataclass(frozen=True)
class Conditions:
    """What is the same for all seeds."""

    rate: float = 1.0
    mutant: str | None = None

    @property
    def planted(self) -> Mutant | None:
        """The mistake."""
        return next((each for each in MUTANTS if each.name == self.mutant), None)

    def simulated(self, seed: int, file: DatabaseFile) -> Outcome:
        """What a seed gives; a mistake is looked for in its own weather."""
        planted = self.planted
        return planted.simulated(seed, file) if planted is not None else simulate(seed, file, rate=self.rate)

    @contextmanager
    def made(self) -> Iterator[DatabaseFile]:
        """A database for simulations, with the substitutes in place and the mistake made."""
        planted = self.planted
        before = logging.root.manager.disable
        logging.disable(logging.CRITICAL)
        try:
            with database_file() as file, installed(), mutated(planted) if planted else nullcontext():
                yield file
        finally:
            logging.disable(before)

    def asked_again(self, seed: int) -> str:
        """The command that replays a seed."""
        rate = f" RATE={self.rate:g}" if self.rate != 1.0 else ""
        return f"make simulate SEED={seed}" + (f' MUTANT="{self.mutant}"' if self.mutant else rate)


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 where a seed failed."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, help=f"how many seeds; {_SEEDS}, or as many as fit into the minutes")
    parser.add_argument("--first", type=int, default=1, help="the first one")
    parser.add_argument("--seed", type=int, help="this one alone, with its log")
    parser.add_argument("--minutes", type=float, help="start no seed after so many minutes")
    parser.add_argument("--rate", type=float, default=1.0, help="how many times as many faults as usual")
    names = [each.name for each in MUTANTS]
    parser.add_argument("--mutant", choices=names, metavar="NAME", help="a mistake to make, and its weather")
    parser.add_argument("--processes", type=int, default=1, help="how many seeds at once; 0: one for each processor")
    chosen = parser.parse_args(arguments)
    conditions = Conditions(chosen.rate, chosen.mutant)
    if chosen.seed is not None:
        return _replay(chosen.seed, conditions)
    if chosen.seeds is None and chosen.minutes is not None:
        seeds: Iterator[int] = count(chosen.first)
    else:
        seeds = iter(range(chosen.first, chosen.first + (chosen.seeds or _SEEDS)))
    return _many(seeds, conditions, chosen.minutes, chosen.processes or os.cpu_count() or 1)


def _replay(seed: int, conditions: Conditions) -> int:
    with conditions.made() as file:
        outcome = conditions.simulated(seed, file)
    for line in outcome.log:
        print(line)
    print(f"seed {seed}: {outcome.violation or 'all invariants hold'}; log {outcome.digest}")
    return int(outcome.violation is not None)


def _many(seeds: Iterator[int], conditions: Conditions, minutes: float | None, processes: int) -> int:
    faults, counts, invariants = Counter[str](), Counter[str](), Counter[str]()
    failed: list[Outcome] = []
    started, done, virtual_s = time.monotonic(), 0, 0.0
    in_time = takewhile(lambda _: not done or minutes is None or time.monotonic() - started < 60 * minutes, seeds)
    for outcome in _outcomes(in_time, conditions, processes):
        done, virtual_s = done + 1, virtual_s + outcome.virtual_s
        faults.update(outcome.faults)
        counts.update(outcome.counts)
        if outcome.violation is not None:
            failed.append(outcome)
            invariants[outcome.violation.partition(":")[0]] += 1
            print(f"seed {outcome.seed} failed: {outcome.violation}", flush=True)
    seconds = time.monotonic() - started
    print(
        f"{done} seeds in {seconds:.0f} s, {done / seconds:.2f} a second; {virtual_s / 3600:.0f} hours of virtual time"
    )
    print(", ".join(f"{number:,} {what}" for what, number in counts.items()))
    print(f"{sum(faults.values()):,} faults:")
    for kind, number in sorted(faults.items(), key=lambda each: (-each[1], each[0])):
        print(f"  {number:8,} {kind}")
    if failed:
        print(f"{len(failed)} seeds failed: {', '.join(str(each.seed) for each in failed[:_SHOWN])}")
        for invariant, number in invariants.most_common():
            print(f"  {number:8,} {invariant}")
        print(f"See one with: {conditions.asked_again(failed[0].seed)}")
    else:
        print("All invariants hold.")
    return int(bool(failed))


def _outcomes(seeds: Iterator[int], conditions: Conditions, processes: int) -> Iterator[Outcome]:
    """What each seed gives, as soon as it is known."""
    if processes == 1:
        with conditions.made() as file:
            for seed in seeds:
                yield conditions.simulated(seed, file)
        return
    with get_context("spawn").Pool(processes, _prepare, (conditions,)) as pool:
        # A pool takes all that it is given at once, and a stretch of time is to end: so it is given a few at a time.
        while several := list(islice(seeds, 4 * processes)):
            yield from pool.imap_unordered(_one, several)


_here = ExitStack()
_made: tuple[DatabaseFile, Conditions] | None = None


def _prepare(conditions: Conditions) -> None:
    global _made  # noqa: PLW0603 - a process of a pool has no other place for what it works with
    _made = (_here.enter_context(conditions.made()), conditions)


def _one(seed: int) -> Outcome:
    assert _made is not None, "the pool prepares its processes"
    file, conditions = _made
    return replace(conditions.simulated(seed, file), log=())


if __name__ == "__main__":
    sys.exit(main())
