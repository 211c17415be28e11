from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from clew.events import NewEvent, RunContinued, StoredEvent
from clew.events.codec import encode
from clew.events.reducer import project_run
from clew.events.snapshot import RunStatus, StepStatus
from clew.events.values import ArtifactRef
from clew.runs.executor import StepOutput
from clew.runs.limits import StoreLimits
from clew.runs.rotation import SegmentSize, can_rotate, continuation, remaining_steps, with_all_steps
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
    assert second.counters.steps_succeeded == len(second.artifacts) == 100
    read = stores.reader.since_last_continuation("run-1")
    assert read[0].body == second
    assert len(read) == 4


def test_history_rotates_after_a_megabyte(sqlite_stores: RunStores) -> None:
    big = tuple(ArtifactRef(f"file:///{'x' * 900}/{n}", "trace") for n in range(100))
    executors = FakeExecutors(25, lambda attempts, context: [StepOutput.success(*big[:1]) for _ in attempts])
    site = Site(sqlite_stores, executors, limits=StoreLimits(history_bytes=20_000))
    site.submit()
    site.drive()
    assert len(continuations(site)) >= 1
    assert StoreLimits().history_bytes == 1_000_000
    assert StoreLimits().continue_steps == 50


def test_a_continuation_carries_only_what_going_on_needs(sqlite_stores: RunStores) -> None:
    site = Site(sqlite_stores, FakeExecutors(6), limits=StoreLimits(continue_steps=4))
    site.submit()
    site.drive()
    (body,) = continuations(site)
    assert encode(body).keys() == {"plan", "cursor", "artifacts", "counters", "started_at"}
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
    again = continuation(filled, PLAN, planned)
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
