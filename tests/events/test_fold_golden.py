"""Everything that each event changes in the snapshot and the head of a run, for review in `tests/golden/events/`.

What comes from nowhere is in the first lines: a snapshot and a step before anything is known about them.
"""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from clew.diagnostics import ClewError
from clew.events import (
    EVENT_TYPES,
    AlertRaised,
    Counters,
    RunApproved,
    RunCancelled,
    RunCompleted,
    RunContinued,
    RunFailed,
    RunPaused,
    RunRejected,
    RunResumed,
    RunRetried,
    SignalRejected,
    StepSkipped,
    StepStarted,
)
from clew.events.codec import encode
from clew.events.reducer import Head, head_after, incremental_project, waits_for_approval
from clew.events.snapshot import RunSnapshot
from clew.events.values import Cursor, Failure, FailureCategory, ranges_of
from tests.runs.runs_histories import FAILURE, PLAN, START, History, artifact, request, steps

ONE, TWO, THREE, FOUR = steps(4)
OTHER = Failure("OutOfMemory", "a task died", FailureCategory.TRANSIENT, retryable=True)


def rejected_and_approved() -> History:
    """A request that has to wait, is approved, and ends by a person."""
    wish = request(project_version="3", retry_of="run-0")
    history = History().add(RunRejected("busy", 30))
    history.add(wish.queued(approval_required=True, not_before=START + timedelta(hours=1)))
    history.add(RunApproved("eve")).signal("CANCEL", "s1")
    return history.add(RunCancelled("enough"), caused_by_signal_id="s1")


def failed_and_resumed() -> History:
    """Steps that fail, are retried, skipped and continued; signals that are refused, settled and left over."""
    history = History().started((ONE, TWO, THREE)).begin(ONE).complete(ONE).begin(TWO)
    history.signal("PAUSE", "s1").signal("RESUME", "s2").add(RunPaused(), caused_by_signal_id="s1")
    history.add(SignalRejected("s3", "CANCEL", "bob", "viewer", "NOT_AUTHORIZED", "no"))
    history.add(RunResumed(), caused_by_signal_id="s2").fail(TWO).add(RunFailed(FAILURE, "20"))
    history.signal("RETRY_STEP", "s4", "20").add(RunResumed("20"), caused_by_signal_id="s4", logical_attempt_id=2)
    history.add(StepStarted(20, TWO.name), step_id="20", logical_attempt_id=2, engine_attempt_id=2).complete(TWO, 2)
    history.add(StepSkipped("not this month"), step_id="30")
    history.add(StepSkipped("of another plan"), step_id="99").add(RunResumed("98"), logical_attempt_id=3)
    history.add(AlertRaised("SLOW", "warning", "slow", {"seconds": 9}), step_id="20")
    counters, cursor = Counters(2, 1, 1, 2, 1), Cursor(ranges_of([0, 1]), ranges_of([2]))
    history.add(RunContinued(PLAN, cursor, (artifact("10"), artifact("20")), counters, START))
    history.add(RunContinued(PLAN, cursor, (artifact("40"),), counters, START, adds_artifacts=True))
    history.begin(FOUR).signal("RETRY_RUN", "s5").signal("PAUSE", "s6").add(RunFailed(OTHER))
    return history.add(RunRetried("run-2"), caused_by_signal_id="s5")


def completed() -> History:
    """A run in which nothing goes wrong, and what is too late."""
    history = History().started((ONE,)).begin(ONE).complete(ONE).add(RunCompleted())
    return history.signal("PAUSE", "s1").add(RunPaused())


def test_what_each_event_changes(golden: Callable[[str, str], None]) -> None:
    histories = (rejected_and_approved, failed_and_resumed, completed)
    golden("events/fold.txt", "\n".join(line for each in histories for line in _told(each())))
    seen = {event.event_type for each in histories for event in each().events}
    assert seen == {each.NAME for each in EVENT_TYPES}


def _told(history: History) -> Iterator[str]:
    snapshot, head = RunSnapshot("run-1"), Head()
    yield from ("", "a run", *(f"    {path} = {value}" for path, value in _paths(encode(snapshot))))
    for number, (event, stored) in enumerate(zip(history.events, history.stored(), strict=True), 1):
        after = incremental_project(snapshot, [stored])
        yield f"{number} {event.event_type} {event.step_id}"
        yield from _changes(dict(_paths(encode(snapshot))), dict(_paths(encode(after))))
        try:
            new_head = head_after(head, [event])
        except ClewError as error:
            yield f"    refused: {error.code}"
        else:
            yield from _changes(_head(head), _head(new_head))
            head = new_head
        waits = waits_for_approval(history.stored()[:number])
        if waits:
            yield "    waits for approval"
        snapshot = after


def _head(head: Head) -> dict[str, str]:
    return {f"head{path}": value for path, value in _paths({**encode(head), "wants_worker": head.wants_worker})}


def _changes(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    for path in sorted({*before, *after}):
        if before.get(path) != after.get(path):
            yield f"    {path}: {before.get(path, '-')} -> {after.get(path, '-')}"


def _paths(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """The leaves of a document."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _paths(inner, f"{path}.{name}")
    elif isinstance(value, list | tuple) and value:
        for index, inner in enumerate(value):
            yield from _paths(inner, f"{path}[{index}]")
    else:
        yield path, str(value)
