"""Long-running processes: a worker that drives runs, and a collector for what programs send."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace

from clew.api.checkpoint_delivery import keep_sending
from clew.api.checkpoints import keep_checkpoints
from clew.api.kept_checkpoints import checkpoint_file
from clew.api.opened_environment import OpenedEnvironment
from clew.captures.queue import CaptureRecord
from clew.deferred import dataclass
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
    """Callbacks of a worker, called from its threads."""

    event: Callable[[StoredEvent], None] = lambda _event: None
    """Called with each event that it writes."""
    capture: Callable[[CaptureRecord], None] = lambda _record: None
    """Called with each capture or postlude job that is done."""


def run_worker(at: OpenedEnvironment, stop: threading.Event, listener: WorkerListener) -> None:
    """Drive runs from the queue, and do their captures and postlude jobs, until `stop` is set.

    Then finish the current step and return the run to the queue.
    """
    # Imported here so that a server answers its first request before the Spark libraries load.
    from clew.api.starting import starter_of  # noqa: PLC0415
    from clew.captures.worker import after_runs  # noqa: PLC0415

    starter = starter_of(at)
    starter.prepare()
    keeping = threading.Thread(
        target=keep_checkpoints, args=(at.environment, at.state.ledger, stop), name="checkpoints", daemon=True
    )
    keeping.start()
    sending = (at.environment, checkpoint_file(at.environment), stop)
    threading.Thread(target=keep_sending, args=sending, name="sending checkpoints", daemon=True).start()
    with after_runs(at.environment, at.state, starter.session, on_done=listener.capture, stop=stop):
        starter.worker(on_event=listener.event).run(stop)
    keeping.join(timeout=1.0)


@dataclass(frozen=True, slots=True)
class Listening:
    """Where a collector listens, and how it handles messages."""

    address: tuple[str, int]
    settings: CollectorSettings


def listening(bind: str, *, allow_remote: bool, batch_ms: int, stages: Sequence[str]) -> Listening:
    """The settings of a collector from command-line values. Raises UserError if they are invalid."""
    address = bind_address(bind, allow_remote=allow_remote)
    return Listening(address, CollectorSettings(batch_ms=batch_ms, stages=stages_of(stages)))


def run_collector(
    at: OpenedEnvironment, where: Listening, stop: threading.Event, on_listening: Callable[[tuple[str, int]], None]
) -> CollectorCounts:
    """Write what programs send to the state store until `stop` is set. Calls `on_listening` with the actual address."""
    settings = replace(where.settings, key=at.environment.collector_key())
    with Collector(where.address, at.state.tracelink.writer, settings) as collector:
        on_listening(collector.address)
        return collector.run(stop)
