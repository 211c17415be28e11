from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from clew.events import NewEvent, RunContinued, RunStarted, StepCompleted, StoredEvent
from clew.events.bodies import Counters
from clew.events.codec import canonical_json, encode
from clew.events.reducer import project_run
from clew.events.snapshot import RunStatus, StepStatus
from clew.events.values import ArtifactRef, Cursor
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.limits import StoreLimits
from clew.runs.rotation import SegmentSize, can_rotate, closing, remaining_steps, with_all_steps
from clew.runs.signals import Actor, Role, Signal, SignalType
from clew.runs.stores import RunStores
from tests.runs.runs_histories import PLAN, eventful, steps
from tests.runs.runs_workers import FakeExecutors, Site, succeed


def continuations(site: Site) -> list[RunContinued]:
    return [e.body for e in site.stores.reader.events("run-1") if isinstance(e.body, RunContinued)]


def test_history_rotates_after_50_steps(stores: RunStores) -> None:
    site = Site(stores, FakeExecutors(101, fuse=10))
    site.submit()
    assert site.drive() is RunStatus.COMPLETED
    first, second = continuations(site)
    assert first.cursor.succeeded == ((0, 49),)
    assert second.cursor.succeeded == ((0, 99),)
    assert (first.counters.segments, second.counters.segments) == (1, 2)
    assert (second.counters.steps_succeeded, len(first.artifacts), len(second.artifacts)) == (100, 50, 50)
    read = stores.reader.since_last_continuation("run-1")
    artifacts = (*first.artifacts, *second.artifacts)
    assert read[0].body == replace(second, artifacts=artifacts, adds_artifacts=False)
    assert len(read) == 4


def test_history_rotates_after_a_megabyte(stores: RunStores) -> None:
    """With the default limits, and a history that has a megabyte."""

    def big(attempts: Sequence[StepAttempt], _context: StepContext) -> list[StepOutput]:
        return [StepOutput.success(*_artifacts(attempt.step.step_id, 100, 900)) for attempt in attempts]

    site = Site(stores, FakeExecutors(15, big))
    site.submit()
    assert site.drive() is RunStatus.COMPLETED
    events = stores.reader.events("run-1")
    sizes = [len(canonical_json(event.to_json()["event_data"])) for event in events]
    before = next(index for index, event in enumerate(events) if isinstance(event.body, RunContinued))
    assert 1_000_000 < sum(sizes[:before]) + 400 * before < 1_100_000
    assert sum(sizes[: before - 2]) + 400 * (before - 2) < 1_000_000
    assert max(sizes) < StoreLimits().max_event_bytes / 1.9
    read = stores.reader.since_last_continuation("run-1")
    assert project_run("run-1", read).artifacts == site.snapshot().artifacts
    assert len(site.snapshot().artifacts) == 1500
    assert read[0].run_seq > before


def _artifacts(step_id: str, count: int, length: int) -> list[ArtifactRef]:
    return [ArtifactRef(f"file:///{'x' * length}/{step_id}/{n}", "trace") for n in range(count)]


def test_a_run_of_1300_steps_with_an_artifact_each_completes(stores: RunStores) -> None:
    def one_each(attempts: Sequence[StepAttempt], _context: StepContext) -> list[StepOutput]:
        return [StepOutput.success(*_artifacts(attempt.step.step_id, 1, 200)) for attempt in attempts]

    executors = FakeExecutors(1300, one_each, fuse=50)
    site = Site(stores, executors)
    site.submit()
    assert site.drive() is RunStatus.COMPLETED
    expected = tuple(ref for step in steps(1300) for ref in _artifacts(step.step_id, 1, 200))
    assert site.snapshot().artifacts == expected
    carried = continuations(site)
    assert [body.counters.artifacts_carried for body in carried] == list(range(50, 1300, 50))
    read = stores.reader.since_last_continuation("run-1")
    assert project_run("run-1", read).artifacts == expected


def test_a_worker_that_takes_over_late_has_all_artifacts(stores: RunStores) -> None:
    """Continuations of an older version carry everything, later ones what came after them."""
    planned = steps(4)
    site = Site(stores, FakeExecutors(4), limits=StoreLimits(continue_steps=1))
    site.submit()
    claim = stores.leases.acquire("run-1", owner="old", ttl_s=60)
    assert claim is not None

    def artifact(step: str) -> ArtifactRef:
        return ArtifactRef(f"file:///{step}.1", "trace")

    everything = RunContinued(PLAN, Cursor(((0, 1),)), (artifact("10"), artifact("20")), Counters(2, segments=1))
    history = [
        NewEvent(RunStarted(planned), site.clock()),
        *(NewEvent(StepCompleted((artifact(step),)), site.clock(), step_id=step) for step in ("10", "20")),
        NewEvent(everything, site.clock()),
    ]
    stores.writer.append("run-1", history, token=claim.lease.token)
    stores.leases.release(claim.lease, seen_seq=5)
    assert site.drive() is RunStatus.COMPLETED
    assert site.snapshot().artifacts == tuple(artifact(step.step_id) for step in planned)
    assert [len(body.artifacts) for body in continuations(site)] == [2, 1]
    read = stores.reader.since_last_continuation("run-1")
    assert project_run("run-1", read).artifacts == site.snapshot().artifacts


