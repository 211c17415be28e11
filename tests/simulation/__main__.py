"""`make simulate`: many seeds, or one with its whole log."""

# ruff: noqa: T201 - a command speaks by printing

import argparse
import logging
import sys
import time
from collections import Counter

from tests.simulation.simulated_store import database_file
from tests.simulation.substitutes import installed
from tests.simulation.world import Outcome, simulate

_SHOWN = 10


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 where a seed failed."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seeds", type=int, default=100, help="how many seeds")
    parser.add_argument("--first", type=int, default=1, help="the first one")
    parser.add_argument("--seed", type=int, help="this one alone, with its log")
    parser.add_argument("--minutes", type=float, help="stop after so many minutes")
    chosen = parser.parse_args(arguments)
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        if chosen.seed is not None:
            return _replay(chosen.seed)
        return _many(range(chosen.first, chosen.first + chosen.seeds), chosen.minutes)
    finally:
        logging.disable(before)


def _replay(seed: int) -> int:
    with database_file() as file, installed():
        outcome = simulate(seed, file)
    for line in outcome.log:
        print(line)
    print(f"seed {seed}: {outcome.violation or 'all invariants hold'}; log {outcome.digest}")
    return int(outcome.violation is not None)


def _many(seeds: range, minutes: float | None) -> int:
    faults, counts = Counter[str](), Counter[str]()
    failed: list[Outcome] = []
    started, done, virtual_s = time.monotonic(), 0, 0.0
    with database_file() as file, installed():
        for seed in seeds:
            if minutes is not None and time.monotonic() - started > 60 * minutes:
                break
            outcome = simulate(seed, file)
            done, virtual_s = done + 1, virtual_s + outcome.virtual_s
            faults.update(outcome.faults)
            counts.update(outcome.counts)
            if outcome.violation is not None:
                failed.append(outcome)
                print(f"seed {seed} failed: {outcome.violation}", flush=True)
    seconds = time.monotonic() - started
    print(
        f"{done} seeds in {seconds:.0f} s, {done / seconds:.2f} a second; {virtual_s / 3600:.0f} hours of virtual time"
    )
    print(", ".join(f"{count:,} {what}" for what, count in counts.items()))
    print(f"{sum(faults.values()):,} faults:")
    for kind, count in sorted(faults.items(), key=lambda each: -each[1]):
        print(f"  {count:8,} {kind}")
    if failed:
        print(f"{len(failed)} seeds failed: {', '.join(str(each.seed) for each in failed[:_SHOWN])}")
        print(f"See one with: make simulate SEED={failed[0].seed}")
    else:
        print("All invariants hold.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
