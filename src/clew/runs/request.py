"""The request for a run, and the record that the store keeps of each run."""

from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, date, datetime

from clew.deferred import dataclass
from clew.events.bodies import RunQueued
from clew.events.envelope import request_key
from clew.events.snapshot import RunStatus
from clew.events.values import PlanRef

RERUN = "rerun"
"""The key, among the parameters of a request, of the run that it repeats, and of how."""
_OF, _CHANGED_INPUTS = "of", "changed_inputs"
AS_OF = "as_of"
"""The key, among the parameters of a request, of the time that a run goes back to."""
_AT, _VERSION = "at", "version"
VALUES = "parameters"
"""The key, among the parameters of a request, of the values that the parameters of its project have."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """That a run takes over what is still the same from an earlier run of its project and period."""

    of: str
    """The id of the earlier run."""
    changed_inputs: bool = False
    """Whether sources are looked at again; otherwise inputs are those that the earlier run read."""

    def to_json(self) -> dict[str, object]:
        """The form in which a request keeps it."""
        return {_OF: self.of, _CHANGED_INPUTS: self.changed_inputs}


@dataclass(frozen=True, slots=True)
class AsOf:
    """That a run works on what was known at a time. It writes to the sandbox, as a draft does."""

    at: datetime
    version: int
    """The version of the project that ran then."""

    def to_json(self) -> dict[str, object]:
        """The form in which a request keeps it."""
        return {_AT: self.at.isoformat(), _VERSION: self.version}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """A request for a run. Repeating a request returns the same run."""

    project_id: str
    plan: PlanRef
    period: str
    request_id: str
    environment_id: str = "dev"
    tenant_id: str = "default"
    project_version: str | None = None
    requested_by: str | None = None
    retry_of: str | None = None
    not_before: datetime | None = None
    parameters: Mapping[str, object] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What identifies the request."""
        return request_key(
            tenant_id=self.tenant_id,
            project_id=self.project_id,
            environment_id=self.environment_id,
            plan_id=self.plan.plan_id,
            plan_version=self.plan.plan_version,
            request_id=self.request_id,
        )

    @property
    def values(self) -> dict[str, object]:
        """The values of the parameters of its project, as text, by name."""
        found = self.parameters.get(VALUES)
        return dict(found) if isinstance(found, Mapping) else {}

    @property
    def rerun(self) -> Rerun | None:
        """Which run it repeats, taking over what is the same; None for a run that computes everything."""
        found = self.parameters.get(RERUN)
        if not isinstance(found, Mapping):
            return None
        return Rerun(str(found[_OF]), changed_inputs=found.get(_CHANGED_INPUTS) is True)

    @property
    def as_of(self) -> AsOf | None:
        """The time that it goes back to; None for a run on what is known now."""
        found = self.parameters.get(AS_OF)
        if not isinstance(found, Mapping):
            return None
        return AsOf(datetime.fromisoformat(str(found[_AT])), int(str(found[_VERSION])))

    @property
    def definition(self) -> str:
        """The definition of the project that it runs, in words: v3, draft, or v2 as of a time."""
        if self.as_of is not None:
            return f"v{self.as_of.version} as of {self.as_of.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
        version = self.project_version or ""
        return f"v{version}" if version.isdigit() else version

    def today(self, started: datetime) -> date:
        """What TODAY() means in a run that started then."""
        return started.date() if self.as_of is None else self.as_of.at.astimezone(UTC).date()

    def queued(self, *, approval_required: bool, not_before: datetime | None) -> RunQueued:
        """The event that says this was accepted."""
        return RunQueued(
            tenant_id=self.tenant_id,
            project_id=self.project_id,
            environment_id=self.environment_id,
            plan=self.plan,
            period=self.period,
            request_id=self.request_id,
            project_version=self.project_version,
            requested_by=self.requested_by,
            approval_required=approval_required,
            not_before=not_before,
            retry_of=self.retry_of,
            parameters=self.parameters,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run as the store lists it: what was asked for, and how far it has come."""

    run_id: str
    request: RunRequest
    status: RunStatus
    approval_pending: bool
    last_seq: int
    created_at: datetime
    started_at: datetime | None = None
    completed_at: datetime | None = None
    last_hash: str | None = None

    @property
    def plan_version(self) -> str:
        """The version that goes into the run's idempotency keys."""
        return self.request.plan.plan_version

    def to_json(self) -> dict[str, object]:
        """A run as `runs --json` lists it."""
        request = self.request
        return {
            "run_id": self.run_id,
            "status": self.status.value,
            "project": request.project_id,
            "project_version": request.project_version,
            "period": request.period,
            "environment": request.environment_id,
            "request_id": request.request_id,
            "requested_by": request.requested_by,
            "retry_of": request.retry_of,
            **({"rerun_of": request.rerun.of} if request.rerun is not None else {}),
            **({"as_of": request.as_of.to_json()} if request.as_of is not None else {}),
            "created_at": self.created_at.isoformat(),
            "started_at": self.started_at.isoformat() if self.started_at else None,
            "completed_at": self.completed_at.isoformat() if self.completed_at else None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs to list. What is None does not restrict."""

    tenant_id: str | None = None
    project_id: str | None = None
    environment_id: str | None = None
    period: str | None = None
    status: RunStatus | None = None
    id_prefix: str | None = None
    """The beginning of their ids."""
