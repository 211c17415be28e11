"""Captures and jobs that come with a run: held to the rules before it starts, and enlisted with it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clew.captures.asking import requests_of
from clew.captures.fitting import Reason
from clew.captures.policy import CapturePolicy, job_violations
from clew.captures.records import CaptureRecord, CaptureStore, NewCapture
from clew.captures.requests import PARAMETER, requests_in
from clew.definitions import CaptureWish
from clew.diagnostics import raise_if_any
from clew.events.snapshot import RunSnapshot
from clew.plan import Plan
from clew.runs.environment import RunEnvironment
from clew.runs.executor import ExecutorFactory, StepExecutor
from clew.runs.request import RunRecord
from clew.storage.plans import kept_plan


def capture_parameters(
    plan: Plan, wishes: Sequence[CaptureWish], environment: RunEnvironment, role: str
) -> dict[str, object]:
    """What a run request carries so that its captures are made. UserError where the environment does not allow them.

    The jobs of the plan are held to the same rules: nothing starts that would end in a place which is not allowed.
    """
    policy = CapturePolicy.of(environment.name, environment.settings, role)
    raise_if_any(job_violations(plan, policy))
    requests = requests_of(plan, wishes, policy)
    return {PARAMETER: [request.to_json() for request in requests]} if requests else {}


def enlist(store: CaptureStore, environment: RunEnvironment, run: RunRecord) -> tuple[CaptureRecord, ...]:
    """Take in the captures that a run carries and the jobs of its plan. Doing it again changes nothing."""
    return store.enlist(list(_wanted(environment, run)))


def _wanted(environment: RunEnvironment, run: RunRecord) -> Iterator[NewCapture]:
    request = run.request
    for number, capture in enumerate(requests_in(request.parameters), start=1):
        yield NewCapture(
            kind="capture",
            slot=f"capture:{number:04}",
            tenant_id=request.tenant_id,
            run_id=run.run_id,
            request_id=request.request_id,
            breakpoint=capture.breakpoint,
            seq=capture.seq,
            request=capture,
        )
    plan = kept_plan(environment.storage_root, request.plan.digest or "")
    for job in plan.extensions.postlude_jobs:
        yield NewCapture(
            kind="job",
            slot=job.id,
            tenant_id=request.tenant_id,
            run_id=run.run_id,
            request_id=request.request_id,
            breakpoint=job.anchor,
            seq=job.anchor_seq,
        )


@dataclass(frozen=True, slots=True)
class EnlistingExecutors:
    """Opens executors as another factory does, and sees to it that what comes after the run is enlisted by then.

    Most runs are enlisted when they are asked for; one that retries another is not. A run that goes on after a failure
    may reach what it did not reach before.
    """

    executors: ExecutorFactory
    store: CaptureStore
    environment: RunEnvironment

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> StepExecutor:
        """The executor of a run."""
        enlist(self.store, self.environment, run)
        self.store.reopen(run.run_id, [Reason.NOT_REACHED.value, Reason.RUN_NOT_COMPLETED.value])
        return self.executors.open(run, snapshot)
