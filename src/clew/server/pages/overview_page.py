"""The start page: projects by periods, with control totals and checks beside them."""

from collections.abc import Iterator, Sequence
from decimal import Decimal

from clew.api.overview import Cell, Overview, ProjectStanding, Result, Standing
from clew.deferred import dataclass
from clew.events.snapshot import RunStatus
from clew.server.pages import addresses, words

_WORDS = {
    Standing.CURRENT: "Current",
    Standing.SUPERSEDED: "Superseded",
    Standing.STALE: "Stale",
    Standing.FAILED: "Failed",
    Standing.RUNNING: "Running",
    Standing.NEVER: "Never run",
}
_WAITING = frozenset({RunStatus.PENDING, RunStatus.APPROVED})
_MEANINGS = {
    Standing.CURRENT: "the last result is of the project and the inputs as they are now",
    Standing.STALE: "an input has changed since, or the project was edited",
    Standing.SUPERSEDED: "another run has replaced the rows in the registered dataset",
    Standing.FAILED: "the newest run has failed; an earlier result may still count",
    Standing.RUNNING: "a run is under way or waits",
    Standing.NEVER: "no run has completed",
}


@dataclass(frozen=True, slots=True)
class OverviewCell:
    """A project in a period."""

    standing: str
    word: str
    note: str
    address: str | None
    label: str
    """All of it, for those who do not see where it is."""


@dataclass(frozen=True, slots=True)
class MatrixLine:
    """A project over all periods."""

    project: str
    name: str
    address: str
    note: str
    cells: tuple[OverviewCell, ...]


@dataclass(frozen=True, slots=True)
class FigureCell:
    """A number of the run that counts."""

    text: str
    address: str | None
    is_bad: bool = False


@dataclass(frozen=True, slots=True)
class FigureLine:
    """One number over all periods."""

    name: str
    is_amount: bool
    cells: tuple[FigureCell, ...]


@dataclass(frozen=True, slots=True)
class FigureGroup:
    """The numbers of a project."""

    project: str
    lines: tuple[FigureLine, ...]


@dataclass(frozen=True, slots=True)
class Attention:
    """A result that somebody should look at."""

    project: str
    period: str
    standing: str
    word: str
    address: str | None
    project_address: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LevelChoice:
    """A level of the calendar to look at."""

    name: str
    address: str
    is_chosen: bool


@dataclass(frozen=True, slots=True)
class OverviewPage:
    """The content of the start page."""

    verdict: str
    is_good: bool
    detail: str
    periods: tuple[str, ...]
    lines: tuple[MatrixLine, ...]
    groups: tuple[FigureGroup, ...]
    attention: tuple[Attention, ...]
    more_attention: int
    unchecked: tuple[str, ...]
    legend: tuple[tuple[str, str, str], ...]
    levels: tuple[LevelChoice, ...]
    newer: str | None
    older: str | None
    left_out: int
    has_runs: bool
    projects: tuple[str, ...]


_MOST_ATTENTION = 20
_MOST_UNCHECKED = 5


def overview_page(found: Overview, *, may_read_rows: bool, periods: int) -> OverviewPage:
    """The start page for somebody."""
    attention = [each for project in found.projects for each in _attention(project)]
    unchecked = dict.fromkeys(text for project in found.projects for cell in project.cells for text in cell.unchecked)
    is_good, verdict, detail = _verdict(found)
    present = {cell.standing for project in found.projects for cell in project.cells}
    return OverviewPage(
        verdict=verdict,
        is_good=is_good,
        detail=detail,
        periods=found.periods,
        lines=tuple(map(_line, found.projects)),
        groups=tuple(
            group for project in found.projects if (group := _group(project, may_read_rows=may_read_rows)).lines
        ),
        attention=tuple(attention[:_MOST_ATTENTION]),
        more_attention=max(0, len(attention) - _MOST_ATTENTION),
        unchecked=_some(list(unchecked)),
        legend=tuple((each.value, _WORDS[each], _MEANINGS[each]) for each in _MEANINGS if each in present),
        levels=tuple(
            LevelChoice(level, addresses.overview(level=level), level == found.level)
            for level in found.levels
            if len(found.levels) > 1
        ),
        newer=_other(found, found.newer, periods),
        older=_other(found, found.older, periods),
        left_out=found.projects_left_out,
        has_runs=bool(found.periods),
        projects=tuple(project.project for project in found.projects),
    )


def _some(texts: Sequence[str]) -> tuple[str, ...]:
    more = len(texts) - _MOST_UNCHECKED
    return (*texts[:_MOST_UNCHECKED], f"and {more} more") if more > 0 else tuple(texts)


def _other(found: Overview, until: str | None, periods: int) -> str | None:
    if until is None:
        return None
    return addresses.overview(level=found.level, until=until, periods=periods if periods != 12 else None)


def _verdict(found: Overview) -> tuple[bool, str, str]:
    """The answer to a manager's question: which results are closed, and do they tie?"""
    cells = [cell for project in found.projects for cell in project.cells]
    results = [cell for cell in cells if cell.result is not None]
    good = [cell for cell in results if _is_good(cell)]
    counts = [
        f"{number:,} {_WORDS[Standing(standing)].lower()}"
        for standing, number in found.counts.items()
        if number and standing != Standing.CURRENT.value
    ]
    is_good = bool(results) and len(good) == len(results)
    if not results:
        verdict = "No run has completed yet"
    elif is_good:
        verdict = f"All {words.counted(len(results), 'result')} are current and tie"
        verdict = "The one result is current and ties" if len(results) == 1 else verdict
    else:
        verdict = f"{len(good):,} of {words.counted(len(results), 'result')} are current and tie"
    return is_good, verdict, ", ".join(counts)


