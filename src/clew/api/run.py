"""A run: its state, what it did to its rows and why, and its signals. Only driving it starts Spark."""

# ruff: noqa: PLC0415 - what explains, drives and deletes runs is imported only when needed

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, overload

from clew.api.opened_environment import EnvironmentAccess, OpenedEnvironment
from clew.api.run_view import ResolverSnapshot, RunInput, RunView, resolver_snapshots
from clew.auth.access_log import Subject
from clew.budgets import QuestionLimits, asking, budgeted
from clew.diagnostics import Diagnostic, UserError, did_you_mean
from clew.diagnostics.codes.runs import UNKNOWN_CHECK
from clew.events.values import LOAD_STEP
from clew.runs.request import RunRecord
from clew.trace.results import Html, html_table

if TYPE_CHECKING:
    from clew.api.capture import Capture
    from clew.api.event_pages import EventPage
    from clew.api.operations import Removal
    from clew.api.questions import AbsentRows, ExplainedValue
    from clew.api.signalling import PossibleSignal, SignalOutcome
    from clew.api.source_states import SourceState
    from clew.api.starting import Drive
    from clew.api.table_downloads import TableFile
    from clew.api.verification import Verification
    from clew.api.verification_records import VerificationRecord
    from clew.change.bridge import BridgeMode, ChangeBridge
    from clew.change.comparison import RunComparison
    from clew.change.impact import PlanImpact
    from clew.change.restating import Restatements
    from clew.change.sensitivity import Sensitivity
    from clew.change.what_if import WhatIf
    from clew.events.chain import ChainReport
    from clew.events.envelope import StoredEvent
    from clew.events.reducer import Gap
    from clew.events.snapshot import StepSnapshot
    from clew.events.values import ArtifactRef
    from clew.evidence.archive import EvidencePack
    from clew.explain.applied_adjustments import Adjustment
    from clew.plan import Plan
    from clew.privacy.seen_checks import RunChecks
    from clew.privacy.seen_trace import RowsRead, SeenTrace
    from clew.runs.leases import Wait
    from clew.runs.projector import Projected
    from clew.runs.run_log import LogLine
    from clew.runs.signals import SignalType
    from clew.scenarios.cutting import ScenarioCut
    from clew.storage.parts import Part
    from clew.trace.quarantined import QuarantinedRow
    from clew.trace.reconciliation import Reconciliation
    from clew.trace.records import RowState, StepSummary
    from clew.trace.results import FoundRows, RowHistory, StepRecords
    from clew.trace.trace_records import TraceRecords


