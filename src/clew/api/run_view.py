"""A run with everything known about it: the one read model for commands, pages and Python."""

# ruff: noqa: PLC0415 - what reads captures is imported for runs that have any

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field
from typing import TYPE_CHECKING, TypeVar

from clew.api.state import State
from clew.deferred import dataclass
from clew.events.envelope import StoredEvent
from clew.events.snapshot import StepSnapshot
from clew.events.values import LOAD_STEP
from clew.runs.environment import RunEnvironment
from clew.runs.projector import Projected
from clew.runs.view import RunFacts, RunFactsReader, iso, operation_of
from clew.storage.committed import sources_of
from clew.storage.parts import Part
from clew.storage.plans import PlanReader, kept_plan

if TYPE_CHECKING:
    from clew.captures.queue import CaptureRecord
    from clew.plan.plan import Plan
    from clew.privacy.policy import PrivacyPolicy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunView(RunFacts):
    """A run with its state and its captures."""

    captures: "tuple[CaptureRecord, ...]" = ()
    """Captures and postlude jobs of the run, with their status."""

    def to_json(self) -> dict[str, object]:
        """The form of `run --json` and `show --json`."""
        from clew.captures.reading import capture_json

        request = self.record.request
        return {
            "run_id": self.record.run_id,
            "status": self.snapshot.status.value,
            "project": request.project_id,
            "project_version": request.project_version,
            "period": request.period,
            "environment": request.environment_id,
            "request_id": request.request_id,
            "requested_by": request.requested_by,
            "parameters": request.values,
            "retry_of": request.retry_of,
            **({"rerun_of": request.rerun.of} if request.rerun is not None else {}),
            **({"as_of": request.as_of.to_json()} if request.as_of is not None else {}),
            "started_at": iso(self.snapshot.started_at),
            "completed_at": iso(self.snapshot.completed_at),
            "duration_ms": self.snapshot.total_duration_ms,
            "last_completed_operation": operation_of(self.snapshot.last_completed_step),
            "rows_loaded": self.rows_loaded(),
            "steps": [_step_json(step) for step in self.snapshot.steps if step.step_id != LOAD_STEP],
            "outputs": self.outputs(),
            "error": self._error_json(),
            "captures": [capture_json(record) for record in self.captures if record.kind == "capture"],
            "postlude_jobs": self.postlude_jobs(),
        }

    def postlude_jobs(self) -> list[dict[str, object]]:
        """The postlude jobs of the plan, with their outcome."""
        from clew.captures.reading import job_json

        jobs = self.plan.extensions.postlude_jobs if self.plan else ()
        records = {record.slot: record for record in self.captures if record.kind == "job"}
        return [job_json(job, records.get(job.id)) for job in jobs]

    def _error_json(self) -> dict[str, object] | None:
        failure = self.failure
        if failure is None or self.snapshot.error is None:
            return None
        failed = self.failed_step
        return failure.to_json() | {
            "retryable": self.snapshot.error.retryable,
            "step": failed.seq if failed else None,
        }


@dataclass(frozen=True, slots=True)
class RunInput:
    """A dataset that a run read."""

    name: str
    rows: int
    sources: str
    """Where it was read from, for people."""
    details: Mapping[str, object] = field(default_factory=dict)
    """The same for programs: its format, its files, or the version of a registered dataset."""


@dataclass(frozen=True, slots=True)
class ResolverSnapshot:
    """What the name of a dataset meant for a run: the versions of its definition or data, and of its resolver."""

    dataset: str
    dataset_version: int | None
    """The registered version that was read; of data that a resolver found, the version of the definition."""
    pinned_version: int | None
    """The version that the project asks for."""
    registered: bool
    resolver: str | None
    resolver_version: int | None
    resolver_source: str | None
    """Why this resolver: "project override", "dataset" or "default"."""
    rule: str | None
    sources: str

    def to_json(self) -> dict[str, object]:
        """The form of `resolver_snapshots` in `run --json` and `show --json`."""
        return asdict(self)


def resolver_snapshots(plan: "Plan | None", parts: Iterable[Part]) -> list[ResolverSnapshot]:
    """What the description of every pinned dataset says about its origin."""
    pins = {use.key: use.pinned_version for use in plan.datasets_read} if plan is not None else {}
    found = list[ResolverSnapshot]()
    for part in parts:
        if part.kind != "input":
            continue
        details = part.details or {}
        is_registered = details.get("format") == "managed"
        version = details.get("version" if is_registered else "dataset_version")
        found.append(
            ResolverSnapshot(
                dataset=str(details.get("dataset") or part.name),
                dataset_version=version if isinstance(version, int) else None,
                pinned_version=pins.get(part.name),
                registered=is_registered,
                resolver=_text(details.get("resolver")),
                resolver_version=number if isinstance(number := details.get("resolver_version"), int) else None,
                resolver_source=_text(details.get("resolver_source")),
                rule=_text(details.get("rule")),
                sources=sources_of(part),
            )
        )
    return found


def _text(value: object) -> str | None:
    return None if value is None else str(value)


class RunReader(RunFactsReader):
    """Reads the runs of an environment, or of one tenant in it, with their captures."""

    def __init__(
        self,
        state: State,
        environment: RunEnvironment,
        *,
        tenant_id: str | None = None,
        plans: PlanReader = kept_plan,
        policy: "Callable[[], PrivacyPolicy] | None" = None,
    ) -> None:
        super().__init__(state, environment, tenant_id=tenant_id, plans=plans)
        self._captures_of = state.captures_of
        self._policy = policy
        """What the reader may see of values; without one everything, for code that answers to nobody."""

    def projected(self, run_id: str) -> Projected:
        """Where a run stands by its events so far, as the reader may see it."""
        return self._as_seen(super().projected(run_id))

    def events(self, name: str, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
        """The history of a run, as the reader may see it."""
        return self._as_seen(super().events(name, after, limit))

    def _as_seen(self, told: T) -> T:
        if self._policy is None:
            return told
        from clew.privacy.messages import as_seen

        return as_seen(self._policy(), told)

    def view(self, name: str) -> RunView:
        """A run with its current state."""
        facts = self.facts(name)
        captures = self._captures_of(facts.record.run_id)
        if captures and self._policy is not None:
            from clew.captures.seeing import seen_by

            captures = self._as_seen(seen_by(self._policy(), facts.plan, captures))
        return RunView(facts.record, facts.snapshot, facts.plan, facts.plan_problem, captures)


def _step_json(step: StepSnapshot) -> dict[str, object]:
    return {
        "seq": step.seq,
        "name": step.name,
        "type": step.type,
        "status": step.status.value,
        "rows_updated": step.counts.get("rows_updated", 0),
        "rows_created": step.counts.get("rows_created", 0),
        "rows_deleted": step.counts.get("rows_deleted", 0),
        "logical_attempt": step.logical_attempt_id,
        "engine_attempt": step.engine_attempt_id,
        "started_at": iso(step.started_at),
        "completed_at": iso(step.completed_at),
        "error": {"code": step.error.code, "message": step.error.message} if step.error else None,
    }
