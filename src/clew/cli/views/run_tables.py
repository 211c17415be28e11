"""Tables of runs, events, datasets and projects."""

from collections.abc import Iterable

from rich.console import RenderableType

from clew.cli.moments import between, duration, local_minute
from clew.cli.run_site import short
from clew.cli.views.page import headed, plain
from clew.runs.request import RunRecord
from clew.runs.status import RunStatus

STATUS_COLOURS = {
    RunStatus.COMPLETED: "green",
    RunStatus.FAILED: "bold red",
    RunStatus.CANCELLED: "yellow",
    RunStatus.PAUSED: "yellow",
    RunStatus.RUNNING: "cyan",
}


def runs_table(runs: Iterable[RunRecord]) -> RenderableType:
    """Runs, one in a line."""
    rows = [
        [
            plain(short(run.run_id)),
            plain(_project(run)),
            plain(run.request.period),
            plain(run.status.value, STATUS_COLOURS.get(run.status, "")),
            plain(local_minute(run.started_at or run.created_at)),
            plain(duration(between(run.started_at, run.completed_at))),
        ]
        for run in runs
    ]
    return headed(["run", "project", "period", "status", "started", "took"], rows)


def _project(run: RunRecord) -> str:
    version = run.request.project_version or ""
    return f"{run.request.project_id} {f'v{version}' if version.isdigit() else version}".rstrip()
