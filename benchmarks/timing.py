"""Taking times, and the processor time of commands."""

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter


def seconds(call: Callable[[], object]) -> float:
    """How long a call takes."""
    start = perf_counter()
    call()
    return perf_counter() - start


def medians(*sides: Sequence[Callable[[], object]]) -> list[float]:
    """The median seconds of each side; sides take turns."""
    measured = [list[float]() for _ in sides]
    for turn in zip(*sides, strict=True):
        for index, side in enumerate(turn):
            measured[index].append(seconds(side))
    return [median(each) for each in measured]


def cpu_seconds(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    """The processor time of a new process: others on the machine weigh less on it than on the clock."""
    with subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime


def compiled_once(folder: Path) -> dict[str, str]:
    """The environment of processes that load compiled modules, as installed, whatever this process was told."""
    without = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return without | {"PYTHONPYCACHEPREFIX": str(folder)}
