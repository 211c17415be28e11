from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.events import (
    EVENT_TYPES,
    RunApproved,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunPaused,
    RunRejected,
    RunResumed,
    RunStarted,
    SignalRejected,
    StepSkipped,
)
from clew.events.reducer import Head, advance, detect_gap, head_after, incremental_project, project_run
from clew.events.snapshot import RunSnapshot, RunStatus, StepStatus
from clew.runs.projector import RunFollower
from tests.runs.runs_histories import FAILURE, History, artifact, eventful, queued, steps
from tests.tiers import examples

FATES = st.lists(st.sampled_from(["ok", "skip", "retry", "pause"]), min_size=1, max_size=6)


def status_after(history: History) -> RunStatus:
    return project_run("run-1", history.stored()).status


def test_each_event_has_the_effect_of_the_specification() -> None:
    one, two = steps(2)
    history = History().add(queued())
    assert status_after(history) is RunStatus.PENDING
    assert status_after(history.add(RunApproved("eve"))) is RunStatus.APPROVED
    assert status_after(history.add(RunStarted((one, two)), engine_run_ref={"host": "a"})) is RunStatus.RUNNING

    def step(step_id: str) -> StepStatus:
        found = project_run("run-1", history.stored()).step(step_id)
        assert found is not None
        return found.status

    assert step("10") is StepStatus.PENDING
    history.begin(one)
    assert step("10") is StepStatus.RUNNING
    history.complete(one)
    assert step("10") is StepStatus.SUCCESS
    history.signal("PAUSE", "s1")
    assert status_after(history) is RunStatus.RUNNING
    assert status_after(history.add(RunPaused(), caused_by_signal_id="s1")) is RunStatus.PAUSED
    history.add(SignalRejected("s2", "PAUSE", "ada", "viewer", "NOT_AUTHORIZED", "no"))
    assert status_after(history) is RunStatus.PAUSED
    assert status_after(history.add(RunResumed())) is RunStatus.RUNNING
    history.begin(two).fail(two)
    assert step("20") is StepStatus.FAILED
    assert status_after(history.add(RunFailed(FAILURE, "20"))) is RunStatus.FAILED
    assert status_after(history.add(RunResumed("20"), logical_attempt_id=2)) is RunStatus.RUNNING
    history.add(StepSkipped("not needed"), step_id="20")
    assert step("20") is StepStatus.SKIPPED
    assert status_after(history.add(RunCompleted())) is RunStatus.COMPLETED
    assert status_after(History().add(queued()).add(RunCancelled("enough"))) is RunStatus.CANCELLED


def test_a_rejected_request_that_comes_again_is_pending() -> None:
    history = History().add(RunRejected("busy", 30))
    assert status_after(history) is RunStatus.FAILED
    assert status_after(history.add(queued())) is RunStatus.PENDING


def test_the_snapshot_says_what_happened() -> None:
    one, two = steps(2)
    history = History().started([one, two]).begin(one).complete(one).begin(two).fail(two)
    history.add(RunFailed(FAILURE, "20"))
    snapshot = project_run("run-1", history.stored())

    assert snapshot.last_event_seq == len(history.events)
    assert (snapshot.project, snapshot.period, snapshot.failed_step) == ("gl-close", "2026-01", "20")
    assert snapshot.last_completed_step == "10"
    assert snapshot.error == FAILURE
    assert snapshot.artifacts == (artifact("10"),)
    assert snapshot.engine_run_ref == {"host": "a"}
    assert snapshot.counters.steps_failed == 1
    assert snapshot.total_duration_ms == 5000
    failed = snapshot.step("20")
    assert failed is not None
    assert (failed.error, failed.logical_attempt_id, failed.engine_attempt_id) == (FAILURE, 1, 1)


def test_the_json_of_a_snapshot_has_the_listed_fields_and_can_be_read_back() -> None:
    snapshot = project_run("run-1", eventful(["ok", "retry", "skip"]).stored())
    document = snapshot.to_json()
    expected = {"run_id", "status", "last_event_seq", "steps", "artifacts", "started_at", "completed_at"}
    assert expected | {"total_duration_ms", "project", "period"} <= document.keys()
    first = document["steps"][0]  # type: ignore[index]
    step_fields = {"step_id", "status", "logical_attempt_id", "engine_attempt_id", "started_at", "completed_at"}
    assert step_fields | {"artifacts", "error"} <= first.keys()
    assert RunSnapshot.from_json(document) == snapshot


