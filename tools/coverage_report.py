"""`make coverage`: which lines and branches of each package the tests have taken, as coverage.py has measured it."""

# ruff: noqa: T201 - a command speaks by printing

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any


@dataclass(frozen=True)
class Taken:
    """Lines and branches of a package, and those that were taken."""

    lines: int = 0
    lines_taken: int = 0
    branches: int = 0
    branches_taken: int = 0

    def __add__(self, other: "Taken") -> "Taken":
        return Taken(
            self.lines + other.lines,
            self.lines_taken + other.lines_taken,
            self.branches + other.branches,
            self.branches_taken + other.branches_taken,
        )


def by_package(measured: Mapping[str, Any]) -> dict[str, Taken]:
    """The sums of each package, those with the lowest share of branches first."""
    sums = dict[str, Taken]()
    for name, file in measured["files"].items():
        package, summary = package_of(name), file["summary"]
        sums[package] = sums.get(package, Taken()) + Taken(
            summary["num_statements"],
            summary["covered_lines"],
            summary["num_branches"],
            summary["covered_branches"],
        )
    return dict(sorted(sums.items(), key=lambda each: (share(each[1].branches_taken, each[1].branches), each[0])))


def package_of(file: str) -> str:
    """The package below `clew` that a file belongs to; `clew` for its own modules."""
    parts = PurePath(file).parts
    below = parts[len(parts) - parts[::-1].index("clew") :]
    return below[0] if len(below) > 1 else "clew"


def share(taken: int, count: int) -> float:
    """In percent; a package without branches has taken them all."""
    return 100 * taken / count if count else 100.0


def table(sums: Mapping[str, Taken]) -> Iterator[str]:
    """The sums as lines of text."""
    yield f"{'package':<14}{'lines':>8}{'taken':>9}{'branches':>10}{'taken':>9}"
    for name, taken in [*sums.items(), ("all", sum(sums.values(), Taken()))]:
        lines, branches = share(taken.lines_taken, taken.lines), share(taken.branches_taken, taken.branches)
        yield f"{name:<14}{taken.lines:>8,}{lines:>8.1f}%{taken.branches:>10,}{branches:>8.1f}%"


def main() -> None:
    """Print the table for the JSON that coverage.py has written."""
    for line in table(by_package(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))):
        print(line)


if __name__ == "__main__":
    main()
