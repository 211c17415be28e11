"""A run: its timeline, inputs and outputs, events, errors, and the signals that the caller may send to it.

A failed operation is shown with an excerpt of the file that defines it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

from clew.api.run_view import RunInput, RunView
from clew.api.signalling import PossibleSignal
from clew.api.verification_records import VerificationRecord
from clew.captures.queue import CaptureRecord
from clew.deferred import dataclass
from clew.diagnostics import Diagnostic, Span
from clew.diagnostics.diagnostic import LINE_BREAK
from clew.events.envelope import StoredEvent
from clew.events.sentences import OF_STEPS, sentence
from clew.events.snapshot import RunStatus
from clew.events.values import LOAD_STEP
from clew.runs.signals import SignalType
from clew.server.pages import addresses, words
from clew.server.pages.runs_page import rows_changed
from clew.server.pages.timeline import Timeline, timeline

_MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Excerpt:
    """Lines of a file with their numbers."""

    file: str
    lines: tuple[tuple[int, str], ...]
    marked: int | None
    """The number of the line that matters most."""


def operation_excerpt(source: str, place: Span) -> Excerpt | None:
    """The YAML list item at a location; None if the file no longer has that line."""
    lines = LINE_BREAK.split(source)
    if not 1 <= place.line <= len(lines):
        return None
    first = _first_line(lines, place.line - 1)
    inside = _indentation(lines[first])
    last = first
    for number in range(first + 1, min(len(lines), first + _MOST_LINES)):
        text = lines[number]
        if text.strip() and _indentation(text) <= inside:
            break
        if text.strip():
            last = number
    shown = lines[first : last + 1]
    margin = min((_indentation(text) for text in shown if text.strip()), default=0)
    numbered = tuple((first + 1 + offset, text[margin:]) for offset, text in enumerate(shown))
    return Excerpt(place.file, numbered, place.line if place.line != first + 1 else None)


def _first_line(lines: Sequence[str], index: int) -> int:
    """The line with the dash of the item."""
    own = _indentation(lines[index])
    for number in range(index, -1, -1):
        text = lines[number]
        if text.lstrip().startswith("- ") and (number == index or _indentation(text) < own):
            return number
    return index


def _indentation(text: str) -> int:
    return len(text) - len(text.lstrip(" "))


@dataclass(frozen=True, slots=True)
class EventLine:
    """An event of the history."""

    run_seq: int
    moment: str
    event: str
    step: str
    said: str


def event_line(event: StoredEvent) -> EventLine:
    """Number, time, type, step and what it says."""
    step = event.step_id if isinstance(event.body, OF_STEPS) else ""
    attempt = f" (attempt {event.logical_attempt_id})" if step and event.logical_attempt_id > 1 else ""
    moment = words.second(event.emitted_at)
    return EventLine(event.run_seq, moment, event.event_type, step, f"{sentence(event.body)}{attempt}")


_WORDS = {
    SignalType.APPROVE: ("Approve", "The run starts as soon as a worker is free."),
    SignalType.PAUSE: ("Pause", "The run pauses after the current step."),
    SignalType.RESUME: ("Resume", "The run continues with its next step."),
    SignalType.RETRY_STEP: (
        "Retry step",
        "Try the failed step again, from the last committed step.",
    ),
    SignalType.SKIP_STEP: ("Skip step", "The run continues without the failed step. This changes results."),
    SignalType.RETRY_RUN: ("Run again", "A new run of the same project for the same period."),
    SignalType.CANCEL: ("Cancel", "The run ends. Published outputs remain."),
}
_AWAITED = frozenset({SignalType.APPROVE, SignalType.RESUME, SignalType.RETRY_STEP})
_GRAVE = frozenset({SignalType.SKIP_STEP, SignalType.CANCEL})


@dataclass(frozen=True, slots=True)
class SignalButton:
    """A signal that can be sent now."""

    signal: SignalType
    title: str
    meaning: str
    step_id: str | None
    is_grave: bool
    """Whether it cannot be undone."""
    is_primary: bool
    """Whether it is what the run is waiting for."""


def signal_buttons(possible: Sequence[PossibleSignal]) -> tuple[SignalButton, ...]:
    """A button for each signal that can be sent. Signals that end a run come last."""
    found = list[SignalButton]()
    for each in sorted(possible, key=lambda each: list(_WORDS).index(each.signal)):
        title, meaning = _WORDS[each.signal]
        label = f"{title} {each.step_id}" if each.step_id is not None else title
        found.append(
            SignalButton(each.signal, label, meaning, each.step_id, each.signal in _GRAVE, each.signal in _AWAITED)
        )
    return tuple(found)


_READABLE = frozenset({RunStatus.COMPLETED, RunStatus.FAILED, RunStatus.CANCELLED})


@dataclass(frozen=True, slots=True)
class ReadDataset:
    """A dataset that the run has pinned."""

    name: str
    rows: int
    origin: str
    address: str


@dataclass(frozen=True, slots=True)
class ShownOutput:
    """An output."""

    seq: int
    rows: int
    rows_address: str | None
    """What was written; None for callers who may not see rows, and until the run has ended."""
    place: str
    dataset: str | None
    dataset_address: str | None


@dataclass(frozen=True, slots=True)
class ShownCapture:
    """A capture, or a job after the run."""

    what: str
    place: str
    status: str
    note: str
    address: str | None
    """None for jobs, and for callers who may not read captures."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Why the run failed, and the operation that failed."""

    diagnostic: Diagnostic
    step: str | None
    attempt: int
    excerpt: Excerpt | None