def test_snapshots_cannot_be_changed_and_each_projection_is_a_new_one() -> None:
    events = eventful(["ok"]).stored()
    before = project_run("run-1", events[:3])
    kept = replace(before)
    after = incremental_project(before, events[3:])
    assert after is not before
    assert before == kept
    with pytest.raises(FrozenInstanceError):
        before.status = RunStatus.FAILED  # type: ignore[misc]


@settings(max_examples=examples(60), deadline=None)
@given(fates=FATES, data=st.data())
def test_incremental_and_full_projection_agree(fates: list[str], data: st.DataObject) -> None:
    events = eventful(fates, continue_after=data.draw(st.integers(1, len(fates)))).stored()
    cuts = sorted(data.draw(st.sets(st.integers(0, len(events)), max_size=4)))
    snapshot = RunSnapshot("run-1")
    for first, last in zip([0, *cuts], [*cuts, len(events)], strict=True):
        snapshot = incremental_project(snapshot, events[first:last])
    assert snapshot == project_run("run-1", events)


@settings(max_examples=examples(60), deadline=None)
@given(fates=FATES, data=st.data())
def test_any_interleaving_of_duplicated_and_delayed_events_gives_the_same_snapshot(
    fates: list[str], data: st.DataObject
) -> None:
    events = eventful(fates).stored()
    repeated = data.draw(st.lists(st.sampled_from(events), max_size=len(events)))
    arrivals = data.draw(st.permutations([*events, *repeated]))
    follower = RunFollower("run-1")
    for event in arrivals:
        follower.feed(event)
    assert follower.snapshot == project_run("run-1", events)
    assert not follower.is_stale


@settings(max_examples=examples(30), deadline=None)
@given(fates=FATES)
def test_reducing_an_event_twice_changes_nothing(fates: list[str]) -> None:
    events = eventful(fates).stored()
    snapshot = RunSnapshot("run-1")
    for event in events:
        snapshot = incremental_project(snapshot, [event])
        assert incremental_project(snapshot, [event]) == snapshot


@settings(max_examples=examples(40), deadline=None)
@given(fates=FATES, data=st.data())
def test_reading_from_the_last_continuation_agrees_on_all_that_matters(fates: list[str], data: st.DataObject) -> None:
    at = data.draw(st.integers(1, len(fates)))
    events = eventful(fates, continue_after=at).stored()
    start = next(index for index, event in enumerate(events) if event.event_type == "RunContinued")
    full, short = project_run("run-1", events), project_run("run-1", events[start:])
    for name in ("status", "last_event_seq", "artifacts", "counters", "cursor", "started_at", "total_duration_ms"):
        assert getattr(short, name) == getattr(full, name)
    assert {step.step_id for step in short.steps} <= {step.step_id for step in full.steps}
    assert all(position in short.cursor for position in range(at))


@settings(max_examples=examples(60), deadline=None)
@given(fates=FATES, data=st.data())
def test_the_head_and_the_snapshot_agree_after_every_event(fates: list[str], data: st.DataObject) -> None:
    """The store keeps the head, readers get the snapshot; both follow the same table."""
    history = eventful(fates, continue_after=data.draw(st.integers(1, len(fates))))
    head, snapshot = Head(), RunSnapshot("run-1")
    for new, known in zip(history.events, history.stored(), strict=True):
        head, snapshot = head_after(head, [new]), incremental_project(snapshot, [known])
        assert (head.status, head.started_at) == (snapshot.status, snapshot.started_at)
        assert head.completed_at == snapshot.completed_at
        assert (snapshot.completed_at is not None) == snapshot.status.is_terminal


