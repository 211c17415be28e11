"""`make mutants`: how many of a sample of small mistakes the tests notice, by package."""

# ruff: noqa: T201 - a command speaks by printing

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.mutants.choosing import chosen
from tools.mutants.trying import ROOT, Copy, copied

CODE = Path("src/clew")
FOLD = ("events/reducer.py", "events/meanings.py", "events/snapshot.py")

PACKAGES: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "fold": (FOLD, ("tests/events", "tests/runs/test_runs_projector.py", "tests/runs/test_runs_driver.py")),
    "lang": (("lang/**/*.py",), ("tests/lang",)),
    "plan": (("plan/**/*.py",), ("tests/plan",)),
    "trace": (("trace/**/*.py",), ("tests/trace",)),
    "explain": (("explain/**/*.py",), ("tests/explain",)),
}
"""What is changed below the code of Clew, and the tests that have to notice."""


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 where a package is below the share that is asked for."""
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--package", choices=PACKAGES, action="append", help="only this one; repeatable")
    parser.add_argument("--count", type=int, default=40, help="how many mistakes in each package")
    parser.add_argument("--seed", type=int, default=1, help="draws the sample")
    parser.add_argument("--at-least", type=float, default=0.0, metavar="PERCENT", help="the share to be noticed")
    given = parser.parse_args(arguments)
    scores = dict[str, float]()
    with copied() as copy:
        for name in given.package or PACKAGES:
            scores[name] = _score(copy, name, given.count, given.seed)
    return int(any(score < given.at_least for score in scores.values()))


def _score(copy: Copy, name: str, count: int, seed: int) -> float:
    patterns, tests = PACKAGES[name]
    files = sorted(path.relative_to(ROOT) for each in patterns for path in (ROOT / CODE).glob(each))
    started = time.monotonic()
    if not copy.learn(tests):
        sys.exit(f"{name}: the tests fail without any mistake: pytest {' '.join(tests)}")
    copy.limit_s = 10 * (time.monotonic() - started) + 60
    tried = noticed = 0
    for mutant in chosen(files, count, seed, ROOT):
        tried += 1
        if copy.notices(mutant, tests):
            noticed += 1
        else:
            print(f"not noticed: {mutant}", flush=True)
    score = 100 * noticed / tried if tried else 100.0
    print(f"{name}: {noticed} of {tried} mistakes noticed, {score:.0f} %", flush=True)
    return score


if __name__ == "__main__":
    sys.exit(main())
