"""How large processes and folders are, again and again, and whether they grow."""

import statistics
import threading
from collections import defaultdict
from collections.abc import Sequence

import psutil

from tests.soak.deployment import Deployment

EVERY_S = 5.0
STAYING = ("server", "worker-b")
"""Processes that are not killed, so that they have all the time to grow."""


class Gauges:
    """Looks every few seconds."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="gauges")
        self.seen: dict[str, list[float]] = defaultdict(list)

    def begin(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._stop.set()
        self._thread.join()

    def _look_on(self) -> None:
        while not self._stop.wait(EVERY_S):
            for name in STAYING:
                self._look(name)
            self.seen["managed files"].append(self._deployment.objects())

    def _look(self, name: str) -> None:
        try:
            process = psutil.Process(self._deployment.programs[name].process.pid)
            self.seen[f"{name}: memory of Python"].append(process.memory_info().rss / 1e6)
            self.seen[f"{name}: open files"].append(process.num_fds())
            java = [each.memory_info().rss / 1e6 for each in process.children(recursive=True) if "java" in each.name()]
            if java:
                self.seen[f"{name}: memory of Java"].append(sum(java))
        except psutil.NoSuchProcess:
            pass


def growth(values: Sequence[float]) -> float:
    """The last third against the one before: what comes first is the start of a process."""
    third = len(values) // 3
    return statistics.median(values[-third:]) / statistics.median(values[third : 2 * third]) if third else 1.0