def test_the_projection_halts_at_a_gap_and_goes_on_when_it_closes() -> None:
    events = eventful(["ok", "ok"]).stored()
    progress = advance(RunSnapshot("run-1"), [*events[:2], *events[3:]])
    assert progress.snapshot.last_event_seq == 2
    assert progress.gap is not None
    assert (progress.gap.expected_seq, progress.gap.found_seq) == (3, 4)
    closed = advance(progress.snapshot, [events[2], *progress.waiting])
    assert closed.gap is None
    assert closed.snapshot == project_run("run-1", events)


def test_a_gap_is_detected_between_two_numbers_that_do_not_follow_each_other() -> None:
    assert detect_gap(9, 10) is None
    gap = detect_gap(9, 12)
    assert gap is not None
    assert gap.expected_seq == 10


def test_a_follower_is_stale_while_an_event_is_missing() -> None:
    events = eventful(["ok"]).stored()
    follower = RunFollower("run-1")
    follower.feed(events[0], *events[2:])
    stale = [follower.is_stale]
    assert follower.snapshot.last_event_seq == 1
    follower.feed(events[1])
    stale.append(follower.is_stale)
    assert stale == [True, False]
    assert follower.snapshot.status is RunStatus.COMPLETED


def test_every_retry_of_a_step_is_another_logical_attempt() -> None:
    snapshot = project_run("run-1", eventful(["retry"]).stored())
    step = snapshot.step("10")
    assert step is not None
    assert (step.status, step.logical_attempt_id) == (StepStatus.SUCCESS, 2)


def test_each_event_records_what_it_brings() -> None:
    one, two, three = steps(3)
    history = History().started((one, two, three))
    assert project_run("run-1", history.stored()).engine_run_ref == {"host": "a"}
    history.begin(one).complete(one).begin(two).fail(two).add(RunFailed(FAILURE, "20"))
    failed = project_run("run-1", history.stored())
    first, second = failed.steps[:2]
    assert (first.artifacts, first.counts, first.error) == ((artifact("10"),), {"rows_updated": 10}, None)
    assert (second.artifacts, second.error) == ((), FAILURE)
    assert (failed.error, failed.failed_step, failed.last_completed_step) == (FAILURE, "20", "10")
    assert (failed.counters.steps_succeeded, failed.counters.steps_failed) == (1, 1)
    history.add(RunResumed("20"), logical_attempt_id=2).begin(two, 2).complete(two, 2)
    history.add(StepSkipped("not this month"), step_id="30").add(RunCompleted())
    ended = project_run("run-1", history.stored())
    assert ended.steps[2].skip_reason == "not this month"
    assert ended.artifacts == (artifact("10"), artifact("20"))
    assert ended.error is None


@settings(max_examples=examples(30), deadline=None)
@given(fates=FATES, attempt=st.integers(2, 9))
def test_attempts_of_the_platform_decide_nothing(fates: list[str], attempt: int) -> None:
    """Whatever their number, the run stands where it stands, and every event has the same key."""

    def standing(snapshot: RunSnapshot) -> RunSnapshot:
        return replace(snapshot, steps=tuple(replace(step, engine_attempt_id=None) for step in snapshot.steps))

    history, again = eventful(fates), eventful(fates)
    again.events = [
        replace(event, event_id=known.event_id, engine_attempt_id=event.engine_attempt_id and attempt)
        for event, known in zip(again.events, history.events, strict=True)
    ]
    assert standing(project_run("run-1", again.stored())) == standing(project_run("run-1", history.stored()))
    assert [event.raw.idempotency_key for event in again.stored()] == [
        event.raw.idempotency_key for event in history.stored()
    ]


def test_every_event_type_is_in_the_list_once_and_named_like_its_class() -> None:
    assert len({cls.NAME for cls in EVENT_TYPES}) == len(EVENT_TYPES)
    assert all(cls.__name__ == cls.NAME and cls.VERSION >= 1 for cls in EVENT_TYPES)
    thirteen = "RunApproved RunStarted StepStarted StepCompleted StepFailed StepSkipped SignalAccepted SignalRejected"
    rest = "RunPaused RunResumed RunCompleted RunFailed RunCancelled"
    assert set(f"{thirteen} {rest}".split()) <= {cls.NAME for cls in EVENT_TYPES}
