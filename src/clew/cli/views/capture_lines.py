"""What became of the captures and postlude jobs of a run: in lines below it, and in tables on its page."""

from collections.abc import Iterator
from datetime import timedelta

from rich.console import RenderableType

from clew.app.running.reading import RunView
from clew.cli.moments import duration, size
from clew.cli.views.page import headed, plain
from clew.debug.degrading import Degradation, Reason
from clew.debug.records import CaptureRecord, CaptureStatus, Outcome

STATUS_COLOURS = {
    CaptureStatus.READY: "green",
    CaptureStatus.FAILED: "bold red",
    CaptureStatus.DROPPED: "yellow",
    CaptureStatus.EXPIRED: "yellow",
    CaptureStatus.RUNNING: "cyan",
}

_NOT_MEANT = {Reason.RUN_NOT_COMPLETED.value, Reason.WHEN_NOT_TRUE.value}
"""Why a job has nothing to do with a run."""


def capture_lines(view: RunView) -> list[str]:
    """One line for each capture that was asked for, and for each job that was for this run, once it is over."""
    if not view.snapshot.status.is_terminal:
        return []
    captures = [record for record in view.captures if record.request is not None]
    jobs = [record for record in view.captures if record.kind == "job" and record.outcome.drop_reason not in _NOT_MEANT]
    return [
        *(f"capture {record.capture_id}  {what(record)}" for record in captures),
        *(f"job {_name_in(view, record)}: {what(record)}" for record in jobs),
    ]


def captures_of_run(view: RunView) -> Iterator[RenderableType]:
    """Tables of the captures and jobs of a run."""
    captures = [record for record in view.captures if record.kind == "capture"]
    if captures:
        yield plain("")
        yield headed(
            ["capture", "breakpoint", "status", "kept"],
            [[plain(each.capture_id), plain(each.breakpoint), status(each), plain(kept(each))] for each in captures],
        )
    jobs = [record for record in view.captures if record.kind == "job"]
    if jobs:
        yield plain("")
        yield headed(["job", "at", "status", "bytes", "waited", "took", ""], [_job_row(view, each) for each in jobs])


def status(record: CaptureRecord) -> RenderableType:
    """Where it stands, in its colour."""
    return plain(record.status.value, STATUS_COLOURS.get(record.status, ""))


def what(record: CaptureRecord) -> str:
    """Where a capture or job stands, and what there is of it, in a few words."""
    told = kept(record)
    label = record.breakpoint if record.kind == "capture" else ""
    return "  ".join(part for part in (label, record.status.value, told) if part)


def kept(record: CaptureRecord) -> str:
    """What was kept or sent, or why nothing was."""
    outcome = record.outcome
    if outcome.error is not None:
        return f"{outcome.error.code}: {plain(outcome.error.message)}"
    if outcome.drop_reason is not None:
        return outcome.drop_reason
    if outcome.manifest is not None:
        manifest = outcome.manifest
        rows = f"{manifest.mode}, {manifest.rows:,} rows"
        told = rows if not manifest.keeps_rows else f"{rows}, {size(manifest.size)}"
        return f"{told}{_stepped_down(manifest.degradations)}"
    if outcome.job is not None:
        sent = [f"{each.rows:,} rows, {size(each.size)} to {each.sink}" for each in outcome.job.emissions]
        return "; ".join(sent)
    return record.request.mode.value if record.request is not None else ""


def _stepped_down(steps: tuple[Degradation, ...]) -> str:
    if not steps:
        return ""
    reasons = ", ".join(f"{step.reason} {step.found:,} > {step.limit:,}" for step in steps)
    return f" (instead of {steps[0].mode}: {reasons})"


def job_name(record: CaptureRecord) -> str:
    """What a job is called."""
    report = record.outcome.job
    return plain(report.name).plain if report is not None and report.name else record.slot


def _name_in(view: RunView, record: CaptureRecord) -> str:
    """What the plan calls a job: one that was never begun has no report that would tell."""
    jobs = view.plan.extensions.postlude_jobs if view.plan is not None else ()
    names = {job.id: job.name for job in jobs if job.name}
    return plain(names.get(record.slot) or job_name(record)).plain


def _job_row(view: RunView, record: CaptureRecord) -> list[RenderableType]:
    outcome: Outcome = record.outcome
    report = outcome.job
    waited = duration(timedelta(milliseconds=report.wait_ms)) if report is not None else ""
    took = duration(timedelta(milliseconds=report.run_ms)) if report is not None else ""
    return [
        plain(_name_in(view, record)),
        plain(record.breakpoint),
        status(record),
        plain(size(report.size) if report is not None else ""),
        plain(waited),
        plain(took),
        plain(kept(record)),
    ]
