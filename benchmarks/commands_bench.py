"""What someone waits for at the prompt: commands that read, each in a new process, on the sample and one run of it.

Those that read rows are held against a Python that imports DuckDB and ends, the others against one that does nothing.
The sides of a ratio take turns; the median of the processor time of all rounds counts, after a first one that compiles
the modules. Everything is included: the start of Python, imports, reading the workspace, the state store and the trace,
and the record of who has read. The run itself is not.
"""

import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.figure import Figure
from benchmarks.timing import compiled_once, cpu_seconds

import clew
from clew.sample import write_sample

ROUNDS = 5
_WHERE = 'journal_id = "JE-00001" AND line_number = 1'


def measure() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        sample = Path(folder) / "sample"
        write_sample(sample)
        run = _closed(sample)
        return measured(sample, run)


def _closed(sample: Path) -> str:
    """The id of a run of the sample; in a process of its own, so that no JVM is left to disturb what is measured."""
    subprocess.run(
        [sys.executable, "-m", "clew.cli", "run", "gl-close", "--period", "2026-01"],
        cwd=sample,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    [run] = clew.open(sample).find_runs()
    return run.id


def measured(sample: Path, run: str) -> list[Figure]:
    row = clew.open(sample).find_run(run).row_where(_WHERE)
    environment = compiled_once(sample.parent / "compiled")

    def process(*arguments: str) -> list[str]:
        return [sys.executable, *arguments]

    def command(*arguments: str) -> list[str]:
        return process("-m", "clew.cli", *arguments)

    sides = {
        "nothing": process("-c", "pass"),
        "duckdb": process("-c", "import duckdb"),
        "click": process("-c", "import click"),
        "check": command("check"),
        "runs": command("runs"),
        "show": command("show", run),
        "trace of a row": command("trace", run, row),
        "trace --where": command("trace", run, "--where", _WHERE),
        "explain": command("explain", run, row, "amount_usd"),
    }
    taken = {name: list[float]() for name in sides}
    for turn in range(ROUNDS + 1):
        for name, side in sides.items():
            used = cpu_seconds(side, sample, environment)
            if turn:
                taken[name].append(used)
    times = {name: median(each) for name, each in taken.items()}
    figures = [
        Figure("`python -c pass`", times["nothing"] * 1e3, "ms of CPU"),
        Figure(
            "`python -c 'import click'`, which reads the arguments of every command", times["click"] * 1e3, "ms of CPU"
        ),
        Figure("`python -c 'import duckdb'`", times["duckdb"] * 1e3, "ms of CPU"),
    ]
    for name, bare in (("check", "nothing"), ("runs", "nothing"), ("show", "nothing")):
        figures += [
            Figure(f"`clew {name}`, cold", times[name] * 1e3, "ms of CPU"),
            Figure(f"`clew {name}`, cold, against `python -c pass`", times[name] / times[bare], "times", at_most=2),
        ]
    for name in ("trace of a row", "trace --where", "explain"):
        figures += [
            Figure(f"`clew {name}`, cold", times[name] * 1e3, "ms of CPU"),
            Figure(f"`clew {name}`, cold, against `import duckdb`", times[name] / times["duckdb"], "times", at_most=2),
        ]
    return figures
