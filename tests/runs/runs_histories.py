"""Histories for tests: events as a store would return them, and ways to generate whole runs."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from clew.events import (
    Counters,
    EventBody,
    NewEvent,
    RawEvent,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunQueued,
    RunResumed,
    RunStarted,
    SignalAccepted,
    StepCompleted,
    StepFailed,
    StepSkipped,
    StepStarted,
    StoredEvent,
)
from clew.events.codec import encode
from clew.events.values import ArtifactRef, Cursor, Failure, FailureCategory, PlannedStep, PlanRef, ranges_of
from clew.runs.request import RunRequest

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
PLAN = PlanRef("gl-close", "7")
FAILURE = Failure("JoinNotUnique", "two rates for EUR", FailureCategory.USER)


def steps(count: int) -> tuple[PlannedStep, ...]:
    return tuple(PlannedStep(str(n * 10), n * 10, f"step {n}", "update") for n in range(1, count + 1))


def request(**changes: object) -> RunRequest:
    base = RunRequest(project_id="gl-close", plan=PLAN, period="2026-01", request_id="r-1", requested_by="ada")
    return replace(base, **changes)  # type: ignore[arg-type]


def queued() -> RunQueued:
    return request().queued(approval_required=False, not_before=None)


def stored(run_id: str, events: Iterable[NewEvent], *, first_seq: int = 1) -> tuple[StoredEvent, ...]:
    return tuple(_raw(run_id, event, seq).read() for seq, event in enumerate(events, first_seq))


def _raw(run_id: str, event: NewEvent, seq: int) -> RawEvent:
    return RawEvent(
        run_id=run_id,
        run_seq=seq,
        event_id=event.event_id,
        step_id=event.step_id,
        logical_attempt_id=event.logical_attempt_id,
        engine_attempt_id=event.engine_attempt_id,
        event_type=event.event_type,
        event_version=event.body.VERSION,
        event_data=encode(event.body),
        idempotency_key=event.key(run_id=run_id, plan_version=PLAN.plan_version),
        emitted_at=event.emitted_at,
        persisted_at=event.emitted_at,
        adapter_version="test",
        engine_run_ref=event.engine_run_ref,
        caused_by_signal_id=event.caused_by_signal_id,
        parent_event_id=event.parent_event_id,
    )


class History:
    """Writes down what happens to a run, second by second."""

    def __init__(self) -> None:
        self.events: list[NewEvent] = []

    def add(self, body: EventBody, **fields: object) -> "History":
        moment = START + timedelta(seconds=len(self.events))
        self.events.append(NewEvent(body, emitted_at=moment, **fields))  # type: ignore[arg-type]
        return self

    def started(self, planned: Sequence[PlannedStep]) -> "History":
        return self.add(queued()).add(RunStarted(tuple(planned)), engine_run_ref={"host": "a"})

    def begin(self, step: PlannedStep, attempt: int = 1) -> "History":
        return self.add(
            StepStarted(step.seq, step.name), step_id=step.step_id, logical_attempt_id=attempt, engine_attempt_id=1
        )

    def complete(self, step: PlannedStep, attempt: int = 1) -> "History":
        body = StepCompleted((artifact(step.step_id),), {"rows_updated": step.seq})
        return self.add(body, step_id=step.step_id, logical_attempt_id=attempt, engine_attempt_id=1)

    def fail(self, step: PlannedStep, attempt: int = 1) -> "History":
        return self.add(StepFailed(FAILURE), step_id=step.step_id, logical_attempt_id=attempt, engine_attempt_id=1)

    def signal(self, signal: str, signal_id: str, step_id: str | None = None) -> "History":
        return self.add(SignalAccepted(signal_id, signal, "ada", "operator", step_id), step_id=f"SIGNAL:{signal_id}")

    def stored(self, run_id: str = "run-1") -> tuple[StoredEvent, ...]:
        return stored(run_id, self.events)


def artifact(name: str) -> ArtifactRef:
    return ArtifactRef(f"file:///trace/{name}.parquet", "trace", "ab" * 32, 1234, START + timedelta(days=90))


def eventful(fates: Sequence[str], *, continue_after: int | None = None) -> History:
    """A run whose steps meet the given fates, rotated once after `continue_after` steps."""
    planned = steps(len(fates))
    history = History().started(planned)
    done: dict[str, list[int]] = {"succeeded": [], "skipped": []}
    failed = resumes = 0
    for position, (step, fate) in enumerate(zip(planned, fates, strict=True)):
        match fate:
            case "skip":
                history.add(StepSkipped("not needed"), step_id=step.step_id)
                done["skipped"].append(position)
            case "retry":
                history.begin(step).fail(step).add(RunFailed(FAILURE, step.step_id), logical_attempt_id=resumes + 1)
                history.signal("RETRY_STEP", f"s{position}", step.step_id)
                history.add(
                    RunResumed(step.step_id), caused_by_signal_id=f"s{position}", logical_attempt_id=resumes + 1
                )
                resumes, failed = resumes + 1, failed + 1
                history.begin(step, 2).complete(step, 2)
                done["succeeded"].append(position)
            case "pause":
                history.signal("PAUSE", f"p{position}")
                history.add(RunPaused(), caused_by_signal_id=f"p{position}", logical_attempt_id=resumes + 1)
                history.signal("RESUME", f"q{position}")
                history.add(RunResumed(), caused_by_signal_id=f"q{position}", logical_attempt_id=resumes + 1)
                resumes += 1
                history.begin(step).complete(step)
                done["succeeded"].append(position)
            case _:
                history.begin(step).complete(step)
                done["succeeded"].append(position)
        if continue_after == position + 1:
            cursor = Cursor(ranges_of(done["succeeded"]), ranges_of(done["skipped"]))
            counters = Counters(len(done["succeeded"]), failed, len(done["skipped"]), resumes, 1)
            artifacts = tuple(artifact(planned[at].step_id) for at in done["succeeded"])
            started_at = history.events[1].emitted_at
            history.add(RunContinued(PLAN, cursor, artifacts, counters, started_at))
    return history.add(RunCompleted())
