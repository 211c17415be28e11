"""A run as Python sees it.

Questions to a run from Python: what happened to its rows, and why. Spark is not needed.
"""

# ruff: noqa: PLC0415 - what reads traces is imported when somebody asks

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from clew.api.run_view import RunReader, RunView
from clew.captures.manifests import Places
from clew.diagnostics import Diagnostic, UserError
from clew.runs.environment import RunEnvironment
from clew.storage.committed import LOAD_STEP
from clew.trace.results import Html, html_table

if TYPE_CHECKING:
    from clew.api.state import State
    from clew.captures.reading import Capture
    from clew.events.snapshot import StepSnapshot
    from clew.explain.tree import Explanation
    from clew.explain.why_not import WhyNot
    from clew.trace.reader import RunTrace
    from clew.trace.records import RowState, StepSummary
    from clew.trace.results import FoundRows, RowHistory, StepRecords


def trace_of(view: RunView, environment: RunEnvironment) -> "RunTrace":
    """The trace of a run, to be asked anything."""
    from clew.trace.opening import open_trace

    return open_trace(view, environment)


def explained(
    view: RunView, environment: RunEnvironment, row: str, column: str, at: int | None, top: int | None
) -> "Explanation":
    """Why a value is what it is, through every project the data passed."""
    from clew.explain.explaining import explain
    from clew.explain.other_runs import upstream_runs

    with _state(environment) as state:
        upstream = upstream_runs(state, environment)
        return explain(trace_of(view, environment), row, column, at, upstream=upstream, top=top)


def why_not_of(view: RunView, environment: RunEnvironment, where: str, output: int | None) -> "WhyNot":
    """Why rows are not in an output."""
    from clew.api.workspace import open_workspace
    from clew.explain.elsewhere import why_not_in

    with _state(environment) as state:
        return why_not_in(
            view,
            trace_of(view, environment),
            where,
            output,
            environment=environment,
            reader=RunReader(state, environment),
            workspace=open_workspace(environment.root, environment.name).loaded.workspace,
        )


@contextmanager
def _state(environment: RunEnvironment) -> "Iterator[State]":
    from clew.api.state import open_state

    with open_state(environment) as state:
        yield state


@dataclass(frozen=True)
class Run:
    """A run as it stood when it was asked for; `Workspace.get_run` gives it as it stands now."""

    view: RunView
    places: Places

    @property
    def id(self) -> str:
        """The id of the run."""
        return self.view.record.run_id

    @property
    def status(self) -> str:
        """COMPLETED, FAILED, CANCELLED, PAUSED, RUNNING, APPROVED or PENDING."""
        return self.view.snapshot.status.value

    @property
    def project(self) -> str:
        """The id of its project."""
        return self.view.record.request.project_id

    @property
    def period(self) -> str:
        """The period that it is for."""
        return self.view.record.request.period

    @property
    def steps(self) -> "tuple[StepSnapshot, ...]":
        """The operations with where they stand and their counts of rows."""
        return tuple(step for step in self.view.snapshot.steps if step.step_id != LOAD_STEP)

    @property
    def outputs(self) -> list[dict[str, object]]:
        """What was published: seq, path or table, rows, and the dataset version where it became one."""
        return self.view.outputs()

    @property
    def captures(self) -> "list[Capture]":
        """The captures that were taken of it, in the order of the plan."""
        from clew.captures.reading import Capture

        return [Capture(record, self.places) for record in self.view.captures if record.kind == "capture"]

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
        asked = trace_of(self.view, self.places.environment)
        try:
            if row is not None:
                return asked.history(row) if at is None else asked.state(row, at)
            if step is not None:
                return asked.step_rows(step, limit, after)
            return asked.search(where, at, limit, after) if where is not None or at is not None else asked.counts()
        finally:
            asked.close()

    def explain(self, row: str, column: str, *, at: int | None = None, top: int | None = 5) -> "Explanation":
        """Why a value is what it is, down to its sources; `top` of the rows behind a summary, all where it is None."""
        return explained(self.view, self.places.environment, row, column, at, top)

    def why_not(self, where: str, *, output: int | None = None) -> "WhyNot":
        """Why the rows that match a condition are not in an output, the last one where none is named."""
        return why_not_of(self.view, self.places.environment, where, output)

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