@dataclass(frozen=True, slots=True)
class RunPage:
    """The content of the page of a run."""

    run_id: str
    title: str
    status: RunStatus
    is_over: bool
    project: str
    project_address: str
    version: str
    period: str
    asked: str
    started: str
    duration: str
    """How long it has worked: without the time that it waited for someone."""
    worked_ms: int
    is_working: bool
    """Whether time is passing for it."""
    is_settling: bool
    """Whether captures or jobs are still to come, also after its end."""
    requested_by: str
    retry_of: str | None
    rerun_of: str | None
    rows_changed: int | None
    last_seq: int
    missing_seq: int | None
    """The missing event, if later ones are present. The run may have progressed further than the page shows."""
    pending: tuple[str, ...]
    """Signals that were accepted and have not taken effect yet."""
    timeline: Timeline
    buttons: tuple[SignalButton, ...]
    failed: Failed | None
    reads: tuple[ReadDataset, ...]
    outputs: tuple[ShownOutput, ...]
    kept: tuple[ShownCapture, ...]
    history: tuple[EventLine, ...]
    rows_address: str | None
    """None until the run has ended, since its trace cannot be read before, and for callers who may not see rows."""
    step_addresses: Mapping[str, str]
    """The rows behind the numbers of each step, by its id: exactly those that it loaded, changed or wrote."""
    why_not_address: str | None
    reconciliation_address: str | None
    quarantine_address: str | None
    compare_address: str | None
    why_changed_address: str | None
    what_if_address: str | None
    rerun_address: str | None
    """Where a rerun is requested; None while the run has not ended, and for those who may start none."""
    evidence_address: str | None
    log_address: str | None
    """None for those who do not operate runs."""
    verified: str | None
    """When it was last verified, by whom, and with which result."""
    is_intact: bool


@dataclass(frozen=True, slots=True)
class Around:
    """What the page needs besides the run."""

    now: datetime
    signals: Sequence[PossibleSignal]
    may_read_rows: bool
    may_read_captures: bool
    may_start: bool
    may_read_log: bool
    verification: VerificationRecord | None
    source_of: Callable[[str], str | None]
    """The text of a file, as of the run's version if that is known."""