def _is_good(cell: Cell) -> bool:
    result = cell.result
    return cell.standing is Standing.CURRENT and result is not None and result.ties is True and not result.failed_checks


def _word(cell: Cell) -> str:
    if cell.standing is Standing.RUNNING and cell.newest_status in _WAITING:
        return "Waiting"
    if cell.standing is Standing.RUNNING and cell.newest_status is RunStatus.PAUSED:
        return "Paused"
    return _WORDS[cell.standing]


def _line(project: ProjectStanding) -> MatrixLine:
    note = {"modified": f"v{project.version}, edited since", "gone": "no longer in the workspace"}.get(project.state)
    version = f"v{project.version}" if project.version is not None else ""
    return MatrixLine(
        project.project,
        project.name,
        addresses.project(project.project) if project.state != "gone" else addresses.runs(project=project.project),
        note or (version if project.state == "active" else f"{project.state} {version}".strip()),
        tuple(_cell(project, cell) for cell in project.cells),
    )


def _cell(project: ProjectStanding, cell: Cell) -> OverviewCell:
    word, note = _word(cell), _note(cell)
    return OverviewCell(
        standing=cell.standing.value,
        word=word,
        note=note,
        address=_address(cell),
        label=f"{project.project} {cell.period}: {word.lower()}{', ' if note else ''}{note}",
    )


def _address(cell: Cell) -> str | None:
    """The run that counts; the newest one where that is what matters."""
    if cell.standing in {Standing.FAILED, Standing.RUNNING} or cell.result is None:
        return addresses.run(cell.newest) if cell.newest is not None else None
    return addresses.run(cell.result.run_id)


def _note(cell: Cell) -> str:
    result = cell.result
    if result is None:
        return "cancelled" if cell.newest_status is RunStatus.CANCELLED else ""
    if cell.standing in {Standing.FAILED, Standing.RUNNING}:
        return "an earlier result counts"
    if cell.reasons:
        kinds = {each.kind for each in cell.reasons}
        return " and ".join(_KINDS[kind] for kind in ("project", "input", "output") if kind in kinds)
    return _proof(result)


_KINDS = {"project": "project edited", "input": "input changed", "output": "rows replaced"}


def _proof(result: Result) -> str:
    if result.failed_checks:
        return words.counted(len(result.failed_checks), "check") + " failed"
    if result.ties is None:
        return ""
    return "ties" if result.ties else "does not tie"


def _attention(project: ProjectStanding) -> Iterator[Attention]:
    for cell in project.cells:
        texts = [each.text for each in cell.reasons]
        result = cell.result
        if result is not None and result.ties is False:
            texts.append("a control total does not tie")
        if result is not None and result.failed_checks:
            texts.append(f"failed checks: {', '.join(result.failed_checks)}")
        if cell.standing is Standing.FAILED:
            texts.insert(0, "the newest run has failed" + ("; an earlier result counts" if result else ""))
        if texts:
            yield Attention(
                project.project,
                cell.period,
                cell.standing.value,
                _word(cell),
                _address(cell),
                addresses.project(project.project),
                tuple(texts),
            )


def _group(project: ProjectStanding, *, may_read_rows: bool) -> FigureGroup:
    """Rows, control totals at the last output that has them, and checks."""
    results = [cell.result for cell in project.cells]
    names = dict.fromkeys(control.name for result in results if result is not None for control in result.controls)
    lines = [
        FigureLine("Rows written", is_amount=False, cells=tuple(map(_rows, results))),
        *(
            FigureLine(name, is_amount=True, cells=tuple(_amount(each, name, may_read_rows) for each in results))
            for name in names
        ),
        FigureLine("Ties", is_amount=False, cells=tuple(_ties(each, may_read_rows) for each in results)),
    ]
    if any(result is not None and result.checks for result in results):
        lines.append(FigureLine("Checks", is_amount=False, cells=tuple(map(_checks, results))))
    known = tuple(line for line in lines if any(cell.text for cell in line.cells))
    return FigureGroup(project.project, known)


_NOTHING = FigureCell("", None)


def _rows(result: Result | None) -> FigureCell:
    if result is None or result.rows_written is None:
        return _NOTHING
    return FigureCell(f"{result.rows_written:,}", addresses.run(result.run_id))


def _amount(result: Result | None, name: str, may_read_rows: bool) -> FigureCell:
    written = [each.written for each in result.controls if each.name == name] if result is not None else []
    if result is None or not written:
        return _NOTHING
    address = addresses.reconciliation(result.run_id) if may_read_rows else addresses.run(result.run_id)
    return FigureCell(f"{Decimal(written[-1]):,f}", address)


def _ties(result: Result | None, may_read_rows: bool) -> FigureCell:
    if result is None or result.ties is None:
        return _NOTHING
    address = addresses.reconciliation(result.run_id) if may_read_rows else addresses.run(result.run_id)
    return FigureCell("yes" if result.ties else "no", address, is_bad=not result.ties)


def _checks(result: Result | None) -> FigureCell:
    if result is None or not result.checks:
        return _NOTHING
    failed = len(result.failed_checks)
    text = f"{failed} of {result.checks} failed" if failed else f"all {result.checks} passed"
    return FigureCell(text, addresses.run(result.run_id), is_bad=bool(failed))
