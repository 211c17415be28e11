"""A deployment under load: `clew serve`, two workers on Spark, PostgreSQL, an S3 server and a webhook.

People ask for runs of the sample with captures, send signals and read pages, rows and explanations; `clew gc` collects
garbage; a worker is killed, the other one frozen for longer than its lease; the webhook refuses one request in twenty.
Afterwards every run has ended, every event was delivered, all captures are done, runs of the same month have changed
the same rows, `clew verify --all` finds nothing, and no process is left. The benchmark fails where one of that does not
hold. Growth is the median of the last third of the time against the third before it, and has a bound only if the soak
took at least half an hour: before that, caches fill. The server and one worker run all the time, so they can grow.
`make soak MINUTES=60` takes so many minutes; two are taken otherwise.
"""

import os
from collections.abc import Sequence

from benchmarks.figure import Figure
from tests.soak.course import soak
from tests.soak.gauges import growth

MINUTES = float(os.environ.get("CLEW_SOAK_MINUTES", "2"))
SEED = int(os.environ.get("CLEW_SOAK_SEED", "1"))
_LONG = 30.0
_FLAT = {"memory of Python": 1.1, "memory of Java": 1.2, "open files": 1.15, "managed files": 1.25}
"""How much is flat. Java takes the memory that it may have before it collects."""


def measure() -> list[Figure]:
    """The figures; what is not as it must be ends the benchmark."""
    soaked = soak(MINUTES, SEED)
    if soaked.problems:
        raise SystemExit("\n".join(["the soak found:", *soaked.problems]))
    return [
        Figure("time under load", soaked.minutes, "min"),
        *(Figure(what, number, "") for what, number in sorted(soaked.counts.items())),
        *(Figure(f"runs that are kept, {status}", number, "") for status, number in sorted(soaked.ends.items())),
        Figure("events that are kept", soaked.events, ""),
        Figure("events that the webhook took", soaked.received, ""),
        Figure("requests that the webhook refused or cut", soaked.refused, ""),
        *(_grown(name, values) for name, values in sorted(soaked.seen.items())),
    ]


def _grown(name: str, values: Sequence[float]) -> Figure:
    bound = _FLAT[name.rpartition(": ")[2]] if MINUTES >= _LONG else None
    return Figure(f"growth, {name} ({values[-1]:,.0f} at the end)", growth(values), "times", at_most=bound)
