"""The typical job at one, five and twenty million rows: whether time per row and ratio stay what they are.

CLEW_BENCH_SCALES sets the sizes, in millions (1,5,20).
"""

import os
from pathlib import Path

import psutil
from benchmarks.figure import Figure
from benchmarks.ledger_runs import interleaved, ledger_runs

MILLIONS = tuple(int(text) for text in os.environ.get("CLEW_BENCH_SCALES", "1,5,20").split(","))
JOB = "typical"


def measure() -> list[Figure]:
    figures = list[Figure]()
    per_million = dict[int, float]()
    for millions in MILLIONS:
        with ledger_runs(millions * 1_000_000) as runs:
            rounds = 3 if millions == 1 else 1
            seconds = interleaved({"hand": lambda: runs.run_by_hand(JOB), "clew": lambda: runs.run(JOB)}, rounds)
        per_million[millions] = seconds["clew"] / millions
        name = f"{millions} million rows: traced run against hand-written PySpark"
        figures.append(Figure(name, seconds["clew"] / seconds["hand"], "times"))
    first, *others = MILLIONS
    figures += [
        Figure(
            f"time per row at {each} million against {first} million", per_million[each] / per_million[first], "times"
        )
        for each in others
    ]
    return [*figures, Figure("most memory of the JVM with 4 GB for the driver", _most_memory(), "GB")]


def _most_memory() -> float:
    """The high-water mark of the JVM's resident memory."""
    for child in psutil.Process().children(recursive=True):
        if child.name() == "java":
            status = Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
            return int(status.partition("VmHWM:")[2].split()[0]) / 2**20
    raise SystemExit("there is no JVM any more")
