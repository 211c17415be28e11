"""Processes that stay until they are stopped: a worker that drives runs, and a collector of what programs send."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clew.api.opened_environment import OpenedEnvironment
from clew.captures.queue import CaptureRecord
from clew.events.envelope import StoredEvent
from clew.runs.worker import stop_on_signals, worker_name
from clew.tracelink import Collector, CollectorCounts, CollectorSettings, bind_address, stages_of

__all__ = [
    "Listening",
    "WorkerListener",
    "listening",
    "run_collector",
    "run_worker",
    "stop_on_signals",
    "worker_name",
]


@dataclass(frozen=True, slots=True)
class WorkerListener:
    """Whom a worker tells what it does, from its threads."""

    event: Callable[[StoredEvent], None] = lambda _event: None
    """What it writes."""
    capture: Callable[[CaptureRecord], None] = lambda _record: None
    """What it has done after runs."""


def run_worker(at: OpenedEnvironment, stop: threading.Event, listener: WorkerListener) -> None:
    """Take runs from the queue and drive them, and do what comes after runs, until told to stop.

    The present step comes to its end then, and the run is given back.
    """
    # A server answers its first request before it loads the libraries of Spark.
    from clew.api.starting import starter_of  # noqa: PLC0415
    from clew.captures.worker import after_runs  # noqa: PLC0415

    starter = starter_of(at)
    starter.prepare()
    with after_runs(at.environment, at.state, starter.session, on_done=listener.capture, stop=stop):
        starter.worker(on_event=listener.event).run(stop)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a collector listens, and what it makes of what it hears."""

    address: tuple[str, int]
    settings: CollectorSettings


def listening(bind: str, *, allow_remote: bool, batch_ms: int, stages: Sequence[str]) -> Listening:
    """The settings of a collector from words of the command line. UserError where they make no sense."""
    address = bind_address(bind, allow_remote=allow_remote)
    return Listening(address, CollectorSettings(batch_ms=batch_ms, stages=stages_of(stages)))


def run_collector(
    at: OpenedEnvironment, where: Listening, stop: threading.Event, on_listening: Callable[[tuple[str, int]], None]
) -> CollectorCounts:
    """Write what programs send to the state store until told to stop. `on_listening` is given the actual address."""
    with Collector(where.address, at.state.tracelink.writer, where.settings) as collector:
        on_listening(collector.address)
        return collector.run(stop)
