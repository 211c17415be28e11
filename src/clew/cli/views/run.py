"""The page of a run, and the lines below its steps: how it ended and what to do next."""

import sys
from collections.abc import Iterator
from datetime import timedelta

from clew.api.run import Run
from clew.api.run_view import RunView
from clew.cli.formatting import between, duration, local_time, short, size, zone_name
from clew.cli.output import bad, error_text, good
from clew.cli.session import Session
from clew.cli.views.captures import captures_of_run
from clew.cli.views.page import grid, headed, heading, label, plain
from clew.cli.views.page_parts import PagePart
from clew.cli.views.tables import STATUS_COLOURS, outcome
from clew.events.sentences import reuse_sentences
from clew.events.snapshot import RunStatus, StepSnapshot, StepStatus
from clew.events.values import LOAD_STEP


def end_lines(run: Run, session: Session) -> list[str]:
    """The lines below the steps."""
    view = run.view
    match view.snapshot.status:
        case RunStatus.COMPLETED:
            return _completed(run, session)
        case RunStatus.FAILED:
            return _failed(view, session)
        case RunStatus.CANCELLED:
            name = short(view.record.run_id)
            return [
                f"The run is {bad('CANCELLED')}; {published(view)}.",
                f"next: {session.command(f'signal {name} RETRY_RUN')}",
            ]
        case RunStatus.PAUSED:
            resume = session.command(f"signal {short(view.record.run_id)} RESUME")
            return [f"The run is PAUSED; {published(view)}.", f"next: {resume}"]
        case RunStatus.PENDING | RunStatus.APPROVED | RunStatus.RUNNING:
            return _waiting(view, session)


def _completed(run: Run, session: Session) -> list[str]:
    view = run.view
    took = duration(taken(view))
    trace, problems = run.trace_size()
    if view.plan_problem is not None:
        problems.insert(0, view.plan_problem)
    if problems:
        more = [f"and {len(problems) - 1} more files"] if len(problems) > 1 else []
        return [f"{good('completed')} in {took}", error_text(problems[0], session.source_of, sys.stdout), *more]
    return [
        f"{good('completed')} in {took}; trace {size(trace)}",
        f"next: {session.command(f'trace {short(view.record.run_id)}')}",
    ]


def _failed(view: RunView, session: Session) -> list[str]:
    name, failed = short(view.record.run_id), view.failed_step
    lines = failure_lines(view, session)
    if failed is None:
        lines.append(f"The run {bad('FAILED')} before its first step; nothing was published. Fix the cause, then:")
        return [*lines, f"  {session.command(f'signal {name} RETRY_RUN')}", *_with_changes(view, session)]
    lines.append(f"The run {bad('FAILED')} at {at(failed.step_id)}; {published(view)}. Fix the cause, then:")
    lines.append(f"  {session.command(f'signal {name} RETRY_STEP --step {failed.seq}')}")
    if failed.step_id != LOAD_STEP:
        lines.append("or, if the input itself was wrong, read everything again in a new run:")
        lines.append(f"  {session.command(f'signal {name} RETRY_RUN')}")
    return [*lines, *_with_changes(view, session)]


def _with_changes(view: RunView, session: Session) -> list[str]:
    """A retry keeps the plan of its run, so a corrected project needs a new run, and perhaps a new version."""
    name = short(view.record.run_id)
    return [
        "A retry uses the project and its resolvers as they were. If you have corrected them:",
        f"  {session.command(f'signal {name} RETRY_RUN --with-current-definitions')}",
    ]


def failure_lines(view: RunView, session: Session) -> list[str]:
    """What went wrong, with the place in the project."""
    failure = view.failure
    if failure is None:
        return []
    text = error_text(failure, session.source_of, sys.stdout)
    failed = view.failed_step
    if failed is None:
        return [text]
    return [f'{at(failed.step_id)} "{plain(failed.name)}" failed:', text]


