"""A worker inside the server: Spark is warm, so that a run starts when it is asked for."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from clew.captures.queue import CaptureRecord
from clew.events.envelope import StoredEvent
from clew.server.site import Site

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Listener:
    """Whom the worker tells what it does, from its threads."""

    event: Callable[[StoredEvent], None] = lambda _event: None
    """What it writes."""
    capture: Callable[[CaptureRecord], None] = lambda _record: None
    """What it has done after runs."""


class HostedWorker:
    """Takes runs of the site's environment from the queue, in threads of this process.

    Nothing that it needs is loaded before it starts, its listener included.
    """

    def __init__(self, site: Site, listener: Callable[[], Listener] = Listener) -> None:
        self._site = site
        self._listener = listener
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hosted worker")

    def start(self) -> None:
        """Begin to work, beside whatever else the process does."""
        self._thread.start()

    def stop(self) -> None:
        """End cleanly: the present step comes to its end, and the run is given back."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        from clew.api.opened_environment import local_user  # noqa: PLC0415
        from clew.api.working import WorkerListener, run_worker  # noqa: PLC0415 - these bring the libraries of Spark

        told = self._listener()
        try:
            run_worker(self._site.opened(local_user()), self._stop, WorkerListener(told.event, told.capture))
        except Exception:  # noqa: BLE001 - the server goes on without its worker, and says so
            _log.exception("the worker of the server has ended; runs wait for another one")
