"""Takes runs that wait and starts them. Keeps no state: everything it knows is in the store."""

from collections.abc import Callable
from dataclasses import dataclass

from clew.runs.active_run import ActiveRun
from clew.runs.driver import RunDriver, StartStatus
from clew.runs.limits import LeasePolicy, QueuePolicy
from clew.runs.stores import LeaseStore


@dataclass(frozen=True, slots=True)
class StartReport:
    """What became of one run."""

    run_id: str
    status: StartStatus


class RunQueueReconciler:
    """May be called at any time, by any number of workers: a run is leased before it is started."""

    def __init__(
        self,
        leases: LeaseStore,
        driver: RunDriver,
        *,
        environment_id: str,
        owner: str,
        queue: QueuePolicy,
        lease: LeasePolicy,
    ) -> None:
        self._leases = leases
        self._driver = driver
        self._environment_id = environment_id
        self._owner = owner
        self._queue = queue
        self._lease = lease

    def dequeue_and_start(self, launch: Callable[[ActiveRun], None], *, limit: int = 1) -> tuple[StartReport, ...]:
        """Start up to `limit` runs that wait, by giving them to `launch`."""
        reports: list[StartReport] = []
        while len(reports) < limit:
            claim = self._leases.claim(
                self._environment_id,
                owner=self._owner,
                ttl_s=self._lease.ttl_s,
                max_running=self._queue.max_running,
            )
            if claim is None:
                break
            begun = self._driver.begin(claim)
            if begun.active is not None:
                launch(begun.active)
            reports.append(StartReport(claim.run.run_id, begun.status))
        return tuple(reports)