def run_page(view: RunView, inputs: Sequence[RunInput], events: Sequence[StoredEvent], around: Around) -> RunPage:
    """The page of a run."""
    record, snapshot = view.record, view.snapshot
    request = record.request
    readable = around.may_read_rows and snapshot.status in _READABLE and bool(inputs)
    steps = timeline(snapshot, around.now, events)
    has_output = readable and view.plan is not None and bool(view.plan.outputs)
    return RunPage(
        run_id=record.run_id,
        title=words.isolated(view.plan.title if view.plan else request.project_id),
        status=snapshot.status,
        is_over=snapshot.status.is_terminal,
        project=request.project_id,
        project_address=addresses.project(request.project_id),
        version=request.definition,
        period=request.period,
        asked=words.second(record.created_at),
        started=words.second(snapshot.started_at),
        duration=words.duration(steps.worked) if snapshot.started_at is not None else "",
        worked_ms=round(steps.worked.total_seconds() * 1000),
        is_working=snapshot.status is RunStatus.RUNNING and snapshot.started_at is not None,
        is_settling=any(not capture.status.is_over for capture in view.captures),
        requested_by=request.requested_by or "",
        retry_of=request.retry_of,
        rerun_of=request.rerun.of if request.rerun is not None else None,
        rows_changed=rows_changed(snapshot),
        last_seq=snapshot.last_event_seq,
        missing_seq=snapshot.last_event_seq + 1 if snapshot.last_event_seq < record.last_seq else None,
        pending=tuple(_WORDS[SignalType(signal.signal)][0] for signal in snapshot.pending_signals),
        timeline=steps,
        buttons=signal_buttons(around.signals),
        failed=_failed(view, around),
        reads=tuple(map(_read, inputs)),
        outputs=tuple(_published(output, record.run_id if has_output else None) for output in view.outputs()),
        kept=tuple(_kept(record, _job_names(view), around) for record in view.captures),
        history=tuple(event_line(event) for event in events),
        rows_address=addresses.rows(record.run_id) if readable else None,
        step_addresses=dict(_step_addresses(record.run_id, steps)) if readable else {},
        why_not_address=addresses.why_not(record.run_id) if has_output else None,
        reconciliation_address=addresses.reconciliation(record.run_id) if has_output else None,
        quarantine_address=addresses.quarantine(record.run_id) if has_output and _kept_rows_apart(view) else None,
        compare_address=addresses.compare(record.run_id) if has_output else None,
        why_changed_address=addresses.why_changed(record.run_id) if has_output else None,
        what_if_address=addresses.what_if(record.run_id) if has_output else None,
        rerun_address=addresses.rerun(record.run_id) if around.may_start and snapshot.status.is_terminal else None,
        log_address=addresses.driver_log(record.run_id) if around.may_read_log else None,
        verified=None if around.verification is None else _verified(around.verification),
        is_intact=around.verification is None or around.verification.is_intact,
        evidence_address=addresses.evidence(record.run_id) if readable and view.plan is not None else None,
    )


def _kept_rows_apart(view: RunView) -> bool:
    load = view.snapshot.step(LOAD_STEP)
    return load is not None and bool(load.counts.get("quarantined"))


def _verified(record: VerificationRecord) -> str:
    result = "intact" if record.is_intact else f"NOT intact, {words.counted(record.findings, 'finding')}"
    depth = ", every expression evaluated again" if record.is_deep else ""
    return f"{result}{depth}; {words.second(record.at)} by {record.by}"


def _failed(view: RunView, around: Around) -> Failed | None:
    diagnostic = view.failure
    if diagnostic is None or view.snapshot.status is not RunStatus.FAILED:
        return None
    step = view.failed_step
    source = around.source_of(diagnostic.span.file) if diagnostic.span else None
    excerpt = operation_excerpt(source, diagnostic.span) if source is not None and diagnostic.span else None
    label = None if step is None else f"{step.seq or 'load'} “{step.name}”"
    return Failed(diagnostic, label, step.logical_attempt_id if step else 1, excerpt)


def _read(found: RunInput) -> ReadDataset:
    return ReadDataset(found.name, found.rows, found.sources, addresses.dataset(found.name.partition("@")[0]))


def _step_addresses(run_id: str, steps: Timeline) -> Iterator[tuple[str, str]]:
    for step in steps.steps:
        if step.rows_at is None:
            continue
        if step.is_output:
            yield step.step_id, addresses.output(run_id, step.rows_at)
        else:
            yield step.step_id, addresses.rows(run_id, at=step.rows_at, changed="1" if step.rows_at else "")


def _job_names(view: RunView) -> dict[str, str]:
    jobs = view.plan.extensions.postlude_jobs if view.plan else ()
    return {job.id: job.name or job.id for job in jobs}


def _kept(record: CaptureRecord, jobs: Mapping[str, str], around: Around) -> ShownCapture:
    outcome = record.outcome
    rows = outcome.manifest.rows if outcome.manifest else outcome.job.rows if outcome.job else None
    note = words.drop_reason(outcome.drop_reason) or (outcome.error.message if outcome.error else "")
    is_open = record.kind == "capture" and around.may_read_captures
    return ShownCapture(
        what="capture" if record.kind == "capture" else f"job {jobs.get(record.slot, record.slot)}",
        place=record.breakpoint,
        status=record.status.value,
        note=note or (words.counted(rows, "row") if rows is not None else ""),
        address=addresses.capture(record.capture_id) if is_open else None,
    )


def _published(output: dict[str, object], run_id: str | None) -> ShownOutput:
    place = output.get("path") or f"table {output.get('table')}"
    dataset = output.get("dataset")
    return ShownOutput(
        seq=int(str(output["seq"])),
        rows=int(str(output["rows"])),
        rows_address=None if run_id is None else addresses.output(run_id, int(str(output["seq"]))),
        place=str(place),
        dataset=f"{dataset} v{output['dataset_version']}" if dataset else None,
        dataset_address=addresses.dataset(str(dataset)) if dataset else None,
    )
