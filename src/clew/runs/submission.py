"""Submitting runs to the queue."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from uuid import uuid4

from clew.deferred import dataclass
from clew.diagnostics import TransientFailure
from clew.diagnostics.codes.runs import OVERLOADED
from clew.runs.clock import Clock, utc_now
from clew.runs.limits import Accepted, QueuePolicy, Rejected, admit
from clew.runs.renewal import Renewal
from clew.runs.request import RunRecord, RunRequest
from clew.runs.stores import RunIntake


def new_run_id() -> str:
    """A unique id for a run."""
    return str(uuid4())


@dataclass(frozen=True, slots=True)
class Submission:
    """The answer to a request for a run."""

    run: RunRecord
    is_repeated: bool = False
    """Whether the request was accepted before, so that nothing new was created."""
    not_before: datetime | None = None
    rejection: Rejected | None = None

    def raise_if_rejected(self, hint: str | None = None) -> None:
        """Raises `TransientFailure` Overloaded (429 over HTTP) if the run was refused; `hint` replaces the usual."""
        if self.rejection is not None:
            raise TransientFailure(
                OVERLOADED.anywhere(
                    environment=self.run.request.environment_id,
                    retry_after_s=self.rejection.retry_after_s,
                    hint=hint,
                )
            )


class RunQueue:
    """Accepts requests under the policy of their environment."""

    def __init__(
        self,
        intake: RunIntake,
        policy_of: Callable[[str], QueuePolicy],
        *,
        clock: Clock = utc_now,
        new_id: Callable[[], str] = new_run_id,
    ) -> None:
        self._intake = intake
        self._policy_of = policy_of
        self._clock = clock
        self._new_id = new_id

    def submit(self, request: RunRequest) -> Submission:
        """Request a run. Repeating a request returns the same run."""
        policy = self._policy_of(request.environment_id)
        intake = self._intake.create(
            request,
            run_id=self._new_id(),
            approval_required=policy.approval_required,
            decide=lambda load: admit(policy, load, load.at or self._clock(), request.not_before),
        )
        match intake.admission:
            case None:
                return Submission(intake.run, is_repeated=True)
            case Accepted(not_before):
                return Submission(intake.run, not_before=not_before)
            case Rejected() as rejection:
                return Submission(intake.run, rejection=rejection)

    def retry(self, run: RunRecord, *, signal_id: str, requested_by: str, renewal: Renewal | None = None) -> str:
        """Request a new run that repeats this one, and return its id. The same signal gives the same run.

        It has the plan of this one, or that of the renewal.
        """
        request = replace(
            run.request,
            request_id=f"retry:{signal_id}",
            retry_of=run.run_id,
            requested_by=requested_by,
            not_before=None,
        )
        if renewal is not None:
            request = replace(
                request,
                plan=renewal.plan,
                project_version=renewal.project_version,
                parameters=renewal.parameters,
            )
        return self.submit(request).run.run_id
