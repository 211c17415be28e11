"""Tables of runs, events, datasets and projects."""

from collections.abc import Iterable, Iterator

from rich.console import RenderableType

from clew.app.running.datasets import DatasetView
from clew.app.running.projects import ProjectView
from clew.cli.moments import between, duration, local_minute
from clew.cli.run_site import short
from clew.cli.views.page import grid, headed, heading, label, plain
from clew.runs.request import RunRecord
from clew.runs.status import RunStatus
from clew.runs.stores import DeadLetter

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


def dataset_table(views: Iterable[DatasetView]) -> RenderableType:
    """Datasets, one in a line."""
    rows = [
        [
            plain(view.dataset),
            plain("registered" if view.versions else view.status),
            plain(f"v{view.versions[0].version}" if view.versions else "-"),
            plain(len(view.columns)),
            plain(f"{view.versions[0].rows:,}" if view.versions else "-"),
            plain(f"run {short(view.versions[0].run_id)}" if view.versions else view.declared or "-"),
        ]
        for view in views
    ]
    return headed(["dataset", "status", "version", "columns", "rows", "from"], rows)


def dataset_page(view: DatasetView) -> Iterator[RenderableType]:
    """A dataset with its columns and its versions."""
    yield heading(plain(view.dataset).plain)
    yield grid(
        [
            [label("name"), plain(view.name)],
            [label("status"), plain(view.status)],
            *([[label("file"), plain(view.declared)]] if view.declared else []),
        ]
    )
    yield plain("")
    yield headed(["column", "type"], [[plain(name), plain(type_)] for name, type_ in view.columns])
    if view.versions:
        yield plain("")
        yield headed(
            ["version", "rows", "made by", "at", "periods"],
            [
                [
                    plain(f"v{version.version}"),
                    plain(f"{version.rows:,}"),
                    plain(f"run {short(version.run_id)} step {version.step}"),
                    plain(local_minute(version.created_at)),
                    plain(", ".join(period for period, _ in version.rows_by_period)),
                ]
                for version in view.versions
            ],
        )


def project_table(views: Iterable[ProjectView]) -> RenderableType:
    """Projects, one in a line."""
    colours = {"active": "green", "modified": "yellow"}
    rows = [
        [
            plain(view.project),
            plain(view.name),
            plain(view.state, colours.get(view.state, "")),
            plain(f"v{view.version}" if view.version is not None else "-"),
            plain(view.digest[:12] if view.digest else "has errors"),
        ]
        for view in views
    ]
    return headed(["project", "name", "state", "version", "digest of the file"], rows)


def dead_letter_table(letters: Iterable[DeadLetter]) -> RenderableType:
    """Dead letters, one in a line."""
    rows = [
        [
            plain(letter.sink),
            plain(f"run {short(letter.run_id)} event {letter.run_seq}"),
            plain(letter.event_type),
            plain(local_minute(letter.dead_since)),
            plain(letter.error),
        ]
        for letter in letters
    ]
    return headed(["bus", "event", "type", "given up", "because"], rows, fixed=2)
