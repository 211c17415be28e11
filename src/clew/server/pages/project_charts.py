"""Charts of a project: what its results amount to by period, and how long its runs took."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal

from clew.api.overview import Cell, Overview
from clew.deferred import dataclass
from clew.events.snapshot import RunStatus
from clew.runs.request import RunRecord
from clew.server.pages import addresses, words

MOST_BARS = 30
CHART_PERIODS = 12
HEIGHT = 64
STEP = 20
"""The room of a bar, in units of the picture."""
_ROOM = 12
"""Bars that fit at least, so that few of them are not broad."""
_FEWEST = 2
"""One bar says nothing that its number does not."""


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A bar, and the line of the table that says the same."""

    label: str
    text: str
    address: str | None
    kind: str
    """Its colour."""
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars from left to right, as time goes."""

    title: str
    of: str
    """What a bar stands for."""
    bars: tuple[ChartBar, ...]
    width: int
    height: int
    zero: int
    """Where bars begin: above it they are positive."""

    @property
    def first(self) -> str:
        """Where the picture begins, in short."""
        return self.bars[0].label.partition(", ")[0]

    @property
    def last(self) -> str:
        """Where it ends."""
        return self.bars[-1].label.partition(", ")[0]

    @property
    def described(self) -> str:
        """All bars in words."""
        return f"{self.title}: " + "; ".join(f"{bar.label}: {bar.text}" for bar in self.bars)


@dataclass(frozen=True, slots=True)
class ChartPoint:
    """A value with its name."""

    label: str
    value: Decimal
    text: str
    address: str | None
    kind: str = ""


def charts_of(overview: Overview, runs: Sequence[RunRecord]) -> tuple[Chart, ...]:
    """The charts of a project. Those with a single bar are left out."""
    cells = [cell for project in overview.projects for cell in reversed(project.cells) if cell.result is not None]
    names = dict.fromkeys(each.name for cell in cells if cell.result for each in cell.result.controls)
    found = [
        chart("Rows written", "period", list(_rows(cells))),
        *(chart(name, "period", list(_amounts(cells, name))) for name in names),
        chart("Duration of runs", "run", list(_durations(runs))),
    ]
    return tuple(each for each in found if len(each.bars) >= _FEWEST)


def chart(title: str, of: str, points: Sequence[ChartPoint]) -> Chart:
    """Values as bars, the largest of which fills the height."""
    most = max([Decimal(0), *(point.value for point in points)])
    least = min([Decimal(0), *(point.value for point in points)])
    span = (most - least) or Decimal(1)
    zero = round(HEIGHT * most / span)
    bars = list[ChartBar]()
    for number, point in enumerate(points):
        height = round(HEIGHT * abs(point.value) / span)
        height = max(1, height) if point.value else 0
        y = zero - height if point.value > 0 else zero
        kind = point.kind or ("negative" if point.value < 0 else "")
        bars.append(ChartBar(point.label, point.text, point.address, kind, number * STEP, y, height))
    return Chart(title, of, tuple(bars), max(_ROOM, len(points)) * STEP, HEIGHT, zero)


def _rows(cells: Sequence[Cell]) -> Iterator[ChartPoint]:
    for cell in cells:
        result = cell.result
        if result is not None and result.rows_written is not None:
            rows = result.rows_written
            yield ChartPoint(cell.period, Decimal(rows), f"{rows:,}", addresses.run(result.run_id))


def _amounts(cells: Sequence[Cell], name: str) -> Iterator[ChartPoint]:
    """A control total at the last output that has it."""
    for cell in cells:
        result = cell.result
        written = [] if result is None else [each.written for each in result.controls if each.name == name]
        if result is not None and written:
            value = Decimal(written[-1])
            yield ChartPoint(cell.period, value, f"{value:,f}", addresses.run(result.run_id))


def _durations(runs: Sequence[RunRecord]) -> Iterator[ChartPoint]:
    """From start to end, also of runs that failed; the newest of the runs come last."""
    for run in reversed(runs[:MOST_BARS]):
        if run.started_at is None or run.completed_at is None:
            continue
        span = max(run.completed_at - run.started_at, timedelta())
        failed = run.status is RunStatus.FAILED
        text = words.duration(span) + (", failed" if failed else "")
        label = f"{run.request.period}, {words.minute(run.created_at)}"
        seconds = Decimal(str(span.total_seconds()))
        yield ChartPoint(label, seconds, text, addresses.run(run.run_id), "failed" if failed else "")