def test_a_continuation_carries_only_what_going_on_needs(sqlite_stores: RunStores) -> None:
    site = Site(sqlite_stores, FakeExecutors(6), limits=StoreLimits(continue_steps=4))
    site.submit()
    site.drive()
    (body,) = continuations(site)
    assert encode(body).keys() == {"plan", "cursor", "artifacts", "counters", "started_at", "adds_artifacts"}
    assert body.plan == PLAN
    assert body.started_at == site.snapshot().started_at


@pytest.mark.parametrize("dies_at", range(3, 9))
def test_a_run_resumes_from_its_last_continuation(sqlite_stores: RunStores, dies_at: int) -> None:
    class Death(BaseException):
        pass

    def dies(attempts, context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if attempts[0].step.seq == dies_at * 10:
            raise Death
        return succeed(attempts, context)

    limits = StoreLimits(continue_steps=3)
    site = Site(sqlite_stores, FakeExecutors(10, dies), limits=limits)
    site.submit()
    with pytest.raises(Death):
        site.drive()
    again = Site(sqlite_stores, FakeExecutors(10), limits=limits)
    assert again.drive() is RunStatus.COMPLETED
    assert again.executors.attempts[0] == (str(dies_at * 10),)
    snapshot = again.snapshot()
    assert [step.status for step in snapshot.steps] == [StepStatus.SUCCESS] * 10
    assert snapshot == project_run("run-1", sqlite_stores.reader.events("run-1"))
    assert snapshot.counters.steps_succeeded == 10
    assert len(snapshot.artifacts) == 10


def test_a_step_can_be_skipped_and_a_run_paused_after_a_rotation(sqlite_stores: RunStores) -> None:
    site: Site

    def pauses(attempts, context):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        if attempts[0].step.seq == 50:
            for type_, step in ((SignalType.SKIP_STEP, "70"), (SignalType.PAUSE, None)):
                signal = Signal(signal_id=str(type_), run_id="run-1", type=type_, step_id=step)
                assert site.signals.send(signal, Actor("ada", Role.ADMIN)).is_accepted
        return succeed(attempts, context)

    site = Site(sqlite_stores, FakeExecutors(8, pauses), limits=StoreLimits(continue_steps=4))
    site.submit()
    assert site.drive() is RunStatus.PAUSED
    resume = Signal(signal_id="r", run_id="run-1", type=SignalType.RESUME)
    site.signals.send(resume, Actor("ada", Role.ADMIN))
    assert site.drive() is RunStatus.COMPLETED
    assert [group[0] for group in site.executors.attempts] == ["10", "20", "30", "40", "50", "60", "80"]


@pytest.mark.parametrize("fate", ["retry", "pause"])
def test_a_history_is_not_rotated_while_something_is_half_way(fate: str) -> None:
    events = eventful(["ok", fate]).stored()
    rotatable = [can_rotate(project_run("run-1", events[:length])) for length in range(1, len(events) + 1)]
    for length, event in enumerate(events, 1):
        if event.event_type in {"StepStarted", "StepFailed", "SignalAccepted", "RunFailed"}:
            assert not rotatable[length - 1]
    assert rotatable[-1]


def test_the_size_of_a_segment_starts_anew_at_a_continuation() -> None:
    events = eventful(["ok", "ok", "skip", "ok"], continue_after=3).stored()
    size = SegmentSize().after(events)
    assert size.steps == 1
    assert size.bytes < SegmentSize().after(events[:7]).bytes
    assert size.is_full(StoreLimits(continue_steps=1))
    assert size.is_full(StoreLimits(history_bytes=100))
    assert not size.is_full(StoreLimits())


def test_what_is_left_is_the_same_from_the_cursor_and_from_the_whole_history() -> None:
    planned = steps(4)
    events = eventful(["ok", "skip", "ok", "ok"], continue_after=3).stored()[:-3]
    start = next(index for index, event in enumerate(events) if event.event_type == "RunContinued")
    full, short = project_run("run-1", events), project_run("run-1", events[start:])
    assert remaining_steps(full, planned) == remaining_steps(short, planned) == planned[3:]
    filled = with_all_steps(short, planned)
    assert [step.status for step in filled.steps] == [step.status for step in full.steps]
    (again,) = closing(filled, PLAN, planned)
    assert again.cursor == short.cursor
    assert again.counters == replace(short.counters, segments=2)


def test_a_signal_that_comes_in_the_moment_of_a_rotation_is_not_left_behind(sqlite_stores: RunStores) -> None:
    site: Site

    class Interrupted:
        """A writer before whose first continuation a signal arrives."""

        left = 1

        def append(self, run_id: str, events: Sequence[NewEvent], **rest: Any) -> tuple[StoredEvent, ...]:
            if self.left and any(isinstance(event.body, RunContinued) for event in events):
                self.left -= 1
                pause = Signal(signal_id="p", run_id="run-1", type=SignalType.PAUSE)
                assert quick.signals.send(pause, Actor("ada", Role.ADMIN)).is_accepted
            return sqlite_stores.writer.append(run_id, events, **rest)

    quick = Site(sqlite_stores, FakeExecutors(6))
    writer: Any = Interrupted()
    site = Site(replace(sqlite_stores, writer=writer), FakeExecutors(6), limits=StoreLimits(continue_steps=3))
    site.submit()
    assert site.drive() is RunStatus.PAUSED
    assert continuations(site) == []
    resume = Signal(signal_id="r", run_id="run-1", type=SignalType.RESUME)
    site.signals.send(resume, Actor("ada", Role.ADMIN))
    assert site.drive() is RunStatus.COMPLETED
    assert len(continuations(site)) == 1
