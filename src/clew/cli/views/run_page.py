"""The page of a run."""

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType

from clew.app.running.reading import RunView, readable_parts, sources_of
from clew.cli.moments import between, duration, local_time, zone_name
from clew.cli.views.capture_lines import captures_of_run
from clew.cli.views.page import grid, headed, heading, label, plain
from clew.cli.views.run_steps import outcome
from clew.cli.views.run_tables import STATUS_COLOURS
from clew.runs.snapshot import StepSnapshot
from clew.runs.status import StepStatus
from clew.trace.layout import PartFile

_STEP_COLOURS = {StepStatus.FAILED: "bold red", StepStatus.RUNNING: "cyan", StepStatus.SKIPPED: "yellow"}


def run_page(view: RunView, root: Path) -> Iterator[RenderableType]:
    """What a run is, what its steps did, what it read and what it published."""
    request = view.record.request
    version = request.project_version or ""
    yield heading(f"run {view.record.run_id}")
    yield grid(
        [
            [label("status"), plain(view.snapshot.status.value, STATUS_COLOURS.get(view.snapshot.status, ""))],
            [label("project"), plain(f"{request.project_id} {f'v{version}' if version.isdigit() else version}")],
            [label("period"), plain(request.period)],
            [label("asked"), plain(_asked(view))],
            *([[label("again"), plain(f"retry of run {request.retry_of}")]] if request.retry_of else []),
            [label("started"), plain(local_time(view.snapshot.started_at))],
        ]
    )
    if view.snapshot.steps:
        yield plain("")
        yield headed(
            ["step", "name", "status", "rows", "took"],
            [_step_row(step) for step in view.snapshot.steps],
        )
    inputs = [part for part in readable_parts(root, view.snapshot)[0] if part.kind == "input"]
    if inputs:
        yield plain("")
        rows = [[plain(part.name), plain(f"{_rows(part.files):,} rows"), plain(sources_of(part))] for part in inputs]
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


def _step_row(step: StepSnapshot) -> list[RenderableType]:
    counted = outcome(step.type, step.counts, ()).strip() if step.status is StepStatus.SUCCESS else ""
    attempt = f", attempt {step.logical_attempt_id}" if step.logical_attempt_id > 1 else ""
    return [
        plain(step.step_id),
        plain(step.name),
        plain(f"{step.status.value}{attempt}", _STEP_COLOURS.get(step.status, "")),
        plain(step.skip_reason or counted),
        plain(duration(between(step.started_at, step.completed_at))),
    ]


def _rows(files: tuple[PartFile, ...]) -> int:
    return sum(file.rows for file in files)


def _output_row(output: dict[str, object]) -> list[RenderableType]:
    place = output.get("path") or f"table {output.get('table')}"
    dataset = f", dataset {output['dataset']} v{output['dataset_version']}" if "dataset" in output else ""
    return [plain(output["seq"]), plain(f"{output['rows']:,}"), plain(f"{place}{dataset}")]
