"""A run: where it stands, what it did to its rows and why, and what it can be told. Spark starts only to drive it."""

# ruff: noqa: PLC0415 - what explains, drives and removes runs is imported by whoever asks for it

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, overload

from clew.api.opened_environment import EnvironmentAccess
from clew.api.run_view import RunInput, RunView
from clew.diagnostics import Diagnostic, UserError
from clew.events.values import LOAD_STEP
from clew.runs.request import RunRecord
from clew.trace.results import Html, html_table

if TYPE_CHECKING:
    from clew.api.capture import Capture
    from clew.api.event_pages import EventPage
    from clew.api.operations import Removal
    from clew.api.questions import AbsentRows, ExplainedValue
    from clew.api.signalling import PossibleSignal, SignalOutcome
    from clew.api.starting import Drive
    from clew.events.chain import ChainReport
    from clew.events.envelope import StoredEvent
    from clew.events.reducer import Gap
    from clew.events.snapshot import StepSnapshot
    from clew.events.values import ArtifactRef
    from clew.plan import Plan
    from clew.runs.projector import Projected
    from clew.runs.signals import SignalType
    from clew.storage.parts import Part
    from clew.trace.reader import RunTrace
    from clew.trace.records import RowState, StepSummary
    from clew.trace.results import FoundRows, RowHistory, StepRecords


