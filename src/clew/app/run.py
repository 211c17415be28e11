"""A run as Python sees it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.app.captures.places import Places
from clew.app.running.reading import LOAD_STEP, RunView
from clew.diagnostics import Diagnostic, UserError
from clew.trace.html_tables import Html, html_table

if TYPE_CHECKING:
    from clew.app.captures.reading import Capture
    from clew.runs.snapshot import StepSnapshot


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
        from clew.app.captures.reading import Capture  # noqa: PLC0415 - reads Parquet, which most runs are not asked for

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
