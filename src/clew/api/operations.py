"""For operators of an environment: its load, its dead letters, and its access records.

Also garbage collection: deletes runs and versions of datasets that are not needed, and records that in a journal.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field

from clew.api.opened_environment import EnvironmentAccess, OpenedEnvironment
from clew.api.reads import record_access
from clew.api.work_in_progress import Doing, Environs, doings
from clew.auth.access_log import AccessRecord, Subject
from clew.auth.roles import Permission
from clew.deferred import dataclass
from clew.events.snapshot import RunStatus
from clew.gc.garbage import Garbage, Retention, usual_retention
from clew.gc.run_removal import Removal, garbage_collector, remove_run
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.limits import Load, QueuePolicy
from clew.runs.request import RunFilter, RunRecord
from clew.runs.stores import DeadLetter, HeldLease, OutboxLoad
from clew.storage.removals import Journal, RemovalRecord

__all__ = [
    "Activity",
    "Garbage",
    "Operations",
    "Removal",
    "RemovalRecord",
    "collect_garbage",
    "past_removals",
    "remove_one_run",
]

_NOT_ENDED = (RunStatus.RUNNING, RunStatus.PAUSED, RunStatus.APPROVED, RunStatus.PENDING)
_BEGUN = frozenset({RunStatus.RUNNING, RunStatus.PAUSED})
_MOST_RUNS = 100
_MOST_LETTERS = 50


@dataclass(frozen=True, slots=True)
class Activity:
    """The activity of an environment at one moment."""

    load: Load
    policy: QueuePolicy
    open_runs: Sequence[RunRecord]
    leases: Sequence[HeldLease]
    outbox: Sequence[OutboxLoad]
    dead: Sequence[DeadLetter]
    doing: Mapping[str, Doing] = field(default_factory=dict)
    """What each of the runs does, or waits for, by its id."""
    lease_seconds: float = 30.0
    """How long a worker may be silent before another one may take its runs."""

    def does(self, run_id: str) -> Doing:
        """What a run does, or waits for."""
        return self.doing.get(run_id, Doing())

    def to_json(self) -> dict[str, object]:
        """The JSON form of the operations page."""
        return {
            "queue": {
                "running": self.load.running,
                "queued": self.load.queued,
                "max_running": self.policy.max_running,
                "policy": self.policy.overload.value,
                "runs": [
                    {
                        "run_id": run.run_id,
                        "status": run.status.value,
                        "created_at": run.created_at.isoformat(),
                        **self.does(run.run_id).to_json(),
                    }
                    for run in self.open_runs
                ],
            },
            "leases": [
                {
                    "run_id": lease.run_id,
                    "owner": lease.owner,
                    "token": lease.token,
                    "expires_at": lease.expires_at.isoformat(),
                    "expired": lease.is_expired,
                }
                for lease in self.leases
            ],
            "outbox": [
                {"sink": load.bus, "waiting": load.waiting, "retried": load.retried, "dead": load.dead}
                for load in self.outbox
            ],
            "dead_letters": [letter.to_json() for letter in self.dead],
        }


class Operations:
    """What happens in an environment, limited to the tenant of the principal."""

    def __init__(self, access: EnvironmentAccess) -> None:
        self._access = access

    def load(self) -> Load:
        """How many runs of the environment are running and waiting. Fails if the state store does not answer."""
        with self._access.opened() as at:
            return at.state.stores.catalog.load(at.environment.name)

    def activity(self) -> Activity:
        """Runs that have not ended, their workers, and the events that wait for event buses."""
        with self._access.opened() as at:
            name, stores, reader = at.environment.name, at.state.stores, at.runs
            tenant = at.principal.tenant_id or at.environment.settings.tenant
            load, policy = stores.catalog.load(name), at.environment.queue_policy()
            leases = stores.activity.leases(name, tenant_id=tenant)
            open_runs = [
                run
                for status in _NOT_ENDED
                for run in reader.runs(RunFilter(environment_id=name, status=status), _MOST_RUNS)
            ]
            begun = [run for run in open_runs if run.status in _BEGUN]
            snapshots = {run.run_id: reader.projected(run.run_id).snapshot for run in begun}
            around = Environs(open_runs, leases, load, policy.max_running, utc_now())
            return Activity(
                load=load,
                policy=policy,
                open_runs=open_runs,
                leases=leases,
                outbox=stores.activity.outbox(name, tenant_id=tenant),
                dead=stores.outbox.dead_letters(tenant_id=tenant, limit=_MOST_LETTERS),
                doing=doings(open_runs, snapshots, around),
                lease_seconds=at.environment.lease_policy().ttl_s,
            )

    def dead_letters(self, *, bus: str | None = None, limit: int = 100) -> tuple[DeadLetter, ...]:
        """Events that a bus rejected, oldest first."""
        with self._access.opened() as at:
            return at.state.stores.outbox.dead_letters(bus=bus, tenant_id=at.principal.tenant_id, limit=limit)

    def replay(self, *, bus: str | None = None) -> int:
        """Send dead letters again, all or those of one bus. Returns their number. A worker delivers them."""
        with self._access.opened() as at:
            at.principal.require(Permission.REPLAY_EVENTS)
            return at.state.stores.outbox.replay(bus=bus, tenant_id=at.principal.tenant_id)

    def record_access(self, subject: Subject, subject_id: str, detail: str = "") -> None:
        """Record what the principal reads or changes. Returns once the record is stored, so call it before
        answering."""
        record_access(self._access, subject, subject_id, detail)

    def access_records(
        self,
        *,
        subject_id: str | None = None,
        actor: str | None = None,
        subject: Subject | None = None,
        before: int | None = None,
        limit: int = 100,
    ) -> tuple[AccessRecord, ...]:
        """Who read rows, signed in, or changed tokens or what runs; newest first."""
        with self._access.opened() as at:
            at.principal.require(Permission.READ_ACCESS_LOG)
            tenant = at.principal.tenant_id or at.environment.settings.tenant
            return at.state.access_log.records(
                tenant, subject_id=subject_id, actor=actor, subject=subject, before=before, limit=limit
            )


def collect_garbage(
    at: OpenedEnvironment,
    *,
    keep_days: int | None = None,
    keep_runs: int | None = None,
    keep_lineage_days: int | None = None,
    dry_run: bool = False,
) -> Garbage:
    """Delete what no rule keeps, or only find it. Without rules for runs, those of the environment apply."""
    if not dry_run:
        at.principal.require(Permission.DELETE_RUNS)
    given = Retention(days=keep_days, runs=keep_runs)
    retention = usual_retention(at.environment.settings.retention) if given.keeps_all else given
    collector = garbage_collector(at.files, at.environment, at.state, keep_lineage_days)
    return collector.find(retention) if dry_run else collector.collect(retention)


def past_removals(environment: RunEnvironment) -> list[RemovalRecord]:
    """Past deletions, newest first."""
    return Journal(environment.storage_root).records(environment.name)


def remove_one_run(at: OpenedEnvironment, run_id: str, *, force: bool, reason: str) -> Removal:
    """Delete a run that has ended, unless a dataset has its rows or captures wait for them."""
    at.principal.require(Permission.DELETE_RUNS)
    return remove_run(at.files, at.environment, at.state, run_id, force=force, reason=reason)