class Run:
    """A run as it stood when it was asked for; `Workspace.get_run` gives it as it stands now."""

    def __init__(self, record: RunRecord, access: EnvironmentAccess, view: RunView | None = None) -> None:
        self.record = record
        """What was asked for, and how far the run had come."""
        self._access = access
        self._view = view

    @property
    def view(self) -> RunView:
        """Everything that is known about the run, read when it is first needed."""
        if self._view is None:
            self._view = self.refreshed().view
        return self._view

    def refreshed(self) -> "Run":
        """The run as it stands now."""
        with self._access.opened() as at:
            view = at.runs.view(self.id)
        return Run(view.record, self._access, view)

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.record.run_id

    @property
    def status(self) -> str:
        """COMPLETED, FAILED, CANCELLED, PAUSED, RUNNING, APPROVED or PENDING."""
        return self.view.snapshot.status.value

    @property
    def project(self) -> str:
        """The id of its project."""
        return self.record.request.project_id

    @property
    def period(self) -> str:
        """The period that it is for."""
        return self.record.request.period

    @property
    def steps(self) -> "tuple[StepSnapshot, ...]":
        """The operations with where they stand and their counts of rows."""
        return tuple(step for step in self.view.snapshot.steps if step.step_id != LOAD_STEP)

    @property
    def outputs(self) -> list[dict[str, object]]:
        """What was published: seq, path or table, rows, and the dataset version where it became one."""
        return self.view.outputs()

    @property
    def plan(self) -> "Plan | None":
        """The plan that it follows; None where that cannot be read any more."""
        return self.view.plan

    @property
    def captures(self) -> "list[Capture]":
        """The captures that were taken of it, in the order of the plan."""
        from clew.api.capture import Capture
        from clew.captures.manifests import Places

        places = Places(self._access.environment)
        records = [record for record in self.view.captures if record.kind == "capture"]
        return [Capture(record, places, self._access) for record in records]

    @property
    def postlude_jobs(self) -> list[dict[str, object]]:
        """The jobs that its plan attaches to breakpoints, with what became of them."""
        return self.view.postlude_jobs()

    @property
    def error(self) -> Diagnostic | None:
        """Why it failed, at the place of the operation that did."""
        return self.view.failure

    def raise_if_failed(self) -> "Run":
        """This run, or UserError with the reason where it has failed."""
        if self.error is not None:
            raise UserError(self.error)
        return self

    def source_of(self, file: str) -> str | None:
        """A file as it was when the version that runs was activated; as it stands now where versions do not keep it."""
        with self._access.opened() as at:
            files, request = at.source.current(), self.record.request
            project = next((each for each in files.loaded.workspace.projects if each.id == request.project_id), None)
            if project is not None and project.file == file:
                for version in at.state.projects.project_versions(project.id):
                    if str(version.version) == request.project_version:
                        return version.definition
            return files.source_of(file)

    def parts(self) -> "tuple[Part, ...]":
        """What its steps have written and committed."""
        with self._access.opened() as at:
            return at.runs.parts(self.view.snapshot)

    def inputs(self) -> list[RunInput]:
        """The datasets that it has read, as far as its files can be read."""
        from clew.storage.committed import readable_parts, sources_of

        parts, _ = readable_parts(self._access.environment.storage_root, self.view.snapshot)
        read = [part for part in parts if part.kind == "input"]
        return [
            RunInput(part.name, sum(file.rows for file in part.files), sources_of(part), part.details or {})
            for part in read
        ]

    def trace_size(self) -> tuple[int, list[Diagnostic]]:
        """How many bytes its trace takes, and what is wrong with those of its files that cannot be read."""
        from clew.storage.committed import readable_parts

        parts, problems = readable_parts(self._access.environment.storage_root, self.view.snapshot)
        return sum(file.size for part in parts if part.kind != "input" for file in part.files), problems

    def input_sources(self, artifacts: "tuple[ArtifactRef, ...]") -> str:
        """Where its input was read from, by what the loading step says it has written."""
        from clew.storage.committed import input_part, sources_of

        root = self._access.environment.storage_root
        part = input_part(root, artifacts, self.plan.input.key) if self.plan is not None else None
        return sources_of(part) if part is not None else ""

    # Its history

    def events(self, after: int = 0, limit: int | None = None) -> "tuple[StoredEvent, ...]":
        """Its events behind `after`, as they are stored."""
        with self._access.opened() as at:
            return at.runs.events(self.id, after, limit)

    def event_page(self, *, after: int = 0, limit: int = 1000) -> "EventPage":
        """Its events behind `after`, up to the first that is missing."""
        from clew.api.event_pages import event_page

        with self._access.opened() as at:
            return event_page(at.runs, self.id, after=after, limit=limit)

    def events_so_far(self, *, on_gap: "Callable[[Gap], None]") -> "Iterator[StoredEvent]":
        """All its events up to the first that is missing, of which `on_gap` is told."""
        from clew.api.event_pages import events_so_far

        with self._access.opened() as at:
            yield from events_so_far(at.state, self.id, on_gap=on_gap)

    def follow_events(self, *, on_gap: "Callable[[Gap], None]") -> "Iterator[StoredEvent]":
        """All its events so far, then each new one until it has ended. Those behind a missing one wait for it."""
        from clew.api.event_pages import follow_events

        with self._access.opened() as at:
            yield from follow_events(at.state, self.id, on_gap=on_gap)

    def projected(self) -> "Projected":
        """Where it stands by its events so far, and whether one of them is missing."""
        with self._access.opened() as at:
            return at.runs.projected(self.id)

    def verify(self) -> "ChainReport":
        """Whether every event is still what was stored."""
        with self._access.opened() as at:
            return at.runs.verify(self.id)

    # What it can be told

    def signal(
        self, signal: "SignalType", *, step: str | None = None, reason: str | None = None, signal_id: str | None = None
    ) -> "SignalOutcome":
        """Send it a signal. The decision is recorded, and takes effect at once where the run is not being driven.

        `step` is the seq of an operation; 0 is the step that loads. The same `signal_id` again is the same signal.
        """
        from clew.api.signalling import send_signal

        with self._access.opened() as at:
            actor = at.principal.actor(at.environment.settings.tenant)
            return send_signal(
                at.state,
                at.environment,
                self.id,
                signal,
                step=step,
                reason=reason,
                signal_id=signal_id,
                actor=actor,
            )

    def possible_signals(self) -> "tuple[PossibleSignal, ...]":
        """The signals that make sense in its present state and that the role of the principal may send."""
        from clew.api.signalling import possible_signals

        return possible_signals(self.record, self.view.snapshot, self._access.principal.role)

    def drive(
        self,
        watch: "Callable[[StoredEvent], None]" = lambda _event: None,
        on_interrupt: Callable[[], None] = lambda: None,
    ) -> "Drive":
        """Drive it to its end in this process and show each of its events to `watch`.

        The first KeyboardInterrupt cancels the run in order; a second one is raised and leaves the run as it is.
        """
        from clew.api.starting import drive_in_foreground, starter_of

        with self._access.opened() as at:
            return drive_in_foreground(starter_of(at), self.id, watch, on_interrupt)

    def take_captures(self) -> None:
        """Once it has ended: write its captures and do its postlude jobs, or in prod leave them to a worker."""
        from clew.api.starting import starter_of
        from clew.captures.worker import CaptureWorker

        with self._access.opened() as at:
            CaptureWorker(at.environment, at.state, starter_of(at).session).after_run(self.id)

    def remove(self, *, force: bool = False, reason: str = "") -> "Removal":
        """Delete it, once it has ended: its history, its trace and what it read. Outputs and captures stay.

        Refused where a dataset has rows of it or captures wait for them, unless `force` is given.
        """
        from clew.api.operations import remove_one_run

        with self._access.opened() as at:
            return remove_one_run(at, self.id, force=force, reason=reason)

    # Its rows

    def open_trace(self) -> "RunTrace":
        """Its trace, to be asked anything. UserError RunNotFinished while the run goes on."""
        with self._access.opened() as at:
            return at.trace_of(self.record)

    @overload
    def trace(self) -> "tuple[StepSummary, ...]": ...

    @overload
    def trace(self, row: str) -> "RowHistory": ...

    @overload
    def trace(self, row: str, *, at: int) -> "RowState": ...

    @overload
    def trace(
        self, *, where: str, at: int | None = None, limit: int = ..., after: str | None = None
    ) -> "FoundRows": ...

    @overload
    def trace(self, *, step: int, limit: int = ..., after: str | None = ...) -> "StepRecords": ...

    def trace(
        self,
        row: str | None = None,
        *,
        where: str | None = None,
        step: int | None = None,
        at: int | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> "tuple[StepSummary, ...] | RowHistory | RowState | FoundRows | StepRecords":
        """What the steps did to the rows, once the run has ended.

        With a row its history, or with `at` its state after a step; with `where` the rows that a condition finds; with
        `step` everything that one step did; without any of them the counts of each step.
        """
        with self._access.opened() as here:
            asked = here.trace_of(self.record)
            if row is not None:
                return asked.history(row) if at is None else asked.state(row, at)
            if step is not None:
                return asked.step_rows(step, limit, after)
            return asked.search(where, at, limit, after) if where is not None or at is not None else asked.counts()

    def explain(self, row: str, column: str, *, at: int | None = None, top: int | None = 5) -> "ExplainedValue":
        """Why a value is what it is, down to its sources; `top` of the rows behind a summary, all where it is None."""
        from clew.api.questions import explained

        with self._access.opened() as here:
            return explained(here, self.id, row, column, step=at, top=top)

    def row_where(self, where: str, *, at: int | None = None) -> str:
        """The id of the one row that a condition names. UserError AmbiguousRow where it names several, or none."""
        from clew.api.questions import one_row

        with self._access.opened() as here:
            return one_row(here, self.id, where, at)

    def why_not(self, where: str, *, output: int | None = None) -> "AbsentRows":
        """Why the rows that match a condition are not in an output, the last one where none is named."""
        from clew.api.questions import absent_rows

        with self._access.opened() as here:
            return absent_rows(here, self.view, where, output)

    def to_json(self) -> dict[str, object]:
        """The form of `clew run --json`."""
        return self.view.to_json()

    def __repr__(self) -> str:
        return f"<Run {self.id[:8]} of {self.project} for {self.period}: {self.status}>"

    def _repr_html_(self) -> str:
        rows = [[step.seq, step.name, step.status.value, *_counts(step)] for step in self.steps]
        caption = f"run {self.id[:8]} of {self.project} for {self.period}: {self.status}"
        table = html_table(caption, ["step", "name", "status", "updated", "created", "deleted", "written"], rows)
        if self.error is None:
            return table
        failure = html_table("", ["error", "message"], [[self.error.code, self.error.message]])
        return Html(table + failure)


def _counts(step: "StepSnapshot") -> list[str]:
    names = ("rows_updated", "rows_created", "rows_deleted", "rows_written")
    return [f"{step.counts[name]:,}" if step.counts.get(name) else "" for name in names]
