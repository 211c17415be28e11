"""`make faults`: a run of the sample for each call that it makes, with that call failing."""

# ruff: noqa: T201 - a command speaks by printing

import argparse
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tests.faults.calls import possible
from tests.faults.sites import PLACES, Place
from tests.faults.trial import Trial, calls_of, tried


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 where a trial found a problem."""
    parser = argparse.ArgumentParser(prog="make faults", description=__doc__)
    parser.add_argument("--place", choices=PLACES, default="shop", help="where: shop needs no Spark")
    parser.add_argument("--kind", help="only this kind of call: file, sql, http or spark")
    parser.add_argument("--fault", help="only this fault")
    parser.add_argument("--every", type=int, default=1, help="only every so many calls")
    parser.add_argument("--call", type=int, help="only this call, with what the user is told")
    chosen = parser.parse_args(arguments)
    found = Counter[str]()
    with PLACES[chosen.place]() as place:
        for kind, faults in place.kinds.items():
            if chosen.kind not in {None, kind}:
                continue
            calls = [] if chosen.call is not None else calls_of(place, kind)
            for fault in faults:
                if chosen.fault in {None, fault}:
                    found.update(_swept(place, chosen, Fault(kind, fault, calls)))
    print(", ".join(f"{number:,} {what}" for what, number in found.items()))
    return int(found["with problems"] > 0)


@dataclass(frozen=True)
class Fault:
    """What happens, and to which of the calls of a run."""

    kind: str
    name: str
    calls: Sequence[str]

    @property
    def count(self) -> int:
        """How many calls it could happen to."""
        return sum(map(possible(self.kind, self.name), self.calls))


def _swept(place: Place, chosen: argparse.Namespace, fault: Fault) -> Counter[str]:
    started, found = time.monotonic(), Counter[str]()
    for nth in range(1, fault.count + 1, chosen.every) if chosen.call is None else [chosen.call]:
        trial = tried(place, fault.kind, fault.name, nth)
        found.update({"trials": 1, trial.outcome: 1, "with problems": int(bool(trial.problems))})
        if chosen.call is not None:
            print(f"{trial.struck or 'not reached'}\n{trial.told.text}")
        _tell(chosen, trial)
    told = ", ".join(f"{number:,} {what}" for what, number in found.items())
    print(f"{fault.kind} {fault.name}: {fault.count:,} calls, {told}; {time.monotonic() - started:.0f} s", flush=True)
    return found


def _tell(chosen: argparse.Namespace, trial: Trial) -> None:
    for problem in trial.problems:
        print(f"call {trial.nth} ({trial.struck}): {problem.strip()}")
        print(
            f"  make faults PLACE={chosen.place} KIND={trial.kind} FAULT='{trial.fault}' CALL={trial.nth}", flush=True
        )


if __name__ == "__main__":
    sys.exit(main())
