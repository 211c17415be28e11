"""Taking times."""

from collections.abc import Callable, Sequence
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
