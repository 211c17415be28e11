"""Where projects stand: for each project and period the run that counts, whether it is current, and what it proves.

The number of statements does not depend on how many runs there are, and no trace is opened: control totals and checks
are those that the runs have recorded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum

from clew.api.opened_environment import OpenedEnvironment
from clew.api.overview_inputs import InputChanges, InputsNow
from clew.api.projects import ProjectView, list_projects
from clew.api.run_parameters import plan_for_run
from clew.deferred import dataclass
from clew.definitions import Period
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.server import INVALID_REQUEST
from clew.diagnostics.codes.workspace import UNKNOWN_PERIOD
from clew.events.artifacts import version_among
from clew.events.snapshot import RunSnapshot, RunStatus
from clew.plan.plan import Plan
from clew.privacy.messages import as_seen
from clew.runs.alerts import Alert
from clew.runs.request import RunRecord
from clew.store.standing import NewestVersion, StandingRuns

_DRAFT = "draft"
_NO_LEVEL = "other"
_MOST_PROJECTS = 100
_MOST_LOOKED_AT = 300
"""Runs whose inputs one overview compares with what is there now."""
_MOST_BEHIND = 20
"""Runs whose saved snapshot is not there yet and that are read event by event."""

MOST_PERIODS = 60


class Standing(StrEnum):
    """Where a project stands in a period."""

    CURRENT = "current"
    SUPERSEDED = "superseded"
    STALE = "stale"
    FAILED = "failed"
    RUNNING = "running"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class OverviewQuestion:
    """Which part of the overview."""

    level: str | None = None
    until: str | None = None
    periods: int = 12
    project: str | None = None


@dataclass(frozen=True, slots=True)
class TotalOfRun:
    """A control total as an output has written it."""

    name: str
    seq: int
    """The output step."""
    written: str
    """A decimal number."""
    left_out: str

    def to_json(self) -> dict[str, object]:
        """The form of `GET /api/v1/overview`."""
        return {"name": self.name, "seq": self.seq, "written": self.written, "left_out": self.left_out}


@dataclass(frozen=True, slots=True)
class NotCurrent:
    """Why a result is not current."""

    kind: str
    """`input`, `project` or `output`."""
    subject: str
    text: str

    def to_json(self) -> dict[str, object]:
        """The form of `GET /api/v1/overview`."""
        return {"kind": self.kind, "subject": self.subject, "text": self.text}


@dataclass(frozen=True, slots=True)
class Result:
    """What the run that counts has recorded."""

    run_id: str
    version: str | None
    completed_at: datetime | None
    rows_written: int | None
    """By its last output; None where it is not known."""
    ties: bool | None
    """Whether rows and control totals were accounted for when it ended; None where it is not known."""
    controls: tuple[TotalOfRun, ...] = ()
    checks: int = 0
    failed_checks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, object]:
        """The form of `GET /api/v1/overview`."""
        return {
            "run_id": self.run_id,
            "project_version": self.version,
            "completed_at": self.completed_at.isoformat() if self.completed_at else None,
            "rows_written": self.rows_written,
            "ties": self.ties,
            "controls": [each.to_json() for each in self.controls],
            "checks": self.checks,
            "failed_checks": list(self.failed_checks),
        }


@dataclass(frozen=True, slots=True)
class Cell:
    """A project in a period."""

    period: str
    standing: Standing
    result: Result | None = None
    """Of the run that counts; None if none has completed."""
    newest: str | None = None
    """The newest run."""
    newest_status: RunStatus | None = None
    tries: int = 0
    superseded_runs: int = 0
    """Completed runs that another one has taken the place of."""
    reasons: tuple[NotCurrent, ...] = ()
    unchecked: tuple[str, ...] = ()
    """What was not compared with what is there now."""

    def to_json(self) -> dict[str, object]:
        """The form of `GET /api/v1/overview`."""
        return {
            "period": self.period,
            "standing": self.standing.value,
            "result": self.result.to_json() if self.result else None,
            "newest_run": self.newest,
            "newest_status": self.newest_status.value if self.newest_status else None,
            "runs": self.tries,
            "superseded_runs": self.superseded_runs,
            "reasons": [each.to_json() for each in self.reasons],
            "unchecked": list(self.unchecked),
        }


@dataclass(frozen=True, slots=True)
class ProjectStanding:
    """A project over the periods."""

    project: str
    name: str
    state: str
    """That of `clew projects`; "gone" if the workspace does not have the project any more."""
    version: int | None
    cells: tuple[Cell, ...]

    def to_json(self) -> dict[str, object]:
        """The form of `GET /api/v1/overview`."""
        return {
            "project": self.project,
            "name": self.name,
            "state": self.state,
            "version": self.version,
            "periods": [cell.to_json() for cell in self.cells],
        }


@dataclass(frozen=True, slots=True)
class Overview:
    """Projects by periods, the newest period first."""

    level: str | None
    """The level of the calendar that the periods are of; None if nothing has run."""
    levels: tuple[str, ...]
    """The levels that runs are for."""
    periods: tuple[str, ...]
    newer: str | None
    """The last period of the page with newer ones."""
    older: str | None
    projects: tuple[ProjectStanding, ...]
    projects_left_out: int = 0
    runs: int = 0
    """All runs of these projects and periods."""

    @property
    def counts(self) -> Mapping[str, int]:
        """How often each standing occurs."""
        found = [cell.standing for project in self.projects for cell in project.cells]
        return {standing.value: found.count(standing) for standing in Standing}

    def to_json(self) -> dict[str, object]:
        """The form of `GET /api/v1/overview`."""
        return {
            "level": self.level,
            "levels": list(self.levels),
            "periods": list(self.periods),
            "newer": self.newer,
            "older": self.older,
            "counts": dict(self.counts),
            "projects": [project.to_json() for project in self.projects],
            "projects_left_out": self.projects_left_out,
        }


def overview_of(at: OpenedEnvironment, question: OverviewQuestion) -> Overview:
    """Where projects stand, as the principal may see it."""
    tenant = at.principal.tenant_id or at.environment.settings.tenant
    runs = at.state.standing.runs(tenant, _DRAFT)
    if question.project is not None:
        wanted = at.files.project(question.project).id if at.is_own_tenant else question.project
        runs = {key: standing for key, standing in runs.items() if key[0] == wanted}
    views = _projects(at, runs, question.project)
    shown = views[:_MOST_PROJECTS]
    axis = _axis(at, question, [period for project, period in runs if any(project == view.project for view in shown)])
    return _Gatherer(at, axis, runs).overview(shown, left_out=len(views) - len(shown))


def _projects(
    at: OpenedEnvironment, runs: Mapping[tuple[str, str], StandingRuns], only: str | None
) -> list[ProjectView]:
    """The projects of the workspace in the order of their files, then those that only runs know."""
    known = list_projects(at.files, at.state) if at.is_own_tenant else []
    if only is not None:
        known = [view for view in known if only in {view.project, view.name}]
    names = {view.project for view in known}
    gone = sorted({project for project, _ in runs} - names)
    return [*known, *(ProjectView(name, name, "inactive", None, None) for name in gone)]


@dataclass(frozen=True, slots=True)
class _Axis:
    level: str | None
    levels: tuple[str, ...]
    periods: tuple[str, ...]
    newer: str | None
    older: str | None


def _axis(at: OpenedEnvironment, question: OverviewQuestion, used: Iterable[str]) -> _Axis:
    """The periods that are shown: a stretch of those of one level, without a gap between the first and the last run."""
    calendar = at.source.current().loaded.workspace.periods if at.is_own_tenant else None
    by_level = dict[str, set[str]]()
    for period in used:
        found = calendar.period(period) if calendar is not None else None
        by_level.setdefault(found.level if found is not None else _NO_LEVEL, set()).add(period)
    if not by_level:
        return _Axis(None, (), (), None, None)
    order = list(dict.fromkeys(period.level for period in calendar.periods)) if calendar is not None else []
    levels = tuple(sorted(by_level, key=lambda level: order.index(level) if level in order else len(order)))
    level = question.level or max(levels, key=lambda each: (len(by_level[each]), levels.index(each)))
    if level not in by_level:
        hint = did_you_mean(level, levels) or f"there are runs for the levels {', '.join(levels)}"
        raise UserError(INVALID_REQUEST.anywhere(problem=f'no runs for a level "{level}"', hint=hint))
    ordered = _stretch([each for each in calendar.periods if each.level == level], by_level[level]) if calendar else []
    ordered = ordered or sorted(by_level[level])
    size = max(1, min(question.periods, MOST_PERIODS))
    if question.until is not None and question.until not in ordered:
        raise UserError(UNKNOWN_PERIOD.anywhere(name=question.until, hint=did_you_mean(question.until, ordered)))
    end = ordered.index(question.until) + 1 if question.until is not None else len(ordered)
    begin = max(0, end - size)
    newer = ordered[min(end + size, len(ordered)) - 1] if end < len(ordered) else None
    older = ordered[begin - 1] if begin else None
    return _Axis(level, levels, tuple(reversed(ordered[begin:end])), newer, older)


def _stretch(periods: Sequence[Period], used: set[str]) -> list[str]:
    ordered = [each.identifier for each in sorted(periods, key=lambda each: each.start_date)]
    places = [number for number, name in enumerate(ordered) if name in used]
    return ordered[places[0] : places[-1] + 1] if places else []


@dataclass(eq=False)
class _Gatherer:
    at: OpenedEnvironment
    axis: _Axis
    runs: Mapping[tuple[str, str], StandingRuns]
    snapshots: Mapping[str, RunSnapshot] = field(init=False, default_factory=dict)
    alerts: Mapping[str, frozenset[str]] = field(init=False, default_factory=dict)
    newest: Mapping[str, NewestVersion] = field(init=False, default_factory=dict)
    inputs: InputsNow | None = field(init=False, default=None)
    left: int = field(init=False, default=_MOST_LOOKED_AT)

    def overview(self, views: Sequence[ProjectView], *, left_out: int) -> Overview:
        """Where these projects stand."""
        shown = {
            key: standing
            for view in views
            for period in self.axis.periods
            if (standing := self.runs.get(key := (view.project, period))) is not None
        }
        counting = [standing.counts.run_id for standing in shown.values() if standing.counts is not None]
        stored, policy = self.at.state.standing, self.at.policy
        known = stored.snapshots(counting)
        late = [run for run in counting if run not in known or not known[run].status.is_terminal]
        behind = {run: self.at.runs.projected(run).snapshot for run in late[:_MOST_BEHIND]}
        self.snapshots = {run: as_seen(policy, each) for run, each in {**known, **behind}.items()}
        self.alerts = stored.alerts(counting)
        if self.at.is_own_tenant:
            self.newest, environment = stored.newest_versions(), self.at.environment
            workspace = self.at.files.loaded.workspace
            self.inputs = InputsNow(
                workspace, self.at.files.root, environment.storage_root, self.newest, self.at.store.read_inputs
            )
        return Overview(
            level=self.axis.level,
            levels=self.axis.levels,
            periods=self.axis.periods,
            newer=self.axis.newer,
            older=self.axis.older,
            projects=tuple(self.project(view) for view in views),
            projects_left_out=left_out,
            runs=sum(each.tries for each in shown.values()),
        )

    def project(self, view: ProjectView) -> ProjectStanding:
        """One project."""
        cells = tuple(self.cell(view, period) for period in self.axis.periods)
        has_file = view.digest is not None or view.state in {"draft", "active", "modified"}
        state = view.state if has_file or self.is_defined(view) else "gone"
        return ProjectStanding(view.project, view.name, state, view.version, cells)

    def is_defined(self, view: ProjectView) -> bool:
        """Whether the workspace has the project."""
        files = self.at.source.current().loaded.workspace.projects if self.at.is_own_tenant else ()
        return any(each.id == view.project for each in files)

    def cell(self, view: ProjectView, period: str) -> Cell:
        """A project in a period."""
        known = self.runs.get((view.project, period))
        if known is None:
            return Cell(period, Standing.NEVER)
        cell = Cell(
            period,
            Standing.NEVER,
            newest=known.newest.run_id,
            newest_status=known.newest.status,
            tries=known.tries,
            superseded_runs=max(0, known.completions - 1),
        )
        if known.counts is not None:
            cell = self.with_result(cell, view, known.counts)
        if not known.newest.status.is_terminal:
            return replace(cell, standing=Standing.RUNNING)
        if known.newest.status is RunStatus.FAILED and _came_after(known.newest, known.counts):
            return replace(cell, standing=Standing.FAILED)
        return cell

    def with_result(self, cell: Cell, view: ProjectView, run: RunRecord) -> Cell:
        """A cell with what the run that counts has recorded, and whether that still holds."""
        snapshot = self.snapshots.get(run.run_id)
        result = _result(run, snapshot, self.alerts.get(run.run_id, frozenset()))
        replaced = list(self.replaced(run, snapshot))
        if replaced:
            return replace(cell, result=result, standing=Standing.SUPERSEDED, reasons=tuple(replaced))
        fresh, reasons = self.freshness(run, snapshot), list(self.edited(view, run))
        reasons += [NotCurrent("input", each.subject, each.text) for each in fresh.changed]
        standing = Standing.STALE if reasons else Standing.CURRENT
        return replace(cell, result=result, standing=standing, reasons=tuple(reasons), unchecked=fresh.unchecked)

    def replaced(self, run: RunRecord, snapshot: RunSnapshot | None) -> Iterator[NotCurrent]:
        """The datasets whose newest version no longer has the rows of a run."""
        for step in snapshot.steps if snapshot is not None else ():
            registered = version_among(step.artifacts)
            newest = self.newest.get(registered[0]) if registered is not None else None
            has_rows = bool(step.counts.get("rows_written", 0))
            if registered is not None and newest is not None and has_rows and run.run_id not in newest.authors:
                text = f"version {newest.version} of {registered[0]} no longer has its rows"
                yield NotCurrent("output", registered[0], text)

    def edited(self, view: ProjectView, run: RunRecord) -> Iterator[NotCurrent]:
        """How the project differs from what the run has executed."""
        version = run.request.project_version
        if not self.at.is_own_tenant or view.digest is None:
            return
        if view.state == "modified":
            yield NotCurrent(
                "project", view.project, f"the project was edited after version {view.version} was activated"
            )
        if view.state in {"active", "modified"} and version != str(view.version):
            used = "a draft" if version == _DRAFT else f"version {version}"
            yield NotCurrent("project", view.project, f"version {view.version} is active, and the run used {used}")
        elif view.state == "draft" and version == _DRAFT and self.plan_now(view, run) != run.request.plan.digest:
            yield NotCurrent("project", view.project, "the project was edited since")

    def plan_now(self, view: ProjectView, run: RunRecord) -> str | None:
        """The digest of the plan that a run of the draft would have now with the same values."""
        try:
            plan, of_environment = self.at.files.plan(view.project), self.at.environment.settings.parameters
            return plan_for_run(plan, self.at.files, run.request.period, of_environment, run.request.values).digest
        except UserError:
            return None

    def freshness(self, run: RunRecord, snapshot: RunSnapshot | None) -> InputChanges:
        """Whether what a run has read is still as it was."""
        if self.inputs is None:
            return InputChanges()
        self.left -= 1
        plan = self.plan_of(run) if self.left >= 0 else None
        if snapshot is None or plan is None or run.started_at is None:
            return InputChanges(unchecked=("its inputs",))
        return self.inputs.look(plan, run.request.period, run.started_at, snapshot.artifacts)

    def plan_of(self, run: RunRecord) -> Plan | None:
        """The plan that a run has executed; None where it cannot be read."""
        try:
            digest = run.request.plan.digest
            return self.at.store.plans(self.at.environment.storage_root, digest) if digest else None
        except UserError:
            return None


def _came_after(newest: RunRecord, counts: RunRecord | None) -> bool:
    return counts is None or newest.created_at > counts.created_at


def _result(run: RunRecord, snapshot: RunSnapshot | None, alerts: frozenset[str]) -> Result:
    if snapshot is None:
        return Result(run.run_id, run.request.project_version, run.completed_at, None, None)
    outputs = [step for step in snapshot.steps if "rows_written" in step.counts]
    controls = [
        TotalOfRun(name, step.seq, sides.get("written", ""), sides.get("left_out", ""))
        for step in outputs
        for name, sides in step.amounts.items()
    ]
    return Result(
        run_id=run.run_id,
        version=run.request.project_version,
        completed_at=run.completed_at,
        rows_written=outputs[-1].counts["rows_written"] if outputs else None,
        ties=Alert.TOTALS_DIFFER.value not in alerts if outputs else None,
        controls=tuple(controls),
        checks=len(snapshot.checks),
        failed_checks=tuple(check.name for check in snapshot.checks if not check.passed),
    )