def _waiting(view: RunView, session: Session) -> list[str]:
    name = short(view.record.run_id)
    if view.record.approval_pending:
        return [
            "The run waits for approval; nothing has been read or written.",
            f"next: {session.command(f'signal {name} APPROVE')}",
        ]
    request = view.record.request
    again = f"run {request.project_id} --period {request.period} --request-id {request.request_id}"
    return [
        f"The run is {view.snapshot.status}: it waits for another run of the project and period, or for a worker.",
        f"next: {session.command('worker')}, or the same request again: {session.command(again)}",
    ]


def published(view: RunView) -> str:
    """What the output steps published, and what they did not."""
    done = [step for step in view.snapshot.steps if step.type == "output" and step.status is StepStatus.SUCCESS]
    seqs = {step.seq for step in done}
    planned = view.plan.outputs if view.plan is not None else ()
    missing = [step.seq for step in planned if step.seq not in seqs]
    if not done:
        return "nothing was published"
    told = f"already published: {_steps([step.seq for step in done])}"
    return f"{told}; not published: {_steps(missing)}" if missing else told


def _steps(seqs: list[int]) -> str:
    return f"step{'' if len(seqs) == 1 else 's'} {', '.join(map(str, seqs))}"


def at(step_id: str) -> str:
    """A step as it appears in a sentence."""
    return "loading" if step_id == LOAD_STEP else f"step {step_id}"


def taken(view: RunView) -> timedelta | None:
    """How long the run took, including pauses."""
    if view.snapshot.total_duration_ms is None:
        return None
    return timedelta(milliseconds=view.snapshot.total_duration_ms)


_STEP_COLOURS = {StepStatus.FAILED: "bold red", StepStatus.RUNNING: "cyan", StepStatus.SKIPPED: "yellow"}


def run_page(run: Run) -> Iterator[PagePart]:
    """A run with its steps, inputs and outputs."""
    view = run.view
    request = view.record.request
    yield heading(f"run {view.record.run_id}")
    yield grid(
        [
            [label("status"), plain(view.snapshot.status.value, STATUS_COLOURS.get(view.snapshot.status, ""))],
            [label("project"), plain(f"{request.project_id} {request.definition}")],
            [label("period"), plain(request.period)],
            [label("created"), plain(_asked(view))],
            *([[label("retry"), plain(f"of run {request.retry_of}")]] if request.retry_of else []),
            *([[label("rerun"), plain(f"of run {request.rerun.of}")]] if request.rerun is not None else []),
            [label("started"), plain(local_time(view.snapshot.started_at))],
        ]
    )
    if view.snapshot.steps:
        yield plain("")
        yield headed(
            ["step", "name", "status", "rows", "took"],
            [_step_row(step) for step in view.snapshot.steps],
        )
    inputs = run.inputs()
    if inputs:
        yield plain("")
        rows = [[plain(each.name), plain(f"{each.rows:,} rows"), plain(each.sources)] for each in inputs]
        yield headed(["read", "", "from"], rows)
    outputs = view.outputs()
    if outputs:
        yield plain("")
        yield headed(["output", "rows", "to"], [_output_row(output) for output in outputs])
    yield from captures_of_run(view)
    yield plain("")


def _asked(view: RunView) -> str:
    created = view.record.created_at
    by = f" by {view.record.request.requested_by}" if view.record.request.requested_by else ""
    return f"{local_time(created)} {zone_name(created)}{by}"


def _step_row(step: StepSnapshot) -> list[PagePart]:
    counted = outcome(step.type, step.counts, ()).strip() if step.status is StepStatus.SUCCESS else ""
    attempt = f", attempt {step.logical_attempt_id}" if step.logical_attempt_id > 1 else ""
    return [
        plain(step.step_id),
        plain(step.name),
        plain(f"{step.status.value}{attempt}", _STEP_COLOURS.get(step.status, "")),
        plain("; ".join(text for text in (step.skip_reason or counted, *reuse_sentences(step.reuse)) if text)),
        plain(duration(between(step.started_at, step.completed_at))),
    ]


def _output_row(output: dict[str, object]) -> list[PagePart]:
    place = output.get("path") or f"table {output.get('table')}"
    dataset = f", dataset {output['dataset']} v{output['dataset_version']}" if "dataset" in output else ""
    return [plain(output["seq"]), plain(f"{output['rows']:,}"), plain(f"{place}{dataset}")]
