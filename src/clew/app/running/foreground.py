"""A run driven in this process while somebody looks on: events as they come, Ctrl-C as a request to cancel."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from clew.app.running.signalling import send_signal
from clew.app.running.starting import RunStarter
from clew.runs.events.envelope import StoredEvent
from clew.runs.signals import SignalType
from clew.runs.status import RunStatus

_POLL_S = 0.1


@dataclass(slots=True)
class Drive:
    """What became of an attempt to drive a run."""

    status: RunStatus | None = None
    """None where another worker has the run."""
    was_interrupted: bool = False
    error: BaseException | None = None
    over: threading.Event = field(default_factory=threading.Event)


def drive_in_foreground(
    starter: RunStarter,
    run_id: str,
    watch: Callable[[StoredEvent], None],
    on_interrupt: Callable[[], None] = lambda: None,
) -> Drive:
    """Drive a run to its end and show each of its events to `watch`, in this thread.

    The first KeyboardInterrupt sends CANCEL and waits for the run to end in order; a second one is raised, and leaves
    the run as it is: another worker carries it on once its lease has run out.
    """
    drive = Drive()
    seen = starter.state.stores.catalog.run(run_id).last_seq
    thread = threading.Thread(target=_drive, args=(starter, run_id, drive), name=f"drive {run_id}", daemon=True)
    thread.start()
    while True:
        try:
            is_over = drive.over.is_set()
            for event in starter.state.stores.reader.events(run_id, after=seen):
                seen = event.run_seq
                watch(event)
            if is_over:
                break
            # Not Thread.join: interrupted, it takes the thread for ended on some versions of Python.
            drive.over.wait(_POLL_S)
        except KeyboardInterrupt:
            if drive.was_interrupted:
                raise
            drive.was_interrupted = True
            on_interrupt()
            send_signal(starter.state, starter.environment, run_id, SignalType.CANCEL, reason="interrupted by Ctrl-C")
    if drive.error is not None:
        raise drive.error
    return drive


def _drive(starter: RunStarter, run_id: str, drive: Drive) -> None:
    try:
        drive.status = starter.drive(run_id, threading.Event())
    except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
        drive.error = error
    finally:
        drive.over.set()