class Run:
    """A run, in its state when it was fetched; `Workspace.get_run` returns the current state."""

    def __init__(self, record: RunRecord, access: EnvironmentAccess, view: RunView | None = None) -> None:
        self.record = record
        """The request and the progress of the run."""
        self._access = access
        self._view = view

    @property
    def view(self) -> RunView:
        """Everything known about the run, read on first use."""
        if self._view is None:
            self._view = self.refreshed().view
        return self._view

    def refreshed(self) -> "Run":
        """The run in its current state."""
        with self._access.opened() as at:
            view = at.runs.view(self.id)
        return Run(view.record, self._access, view)

    def sealed(self) -> "Run":
        """The run, after a comparison with its seals. UserError ForgedHistory where it is not what was recorded."""
        from clew.api.sealed_reading import require_sealed

        with self._access.opened() as at, at.alerts.raised_for(self.id):
            require_sealed(at.state, at.environment, self.id)
        return self

    @property
    def question_limits(self) -> QuestionLimits:
        """What a question about its rows may cost."""
        return self._access.environment.question_limits()

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
        """The steps with their status and row counts."""
        return tuple(step for step in self.view.snapshot.steps if step.step_id != LOAD_STEP)

    @property
    def outputs(self) -> list[dict[str, object]]:
        """What was published: seq, path or table, rows, and the dataset version if registered."""
        return self.view.outputs()

    @property
    def plan(self) -> "Plan | None":
        """Its plan; None if it can no longer be read."""
        return self.view.plan

    @property
    def captures(self) -> "list[Capture]":
        """Its captures, in the order of the plan."""
        from clew.api.capture import Capture
        from clew.captures.manifests import Places

        places = Places(self._access.environment)
        records = [record for record in self.view.captures if record.kind == "capture"]
        return [Capture(record, places, self._access) for record in records]

    @property
    def postlude_jobs(self) -> list[dict[str, object]]:
        """The postlude jobs of its plan, with their outcome."""
        return self.view.postlude_jobs()

    @property
    def error(self) -> Diagnostic | None:
        """Why it failed, with the place of the failed operation."""
        return self.view.failure

    def raise_if_failed(self) -> "Run":
        """This run. Raises UserError with the reason if it failed."""
        if self.error is not None:
            raise UserError(self.error)
        return self

    def source_of(self, file: str) -> str | None:
        """A file as it was when its version was activated; the current file if versions do not keep it."""
        with self._access.opened() as at:
            files, request = at.source.current(), self.record.request
            project = next((each for each in files.loaded.workspace.projects if each.id == request.project_id), None)
            if project is not None and project.file == file:
                for version in at.state.projects.project_versions(project.id):
                    if str(version.version) == request.project_version:
                        return version.definition
            return files.source_of(file)

    def parts(self) -> "tuple[Part, ...]":
        """The parts that its steps wrote and committed."""
        with self._access.opened() as at:
            return at.runs.parts(self.view.snapshot)

    def source_state(self, file: str) -> "SourceState | None":
        """What has become of a file that it has read: same, changed or gone; None where that is not known."""
        from clew.api.source_states import state_of_source
        from clew.storage.committed import readable_parts

        with self._access.opened() as at:
            if not at.is_own_tenant:
                return None
            files = at.source.current()
            parts, _ = readable_parts(at.environment.storage_root, self.view.snapshot)
            return state_of_source(parts, file, files.loaded.workspace, files.root)

    def inputs(self) -> list[RunInput]:
        """The datasets that it read, as far as its files are readable."""
        from clew.storage.committed import readable_parts, sources_of

        parts, _ = readable_parts(self._access.environment.storage_root, self.view.snapshot)
        read = [part for part in parts if part.kind == "input"]
        return [RunInput(part.name, part.counted, sources_of(part), part.details or {}) for part in read]

    def resolver_snapshots(self) -> "list[ResolverSnapshot]":
        """What the names of its datasets meant when it read them: versions, and who said where the data is."""
        from clew.storage.committed import readable_parts

        parts, _ = readable_parts(self._access.environment.storage_root, self.view.snapshot)
        return resolver_snapshots(self.plan, parts)

    def trace_size(self) -> tuple[int, list[Diagnostic]]:
        """The size of its trace in bytes, and the errors of unreadable files."""
        from clew.storage.committed import readable_parts

        parts, problems = readable_parts(self._access.environment.storage_root, self.view.snapshot)
        return sum(file.size for part in parts if part.kind != "input" for file in part.files), problems

    def input_sources(self, artifacts: "tuple[ArtifactRef, ...]") -> str:
        """Where its input was read from, according to the artifacts of the loading step."""
        from clew.storage.committed import input_part, sources_of

        root = self._access.environment.storage_root
        part = input_part(root, artifacts, self.plan.input.key) if self.plan is not None else None
        return sources_of(part) if part is not None else ""

    def driver_log(self) -> "Sequence[LogLine]":
        """What its drivers did and met, with tracebacks: the newest 2,000 lines. For those who may send signals."""
        from clew.runs.run_log import lines_of

        with self._access.opened() as at:
            at.policy.require_logs()
            at.runs.find(self.id)
            lines = lines_of(at.environment.storage_root, self.id)
            return lines if at.policy.sees_clearly(None) else [line.without_values() for line in lines]

    # Events

    def events(self, after: int = 0, limit: int | None = None) -> "tuple[StoredEvent, ...]":
        """Its events after `after`, as stored."""
        with self._access.opened() as at:
            return at.runs.events(self.id, after, limit)

    def event_page(self, *, after: int = 0, limit: int = 1000) -> "EventPage":
        """Its events after `after`, up to the first gap."""
        from clew.api.event_pages import event_page

        with self._access.opened() as at:
            return event_page(at.runs, self.id, after=after, limit=limit)

    def events_so_far(self, *, on_gap: "Callable[[Gap], None]") -> "Iterator[StoredEvent]":
        """All its events up to the first gap, which is passed to `on_gap`."""
        from clew.api.event_pages import events_so_far

        with self._access.opened() as at:
            yield from events_so_far(at.state, at.policy, self.id, on_gap=on_gap)

    def follow_events(self, *, on_gap: "Callable[[Gap], None]") -> "Iterator[StoredEvent]":
        """All its events so far, then each new one until it has ended. Events after a gap are held back."""
        from clew.api.event_pages import follow_events

        with self._access.opened() as at:
            yield from follow_events(at.state, at.policy, self.id, on_gap=on_gap)

    def projected(self) -> "Projected":
        """Its state according to its events so far, and whether one is missing."""
        with self._access.opened() as at:
            return at.runs.projected(self.id)

    def verify(self) -> "ChainReport":
        """Check that no stored event has been changed."""
        from clew.api.verification import chain_of

        with self._access.opened() as at:
            return chain_of(at.state, at.environment, at.runs.find(self.id))

    def verification(self, *, deep: bool = False) -> "Verification":
        """Check its events, its state, its plan and every byte of its files against what was written.

        With `deep`, also evaluate every expression again, for every row, without Spark. The result is recorded.
        """
        from clew.api.verification import Verifier
        from clew.api.verification_records import record_verification

        with self._access.opened() as at:
            found = Verifier(at.state, at.environment, is_deep=deep).run(at.runs.find(self.id))
            record_verification(at, self.id, found)
            return found

    def last_verification(self) -> "VerificationRecord | None":
        """When and by whom it was last verified, alone or with everything else, and with which result."""
        from clew.api.verification_records import last_verification

        with self._access.opened() as at:
            return last_verification(at, self.id)

    def evidence(
        self,
        row: str | None = None,
        column: str | None = None,
        *,
        where: str | None = None,
        at: int | None = None,
        output: int | None = None,
    ) -> "EvidencePack":
        """A signed pack about it: plan, events, versions, and why values are what they are, to verify without Clew.

        Explains a column of a row, or of the one row that matches `where`; with `output`, every value of an output.
        """
        from clew.api.evidence_packs import EvidenceWish, evidence_of

        wish = EvidenceWish(row=row, where=where, column=column, at=at, output=output)
        with asking(self.question_limits), self._access.opened() as here:
            made = evidence_of(here, self.id, wish)
            told = wish.described(None if where is None else here.seen(self.record).recorded(where))
            self._asked(f"evidence pack: {told}", made.columns, made.rows)
            return made.pack

    # Signals

    def signal(
        self,
        signal: "SignalType",
        *,
        step: str | None = None,
        reason: str | None = None,
        signal_id: str | None = None,
        with_current_definitions: bool = False,
    ) -> "SignalOutcome":
        """Send it a signal. The decision is recorded, and takes effect immediately if no worker is driving the run.

        `step` is the seq of an operation; step 0 loads the input. Repeating a `signal_id` has no further effect.
        `with_current_definitions` lets RETRY_RUN use the project and its resolvers as they are now, in place of those
        of this run; for an active project, they become its next version.
        """
        from clew.api.signalling import send_signal

        with self._access.opened() as at:
            actor = at.actor
            renewal = None
            if with_current_definitions:
                from clew.api.renewing import renewal_of

                renewal = renewal_of(at, self.id, signal, signal_id)
            return send_signal(
                at.state,
                at.environment,
                self.id,
                signal,
                step=step,
                reason=reason,
                signal_id=signal_id,
                actor=actor,
                renewal=renewal,
            )

    def possible_signals(self) -> "tuple[PossibleSignal, ...]":
        """The signals that are valid in its current state and that the role of the principal may send."""
        from clew.api.signalling import authorizer_of, possible_signals

        with self._access.opened() as at:
            authorizer = authorizer_of(at.state, at.environment)
            return possible_signals(self.record, self.view.snapshot, at.principal.role, at.actor, authorizer)

    def drive(
        self,
        watch: "Callable[[StoredEvent], None]" = lambda _event: None,
        on_interrupt: Callable[[], None] = lambda: None,
        on_wait: "Callable[[Wait], None]" = lambda _wait: None,
        *,
        gives_way: bool = False,
        ends_soon: bool = False,
    ) -> "Drive":
        """Drive it to its end in this process and pass each event to `watch`.

        It waits for a free place of the environment and for its start time; `on_wait` is told what it waits for. If
        another run of its project and period has started first, it is left to a worker; with `gives_way`, it is
        cancelled, and UserError PeriodBusy is raised. Where this process `ends_soon` after the run, and there is little
        to read, Spark starts without preparing for long work.

        The first KeyboardInterrupt cancels the run cleanly; a second one is raised and leaves the run as it is.
        """
        from clew.api.starting import drive_in_foreground, starter_of
        from clew.privacy.messages import as_seen

        with self._access.opened() as at:
            policy = at.policy
            return drive_in_foreground(
                starter_of(at, ends_soon=ends_soon),
                self.id,
                lambda event: watch(as_seen(policy, event)),
                on_interrupt,
                on_wait,
                gives_way=gives_way,
            )

    def take_captures(self, *, ends_soon: bool = False) -> None:
        """After it has ended, write its captures and do its postlude jobs; in prod, leave them to a worker.

        `ends_soon` is as for `drive`.
        """
        from clew.api.starting import starter_of
        from clew.captures.worker import CaptureWorker

        with self._access.opened() as at:
            CaptureWorker(at.environment, at.state, starter_of(at, ends_soon=ends_soon).session).after_run(self.id)

    def submit_rerun(
        self,
        *,
        changed_inputs: bool = False,
        parameters: Mapping[str, object] | None = None,
        request_id: str | None = None,
    ) -> "Run":
        """Request a run of its project and period that takes over what is still the same, and leave it to a worker.

        It runs the version of the project that is active now, on the inputs that this run read; with `changed_inputs`,
        sources are looked at again, and those that differ are read anew. `parameters` replace values of this run.
        """
        from clew.api.reruns import request_rerun

        with self._access.opened() as at:
            record = request_rerun(
                at, self.id, changed_inputs=changed_inputs, parameters=parameters or {}, request_id=request_id
            )
        return Run(record, self._access)

    def rerun(
        self,
        *,
        changed_inputs: bool = False,
        parameters: Mapping[str, object] | None = None,
        request_id: str | None = None,
    ) -> "Run":
        """Repeat it, take over what is still the same, and wait for the new run. A failed one is returned too.

        The `reuse` of each step of the new run says what was taken over, and why the rest was computed.
        """
        run = self.submit_rerun(changed_inputs=changed_inputs, parameters=parameters, request_id=request_id)
        if not run.record.status.is_terminal:
            run.drive(gives_way=request_id is None)
        return run.refreshed()

    def remove(self, *, force: bool = False, reason: str = "") -> "Removal":
        """Delete it after it has ended: its events, its trace and its stored inputs. Outputs and captures are kept.

        Refused if a dataset has its rows or captures wait for them, unless `force` is set.
        """
        from clew.api.operations import remove_one_run

        with self._access.opened() as at:
            return remove_one_run(at, self.id, force=force, reason=reason)

    # Rows

    def open_trace(self) -> "SeenTrace":
        """Its trace, as the principal may see it. Raises UserError RunNotFinished until the run has ended."""
        with self._access.opened() as at:
            return self._seen(at)

    def download(
        self,
        format: str = "csv",  # noqa: A002 - what users call it
        *,
        where: str | None = None,
        at: int | None = None,
        step: int | None = None,
        output: int | None = None,
        sort: str | None = None,
        descending: bool = False,
        columns: Sequence[str] = (),
        limit: int = 50_000,
    ) -> "TableFile":
        """Rows as a file in the format "csv", "xlsx" or "parquet", at most 50,000.

        Those that a condition matches after the step `at`; with `step`, those that it created, changed or deleted; with
        `output`, what it has written.
        """
        from clew.api.downloads import RowsWanted, rows_file

        wanted = RowsWanted(where, at, step, output, sort, descending, tuple(columns), limit)
        with asking(self.question_limits), self._access.opened() as here:
            return rows_file(self._seen(here), wanted, format)

    def download_comparison(
        self,
        other: str,
        format: str = "csv",  # noqa: A002 - what users call it
        *,
        output: int | None = None,
        at: int | None = None,
        where: str | None = None,
    ) -> "TableFile":
        """The rows in which another run differs as a file, a line for each column that does, at most 10,000 rows."""
        from clew.api.downloads import comparison_file

        with asking(self.question_limits):
            return comparison_file(self.compare(other, output=output, at=at, where=where, limit=10_000), format)

    def _seen(self, at: OpenedEnvironment) -> "SeenTrace":
        """Its trace, with every answer on record before it is given."""
        from clew.api.reads import record_read

        access, run_id = self._access, self.id
        return replace(
            at.seen(self.record),
            has_read=lambda asked, columns, rows: record_read(access, Subject.TRACE, run_id, asked, columns, rows),
        )

    def _asked(self, asked: str, columns: "Iterable[str]", rows: "Collection[str] | int") -> None:
        from clew.api.reads import record_read

        record_read(self._access, Subject.EXPLANATION, self.id, asked, columns, rows)

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

        With `row`, its history, or with `at` its state after a step. With `where`, the matching rows. With `step`,
        everything that one step did. Without any of these, the counts of each step.
        """
        with asking(self.question_limits), self._access.opened() as here:
            asked = self._seen(here)
            if row is not None:
                return asked.history(row) if at is None else asked.state(row, at)
            if step is not None:
                return asked.step_rows(step, limit, after)
            return asked.search(where, at, limit, after) if where is not None or at is not None else asked.counts()

    @budgeted
    def records(
        self, row: str | None = None, *, step: int | None = None, limit: int = 100, after: str | None = None
    ) -> "TraceRecords":
        """Its trace records: of a row, of a step, or of all steps, `limit` at a time.

        `after` is the `next` of the page before. A loaded row begins with a record of step 0.
        """
        from clew.trace.trace_records import records_of_row, records_of_steps

        traced = self.open_trace()
        return (
            records_of_row(traced, row) if row is not None else records_of_steps(traced, step, limit=limit, after=after)
        )

    @budgeted
    def explain(
        self,
        row: str,
        column: str,
        *,
        at: int | None = None,
        top: int | None = 5,
        every_row: bool = False,
        skip: int = 0,
    ) -> "ExplainedValue":
        """Why a value is what it is, down to its sources. Shows `top` rows of a summary, or all if None.

        With `skip`, the first rows of the summary are left out: for those who read them piece by piece.

        The value of a large summary is computed again with DuckDB, and for some of its rows in Python; with
        `every_row` for all of them.
        """
        from clew.api.questions import explained
        from clew.explain.disclosure import disclosed

        with self._access.opened() as here:
            found = explained(here, self.id, row, column, step=at, top=top, every_row=every_row, skip=skip)
            self._asked(f"row {row}, column {column}", *disclosed(found))
            return found

    @budgeted
    def restatements(self, row: str, column: str, *, at: int | None = None) -> "Restatements":
        """What earlier runs for the same period had in the place of a value, and which run changed it.

        Rows are found by their natural key, summaries by the keys of their groups.
        """
        from clew.api.run_changes import restated

        with self._access.opened() as here:
            found = restated(here, self.record, row, column, at)
            for each in found.stated:
                self._compared(each.run_id, f"how {column} of row {row} of {self.id} was restated", (column,), 1)
            return found

    @budgeted
    def row_where(self, where: str, *, at: int | None = None) -> str:
        """The id of the one row that matches a condition. Raises UserError if several rows match, or none."""
        from clew.api.questions import one_row

        with self._access.opened() as here:
            row = one_row(here, self.id, where, at)
            self._asked(f"the row where {here.seen(self.record).recorded(where)}", ("_row_id",), (row,))
            return row

    @budgeted
    def why_not(self, where: str, *, output: int | None = None) -> "AbsentRows":
        """Why the rows that match a condition are missing from an output (by default the last one)."""
        from clew.api.questions import absent_rows
        from clew.explain.disclosure import disclosed

        with self._access.opened() as here:
            found = absent_rows(here, self.view, where, output)
            self._asked(f"why not: {here.seen(self.record).recorded(where)}", *disclosed(found))
            return found

    @budgeted
    def quarantine(self, dataset: str | None = None) -> "tuple[QuarantinedRow, ...]":
        """The rows that it did not load since they are not as their dataset says, with the reasons."""
        with self._access.opened() as here:
            return self._seen(here).quarantine(dataset)

    @budgeted
    def adjustments(self) -> "tuple[Adjustment, ...]":
        """The manual corrections in force for its period: what they say, who approved them, which rows they changed."""
        from clew.explain.applied_adjustments import adjustments_of, adjustments_read

        with self._access.opened() as here:
            seen = self._seen(here)
            return seen.adjustments(adjustments_read(seen.plan), adjustments_of)

    @budgeted
    def first_read(self, dataset: str) -> "RowsRead":
        """A few rows of a dataset that it read, as the principal may see them."""
        from clew.explain.pinned import dataset_rows

        with self._access.opened() as here:
            return self._seen(here).first_read(
                dataset,
                lambda trace, use, limit: (row.cells for row in dataset_rows(trace, use, None, use.table, limit)),
            )

    @budgeted
    def quarantine_csv(self, dataset: str | None = None) -> str:
        """The rows of a dataset in quarantine, by default of the input, as a file to correct."""
        with self._access.opened() as here:
            seen = self._seen(here)
            return seen.correctable(dataset or seen.plan.input.dataset_id)

    @budgeted
    def reconcile(self) -> "Reconciliation":
        """Whether nothing was lost: for every output, what came in and what went out, in rows and control totals."""
        with self._access.opened() as here:
            return self._seen(here).reconcile(self.view.snapshot)

    def checks(self) -> "RunChecks":
        """What its checks found, in the order in which the run came to them."""
        from clew.privacy.seen_checks import RunChecks, checks_of_run

        plan = self.plan
        return RunChecks(self.id, ()) if plan is None else checks_of_run(self.id, plan, self.view.snapshot)

    @budgeted
    def failing_rows(self, check: str, *, limit: int = 100, after: str | None = None) -> "FoundRows":
        """The rows that fail a check, as they stood where it looked. Found in the trace, without Spark."""
        from clew.explain.failing_rows import failing_rows

        outcomes = self.checks().named(check)
        if not outcomes:
            known = [each.check.name for each in self.checks().outcomes]
            hint = did_you_mean(check, known) or (f"its checks are {', '.join(known)}" if known else None)
            raise UserError(UNKNOWN_CHECK.anywhere(name=check, hint=hint))
        with self._access.opened() as here:
            return self._seen(here).failing(outcomes[0].check, failing_rows, limit, after)

    @budgeted
    def compare(
        self,
        other: "Run | str",
        *,
        output: int | None = None,
        at: int | None = None,
        where: str | None = None,
        key: Sequence[str] = (),
        sort: str | None = None,
        limit: int | None = 100,
        offset: int = 0,
    ) -> "RunComparison":
        """In what another run of its project differs from it, at an output (by default the last) or after a step.

        Rows are matched by natural keys and by the keys of groups, or by the columns in `key`. With `sort`, the rows
        with the largest difference of that column come first. `limit` None gives all rows that differ.
        """
        from clew.api.run_changes import compared
        from clew.change.comparing import CompareQuestion

        question = CompareQuestion(
            output=output, at=at, where=where, key=tuple(key), sort=sort, limit=limit, offset=offset
        )
        with self._access.opened() as here:
            found, asked = compared(here, self.id, other if isinstance(other, str) else other.id, question)
            columns, rows = tuple(each.name for each in found.columns), len(found.rows)
            self._compared(found.run_a, f"compared with {found.run_b}, {asked}", columns, rows)
            self._compared(found.run_b, f"compared with {found.run_a}, {asked}", columns, rows)
            return found

    @budgeted
    def why_changed(
        self,
        other: "Run | str",
        column: str,
        *,
        where: str | None = None,
        output: int | None = None,
        at: int | None = None,
        mode: "BridgeMode" = "shapley",
    ) -> "ChangeBridge":
        """Why the sum of a column in another run of its project is not what it is here.

        The causes add up to the difference exactly. With `mode` "sequential" they are taken one after the other,
        otherwise each is what it adds on average over all orders.
        """
        from clew.api.run_changes import attributed
        from clew.change.attribution import AttributionQuestion

        question = AttributionQuestion(column=column, where=where, output=output, at=at, mode=mode)
        with self._access.opened() as here:
            found, asked = attributed(here, self.id, other if isinstance(other, str) else other.id, question)
            rows = sum(len(cause.rows) for cause in found.causes)
            self._compared(found.run_a, f"{asked} in {found.run_b}", (column,), rows)
            self._compared(found.run_b, f"{asked} since {found.run_a}", (column,), rows)
            return found

    @budgeted
    def what_if(
        self,
        *,
        sets: Sequence[str] = (),
        drops: Sequence[str] = (),
        expressions: Sequence[str] = (),
        parameters: Mapping[str, object] | None = None,
        where: str | None = None,
        output: int | None = None,
        at: int | None = None,
        sort: str | None = None,
        limit: int | None = 100,
        offset: int = 0,
    ) -> "WhatIf":
        """What would be different in it, at an output (by default the last) or after a step. Nothing is stored.

        `sets` are texts like 'rates where currency = "EUR": rate = 1.1', `drops` like 'orders where id = 7', and
        `expressions` like '10.usd = amount * 2', for a column that an update sets. `parameters` are other values for
        parameters of the project. With `where`, only rows count for which it is true, now or then.
        """
        from clew.api.run_changes import supposed
        from clew.change.comparing import CompareQuestion

        question = CompareQuestion(output=output, at=at, where=where, sort=sort, limit=limit, offset=offset)
        with self._access.opened() as here:
            found, asked = supposed(
                here,
                self.id,
                question,
                sets=sets,
                drops=drops,
                expressions=expressions,
                parameters=parameters or {},
            )
            self._asked(asked, tuple(each.name for each in found.columns), len(found.rows))
            return found

    @budgeted
    def sensitivity(
        self, column: str, *, where: str | None = None, output: int | None = None, at: int | None = None
    ) -> "Sensitivity":
        """Which rows of reference data the sum of a column hangs on most, at an output (by default the last) or a step.

        Each number that rows of the sum have looked up is made one percent larger, one at a time. Nothing is stored.
        """
        from clew.api.run_changes import sensed

        with self._access.opened() as here:
            found, asked = sensed(here, self.id, column, output=output, after=at, where=where)
            self._asked(asked, (column,), len(found.effects))
            return found

    @budgeted
    def impact(
        self,
        project: str | None = None,
        *,
        parameters: Mapping[str, object] | None = None,
        fail_if: str | None = None,
        limit: int = 10,
    ) -> "PlanImpact":
        """What its project, as the files of the workspace have it now, would have made of it. Nothing is stored.

        `parameters` are values for parameters, which otherwise are those of the run. `fail_if` is a condition on each
        total, such as 'ABS(delta) > 1000'; `failed` of the answer names those for which it is true. `limit` is how many
        rows of each output are shown.
        """
        from clew.api.run_changes import impacted

        with self._access.opened() as here:
            found, asked = impacted(here, self.id, project, parameters=parameters or {}, fail_if=fail_if, limit=limit)
            answers = [each.difference for each in found.outputs if each.difference is not None]
            columns = tuple(dict.fromkeys(column.name for each in answers for column in each.columns))
            self._asked(asked, columns, sum(len(each.rows) for each in answers))
            return found

    @budgeted
    def cut_scenario(
        self, where: str, *, at: int | None = None, group: bool = False, mask: bool = False
    ) -> "ScenarioCut":
        """The smallest scenario that reproduces the result of the one row that matches `where`, to keep as a test.

        With `group`, a summary row together with the rows behind it. Values of personal and secret columns that the
        principal may not see are replaced by stand-ins; with `mask`, those of all personal and secret columns.
        """
        from clew.api.reads import record_read
        from clew.api.scenario_cuts import scenario_cut_of

        with self._access.opened() as here:
            found, asked = scenario_cut_of(here, self.id, where, step=at, group=group, mask=mask)
            record_read(self._access, Subject.TRACE, self.id, asked, found.columns, sum(found.rows.values()))
            return found

    def recorded_suppositions(
        self,
        *,
        sets: Sequence[str] = (),
        drops: Sequence[str] = (),
        expressions: Sequence[str] = (),
        parameters: Mapping[str, object] | None = None,
    ) -> str:
        """Suppositions for the access log, which others read: without the values of columns that are not public."""
        from clew.change.suppositions import recorded_supposition

        with self._access.opened() as here:
            seen = here.seen(self.record)
            named = [f"parameter {name} = {value}" for name, value in (parameters or {}).items()]
            texts = (*sets, *drops, *expressions, *named)
            return "; ".join(recorded_supposition(seen.plan, seen.eyes, text) for text in texts)

    def _compared(self, run_id: str, asked: str, columns: "tuple[str, ...]", rows: int) -> None:
        from clew.api.reads import record_read

        record_read(self._access, Subject.TRACE, run_id, asked, columns, rows)

    def to_json(self) -> dict[str, object]:
        """The form of `clew run --json`."""
        return {
            **self.view.to_json(),
            "resolver_snapshots": [each.to_json() for each in self.resolver_snapshots()],
            "verification": None if (last := self.last_verification()) is None else last.to_json(),
        }

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
