"""Lines for steps and events; tables of runs, datasets, projects, dead letters and tokens."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from clew.cli.formatting import between, duration, local_minute, local_time, short
from clew.cli.views.page import grid, headed, heading, label, plain
from clew.cli.views.page_parts import PagePart
from clew.deferred import dataclass
from clew.events.artifacts import output_among, version_among
from clew.events.bodies import StepCompleted
from clew.events.envelope import StoredEvent
from clew.events.sentences import OF_STEPS, sentence
from clew.events.snapshot import RunStatus
from clew.events.values import LOAD_STEP, ArtifactRef
from clew.runs.request import RunRecord

if TYPE_CHECKING:
    from clew.api.datasets import DatasetView, TableView
    from clew.api.projects import ProjectView
    from clew.auth.access_log import AccessRecord
    from clew.auth.tokens import ApiToken, BrowserSession
    from clew.plan import Plan
    from clew.runs.stores import DeadLetter

_WIDEST_NAME = 34
_COUNTED = {
    "update": ("rows_updated", "changed"),
    "delete": ("rows_deleted", "deleted"),
    "aggregate": ("rows_created", "created"),
    "append": ("rows_created", "created"),
    "output": ("rows_written", "rows"),
    LOAD_STEP: ("loaded", "rows"),
}


@dataclass(frozen=True, slots=True)
class StepLines:
    """Lines for the steps of one plan, in aligned columns."""

    plan: "Plan"
    sources: str = ""
    """Where the input was read from, once known."""

    def line(self, step_id: str, told: str) -> str:
        """The line of a step, with a text about it."""
        return f"   {self.label(step_id):<6}  {self.name(step_id):<{self._width}}  {told}".rstrip()

    def done(self, step_id: str, counts: Mapping[str, int], artifacts: Sequence[ArtifactRef]) -> str:
        """The line of a completed step."""
        return self.line(step_id, outcome(self.type(step_id), counts, artifacts, self.sources))

    def label(self, step_id: str) -> str:
        """The label of a step: its seq."""
        return step_id

    def name(self, step_id: str) -> str:
        """The name that the user gave the step."""
        found = self.plan.input.name if step_id == LOAD_STEP else self._names.get(step_id, "")
        text = plain(found).plain
        return text if len(text) <= _WIDEST_NAME else text[: _WIDEST_NAME - 1] + "…"

    def type(self, step_id: str) -> str:
        """The kind of the step."""
        return LOAD_STEP if step_id == LOAD_STEP else next(s.type for s in self.plan.steps if str(s.seq) == step_id)

    @property
    def _names(self) -> dict[str, str]:
        return {str(step.seq): step.name for step in self.plan.steps}

    @property
    def _width(self) -> int:
        return max(len(self.name(step_id)) for step_id in (LOAD_STEP, *self._names))


def outcome(type_: str, counts: Mapping[str, int], artifacts: Sequence[ArtifactRef], sources: str = "") -> str:
    """What a step did: a right-aligned number, what it counts, and where the rows came from or went."""
    key, noun = _COUNTED[type_]
    told = f"{counts.get(key, 0):>9,} {noun}"
    where = sources if type_ == LOAD_STEP else destination(artifacts)
    if not where:
        return told
    return f"{told}  {plain(where).plain}" if type_ == LOAD_STEP else f"{told} -> {plain(where).plain}"


def destination(artifacts: Sequence[ArtifactRef]) -> str:
    """Where the rows of an output went: the dataset if they were registered, otherwise the path or table."""
    dataset = version_among(artifacts)
    if dataset is not None:
        return f"dataset {dataset[0]} v{dataset[1]}"
    kind, where = output_among(artifacts) or ("", "")
    return f"table {where}" if kind == "table" else where


STATUS_COLOURS = {
    RunStatus.COMPLETED: "green",
    RunStatus.FAILED: "bold red",
    RunStatus.CANCELLED: "yellow",
    RunStatus.PAUSED: "yellow",
    RunStatus.RUNNING: "cyan",
}


def runs_table(runs: Iterable[RunRecord]) -> PagePart:
    """Runs, one per line."""
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
    return f"{run.request.project_id} {run.request.definition}".rstrip()


def dataset_table(views: "Iterable[DatasetView]") -> PagePart:
    """Datasets, one per line."""
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


def dataset_page(view: "DatasetView") -> Iterator[PagePart]:
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
            ["version", "rows", "created by", "at", "periods"],
            [
                [
                    plain(f"v{version.version}"),
                    plain(f"{version.rows:,}"),
                    plain(f"run {short(version.run_id)} step {version.step}"),
                    plain(local_minute(version.created_at)),
                    plain(", ".join([*(period for period, _ in version.rows_by_period), *map(_table, version.tables)])),
                ]
                for version in view.versions
            ],
        )


def _table(table: "TableView") -> str:
    """A table that is registered as it is."""
    return f"{table.format} {table.table} {'version' if table.format == 'delta' else 'snapshot'} {table.version}"


def project_table(views: "Iterable[ProjectView]") -> PagePart:
    """Projects, one per line."""
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


def dead_letter_table(letters: "Iterable[DeadLetter]") -> PagePart:
    """Dead letters, one per line."""
    rows = [
        [
            plain(letter.bus),
            plain(f"run {short(letter.run_id)} event {letter.run_seq}"),
            plain(letter.event_type),
            plain(local_minute(letter.dead_since)),
            plain(letter.error),
        ]
        for letter in letters
    ]
    return headed(["bus", "event", "type", "since", "error"], rows, fixed=2)


def event_line(event: StoredEvent) -> str:
    """Number, time, type, step and text of an event."""
    step = event.step_id if isinstance(event.body, OF_STEPS) else ""
    attempt = f" (attempt {event.logical_attempt_id})" if step and event.logical_attempt_id > 1 else ""
    said = plain(f"{_said(event)}{attempt}").plain
    return f"{event.run_seq:>4}  {local_time(event.emitted_at)}  {event.event_type:<14}  {step:<5} {said}".rstrip()


def _said(event: StoredEvent) -> str:
    where = destination(event.body.artifacts) if isinstance(event.body, StepCompleted) else None
    return " -> ".join(part for part in (sentence(event.body), where) if part)


def token_table(tokens: "Iterable[ApiToken]", now: datetime) -> PagePart:
    """Tokens, one per line."""
    rows = [
        [
            plain(token.token_id),
            plain(token.name),
            plain(token.role.value),
            plain(token.tenant_id),
            plain(local_minute(token.created_at)),
            plain(_state(token, now)),
        ]
        for token in tokens
    ]
    return headed(["token", "name", "role", "tenant", "created", "state"], rows)


def access_table(records: "Iterable[AccessRecord]") -> PagePart:
    """Access records, one per line."""
    rows = [
        [
            plain(record.entry_id),
            plain(local_minute(record.read_at)),
            plain(record.actor),
            plain(record.role),
            plain(record.subject.value),
            plain(short(record.subject_id)),
            plain(record.detail),
        ]
        for record in records
    ]
    return headed(["no.", "when", "who", "role", "kind", "of", "what"], rows, fixed=6)


def session_table(sessions: "Iterable[BrowserSession]") -> PagePart:
    """Browser sessions, one per line."""
    rows = [
        [
            plain(session.session_id),
            plain(session.name),
            plain(session.role.value),
            plain(session.tenant_id),
            plain(session.token_id or "-"),
            plain(local_minute(session.created_at)),
            plain(local_minute(session.expires_at)),
        ]
        for session in sessions
    ]
    return headed(["session", "name", "role", "tenant", "token", "began", "ends"], rows)


def _state(token: "ApiToken", now: datetime) -> str:
    if token.revoked_at is not None:
        return f"revoked {local_minute(token.revoked_at)}"
    word = "valid until" if token.is_valid(now) else "expired"
    return f"{word} {local_minute(token.expires_at)}"
