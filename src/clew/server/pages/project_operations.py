"""What a project does, operation by operation, as `clew plan` tells it, with the checks that look at its rows."""

from collections.abc import Iterator, Mapping, Sequence

from clew.api.overview import Overview, Result
from clew.deferred import dataclass
from clew.definitions import Project, Scenario
from clew.plan import Plan
from clew.plan.expansion import MAIN
from clew.plan.planned_checks import PlannedCheck
from clew.plan.steps import Detail
from clew.server.pages import addresses


@dataclass(frozen=True, slots=True)
class CheckLine:
    """A check with what it found last."""

    name: str
    text: str
    description: str
    severity: str
    outcome: str
    """Nothing where it is not known."""
    is_bad: bool


@dataclass(frozen=True, slots=True)
class OperationBlock:
    """An operation."""

    seq: int
    name: str
    type: str
    description: str
    origin: str
    """The fragment that it comes from."""
    details: tuple[Detail, ...]
    sets: tuple[str, ...]
    datasets: tuple[tuple[str, str], ...]
    """The other datasets that it reads, with the addresses of their pages."""
    checks: tuple[CheckLine, ...]


@dataclass(frozen=True, slots=True)
class LastResult:
    """The newest result that counts."""

    period: str
    standing: str
    address: str


@dataclass(frozen=True, slots=True)
class ToldOperations:
    """What a project does."""

    blocks: tuple[OperationBlock, ...]
    checks_of_load: tuple[CheckLine, ...]
    last: LastResult | None
    scenarios: tuple[tuple[str, str], ...]
    """The tests of the project: their names, and what they are for."""


def operations_of(plan: Plan | None, scenarios: Sequence[Scenario], overview: Overview) -> ToldOperations:
    """The operations of a plan; none where there is no plan."""
    tests = tuple((each.name, each.description) for each in scenarios)
    newest = _newest(overview)
    last, result = (None, None) if newest is None else newest
    if plan is None:
        return ToldOperations((), (), last, tests)
    checks = dict[int, list[CheckLine]]()
    for check in plan.checks:
        checks.setdefault(check.at, []).append(_check(check, result))
    return ToldOperations(tuple(_blocks(plan, checks)), tuple(checks.get(0, ())), last, tests)


def scenarios_of(project: Project | None, scenarios: Sequence[Scenario]) -> list[Scenario]:
    """The scenarios that test a project."""
    if project is None:
        return []
    names = {project.id, project.name, project.file}
    return [
        each
        for each in scenarios
        if (each.project.file == project.file if isinstance(each.project, Project) else each.project in names)
    ]


def _newest(overview: Overview) -> tuple[LastResult, Result] | None:
    for project in overview.projects:
        for cell in project.cells:
            if cell.result is not None:
                shown = LastResult(cell.period, cell.standing.value, addresses.run(cell.result.run_id))
                return shown, cell.result
    return None


def _blocks(plan: Plan, checks: Mapping[int, list[CheckLine]]) -> Iterator[OperationBlock]:
    for step in plan.steps:
        used = dict.fromkeys(each.use.dataset_id for each in step.datasets)
        yield OperationBlock(
            seq=step.seq,
            name=step.name,
            type=step.type,
            description=step.description or "",
            origin="" if step.path == MAIN else step.path,
            details=tuple(step.details()),
            sets=tuple(step.columns_set),
            datasets=tuple((name, addresses.dataset(name)) for name in used),
            checks=tuple(checks.get(step.seq, ())),
        )


def _check(check: PlannedCheck, result: Result | None) -> CheckLine:
    failed = result is not None and check.name in result.failed_checks
    known = result is not None and result.checks > 0
    outcome = ("failed" if failed else "passed") if known else ""
    return CheckLine(check.name, check.text, check.description, check.severity, outcome, failed)
