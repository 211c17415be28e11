"""Captures: the list, one capture with its statistics, and a comparison of two."""

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from math import isfinite

from clew.api.capture import Capture
from clew.captures.differences import CaptureDiff, ColumnPair, RowChange, ValueChange
from clew.captures.statistics import Bin, ColumnStatistics, Statistics
from clew.deferred import dataclass
from clew.lang.typed import Value
from clew.lang.types import Kind, parse_type
from clew.server.pages import addresses, words
from clew.server.pages.words import ValueCell
from clew.trace.json_values import JsonValue

_NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
PLOT_WIDTH, PLOT_HEIGHT = 240, 56
SAMPLE = 50
_LARGE, _TINY = 1000, 1e-9


@dataclass(frozen=True, slots=True)
class CaptureLine:
    """A capture in the list."""

    capture_id: str
    address: str
    breakpoint: str
    status: str
    mode: str
    rows: int | None
    run: str
    run_address: str
    created: str
    expires: str
    note: str


@dataclass(frozen=True, slots=True)
class CapturesPage:
    """All captures."""

    lines: tuple[CaptureLine, ...]


@dataclass(frozen=True, slots=True)
class PlotBar:
    """A bar of a histogram."""

    x: float
    y: float
    width: float
    height: float
    title: str


@dataclass(frozen=True, slots=True)
class TopLine:
    """A frequent value, and its share of all rows."""

    cell: ValueCell
    count: int
    length: float


@dataclass(frozen=True, slots=True)
class ColumnPlot:
    """A column with its statistics and a plot."""

    name: str
    type: str
    filled: str
    distinct: str
    low: ValueCell
    high: ValueCell
    mean: str
    median: str
    bars: tuple[PlotBar, ...]
    top: tuple[TopLine, ...]


@dataclass(frozen=True, slots=True)
class SampleColumn:
    """The heading of a column."""

    name: str
    is_number: bool


@dataclass(frozen=True, slots=True)
class CapturePage:
    """A capture."""

    line: CaptureLine
    facts: tuple[tuple[str, str], ...]
    columns: tuple[ColumnPlot, ...]
    counted: str
    """How many rows the statistics cover, if they do not cover the whole capture."""
    sample_head: tuple[SampleColumn, ...]
    sample: tuple[tuple[ValueCell, ...], ...]
    others: tuple[CaptureLine, ...]
    """Captures to compare it with."""
    problem: str | None
    """Why there is nothing to show."""
    files: tuple[tuple[str, str], ...]
    """The formats in which its rows can be downloaded, with addresses."""


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column on both sides."""

    name: str
    changed: int
    before: ColumnPlot | None
    after: ColumnPlot | None


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value on both sides, and the address of its explanation in the later run."""

    name: str
    before: ValueCell
    after: ValueCell
    address: str | None


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that differs, and its key."""

    key: str
    columns: tuple[ChangedValue, ...]
    histories: tuple[tuple[str, str], ...]
    """Its history in each run: names and addresses."""


@dataclass(frozen=True, slots=True)
class OneSided:
    """Rows that are in only one of two captures."""

    head: tuple[SampleColumn, ...]
    rows: tuple[tuple[str | None, tuple[ValueCell, ...]], ...]
    """The address of the history of each row, and its values."""


@dataclass(frozen=True, slots=True)
class DiffPage:
    """A comparison of two captures."""

    before: CaptureLine
    after: CaptureLine
    key: str
    figures: tuple[tuple[str, int], ...]
    is_same: bool
    columns: tuple[ComparedColumn, ...]
    changed: tuple[ChangedRow, ...]
    added: OneSided
    removed: OneSided
    shown: int
    """How many rows of each kind are shown at most."""
    more: tuple[str, int] | None
    """The address of the page that shows more of them, and how many."""

    @property
    def is_one_point(self) -> bool:
        """Whether both captures are of the same breakpoint."""
        return self.before.breakpoint == self.after.breakpoint


def captures_page(found: Sequence[Capture]) -> CapturesPage:
    """The list of captures, newest first."""
    return CapturesPage(tuple(map(capture_line, found)))


def capture_page(
    capture: Capture,
    statistics: Statistics | None,
    sample: tuple[Sequence[str], Sequence[Sequence[Value]]],
    others: Sequence[Capture],
    problem: str | None,
) -> CapturePage:
    """A capture with its statistics and some of its rows."""
    names, rows = sample
    line = capture_line(capture)
    alike = (capture_line(other) for other in others if other.id != capture.id and other.status == "ready")
    return CapturePage(
        line=line,
        facts=_facts(capture),
        columns=tuple(_plot(column) for column in statistics.columns) if statistics else (),
        sample_head=_sample_head(names, statistics),
        sample=tuple(tuple(words.cell(value) for value in row) for row in rows),
        files=tuple((name, addresses.capture_file(capture.id, format_)) for format_, name in words.FORMATS),
        counted=_counted(line, statistics),
        # Captures of the same mode come first, since people compare those.
        others=tuple(sorted(alike, key=lambda other: other.mode != line.mode)),
        problem=problem,
    )


def in_order_of_time(one: Capture, other: Capture) -> tuple[Capture, Capture]:
    """Two captures, the earlier one first; of one run, that of the earlier step."""
    first, second = sorted((one, other), key=_moment)
    return first, second


def _moment(capture: Capture) -> tuple[object, int, str]:
    manifest = capture.record.outcome.manifest
    return capture.record.created_at, manifest.seq if manifest else 0, capture.id


def diff_page(before: Capture, after: Capture, diff: CaptureDiff, asked: "AskedDiff") -> DiffPage:
    """The differences between two captures."""
    numbers = _numbers([each for pair in diff.columns for each in (pair.before, pair.after) if each])
    most = max(diff.changed, diff.added, diff.removed)
    offered = next((count for count in EXAMPLES if count > asked.examples), None)
    more = None
    if most > asked.examples and offered is not None:
        more = addresses.capture(asked.capture_id, other=asked.other, examples=offered), min(offered, most)
    return DiffPage(
        before=capture_line(before),
        after=capture_line(after),
        key=", ".join(diff.key),
        figures=(
            ("the same", diff.same),
            ("changed", diff.changed),
            ("added", diff.added),
            ("removed", diff.removed),
        ),
        is_same=diff.is_same,
        columns=tuple(_compared(pair) for pair in diff.columns),
        changed=tuple(_changed(row, numbers, before, after) for row in diff.examples_changed),
        added=_one_sided(diff.examples_added, numbers, lambda change: change.after, _history(after)),
        removed=_one_sided(diff.examples_removed, numbers, lambda change: change.before, _history(before)),
        shown=asked.examples,
        more=more,
    )


EXAMPLES = (10, 100, 1_000, 10_000)


@dataclass(frozen=True, slots=True)
class AskedDiff:
    """What the page of a comparison was asked for."""

    capture_id: str
    other: str
    examples: int


def _history(capture: Capture) -> Callable[[str | None], str | None]:
    """The address of the history of a row of the run of a capture."""
    manifest = capture.record.outcome.manifest
    at = manifest.seq if manifest else None

    def address(row_id: str | None) -> str | None:
        return None if row_id is None else addresses.row(capture.record.run_id, row_id, at=at)

    return address


def capture_line(capture: Capture) -> CaptureLine:
    """A capture as one line."""
    record = capture.record
    manifest = record.outcome.manifest
    error = record.outcome.error
    return CaptureLine(
        capture_id=capture.id,
        address=addresses.capture(capture.id),
        breakpoint=capture.breakpoint,
        status=capture.status,
        mode=words.capture_mode(manifest.mode if manifest else record.request.mode if record.request else None),
        rows=manifest.rows if manifest else None,
        run=words.short(record.run_id),
        run_address=addresses.run(record.run_id),
        created=words.minute(record.created_at),
        expires=words.minute(record.expires_at),
        note=words.drop_reason(record.outcome.drop_reason) or (error.message if error else ""),
    )


def _numbers(columns: Sequence[ColumnStatistics]) -> frozenset[str]:
    return frozenset(column.name for column in columns if parse_type(column.type).kind in _NUMBERS)


def _sample_head(names: Sequence[str], statistics: Statistics | None) -> tuple[SampleColumn, ...]:
    numbers = _numbers(statistics.columns) if statistics else frozenset[str]()
    return tuple(SampleColumn(name, name in numbers) for name in names)


def _counted(line: CaptureLine, statistics: Statistics | None) -> str:
    if statistics is None or line.rows in {None, statistics.rows}:
        return ""
    return (
        f"These statistics cover {words.counted(statistics.rows, 'row')}; rows that were already deleted are left out."
    )


def _facts(capture: Capture) -> tuple[tuple[str, str], ...]:
    manifest = capture.record.outcome.manifest
    if manifest is None:
        return ()
    found = [
        ("project", manifest.project),
        ("period", manifest.period),
        ("after step", str(manifest.seq)),
        ("kept", words.capture_mode(manifest.mode)),
        ("rows", f"{manifest.rows:,}"),
        ("size", words.size(manifest.size)),
    ]
    if manifest.asked is not manifest.mode:
        found.append(("requested", words.capture_mode(manifest.asked)))
    return tuple(found)


def _plot(column: ColumnStatistics) -> ColumnPlot:
    is_number = parse_type(column.type).kind in _NUMBERS
    share = 1 - column.nulls / column.rows if column.rows else 0.0
    median = (column.quantiles or {}).get("p50")
    return ColumnPlot(
        name=column.name,
        type=column.type,
        filled=f"{share * 100:.0f} %",
        distinct=f"{column.distinct:,}",
        low=_cell(column.min, is_number=is_number),
        high=_cell(column.max, is_number=is_number),
        mean="" if column.mean is None else _cell(column.mean, is_number=True).text,
        median="" if median is None else _cell(median, is_number=is_number).text,
        bars=_bars(column.histogram, is_number=is_number),
        top=_top(column) if not column.histogram else (),
    )


def _bars(bins: Sequence[Bin], *, is_number: bool) -> tuple[PlotBar, ...]:
    most = max((each.count for each in bins), default=0)
    if not most:
        return ()
    width = PLOT_WIDTH / len(bins)
    return tuple(
        PlotBar(
            x=round(index * width + 0.5, 1),
            y=round(PLOT_HEIGHT * (1 - each.count / most), 1),
            width=round(width - 1, 1),
            height=round(PLOT_HEIGHT * each.count / most, 1),
            title=f"{_cell(each.low, is_number=is_number).text} to {_cell(each.high, is_number=is_number).text}: "
            f"{words.counted(each.count, 'row')}",
        )
        for index, each in enumerate(bins)
    )


def _top(column: ColumnStatistics) -> tuple[TopLine, ...]:
    most = max((each.count for each in column.top), default=0)
    return tuple(
        TopLine(words.cell(each.value), each.count, round(100 * each.count / most, 1) if most else 0.0)
        for each in column.top
    )


def _cell(value: JsonValue, *, is_number: bool) -> ValueCell:
    """A value in the statistics, which store decimals as text."""
    if is_number and isinstance(value, str):
        try:
            return words.cell(Decimal(value))
        except InvalidOperation:
            return words.cell(value)
    if isinstance(value, float):
        return ValueCell(_rounded(value), "number")
    return words.cell(value)


def _rounded(value: float) -> str:
    """A calculated number for people: two decimals if it is large, otherwise four significant digits."""
    if not isfinite(value) or value == 0:
        return f"{value:g}"
    if abs(value) >= _LARGE:
        return f"{value:,.2f}"
    text = f"{value:.4g}"
    return f"{Decimal(text):f}" if abs(value) >= _TINY else text


def _compared(pair: ColumnPair) -> ComparedColumn:
    return ComparedColumn(
        name=pair.name,
        changed=pair.changed,
        before=_plot(pair.before) if pair.before else None,
        after=_plot(pair.after) if pair.after else None,
    )


def _one_sided(
    rows: Sequence[RowChange],
    numbers: frozenset[str],
    value_of: Callable[[ValueChange], JsonValue],
    history: Callable[[str | None], str | None],
) -> OneSided:
    head = tuple(dict.fromkeys(name for row in rows for name in row.columns))

    def shown(row: RowChange, name: str) -> ValueCell:
        value = value_of(row.columns[name]) if name in row.columns else None
        return _cell(value, is_number=name in numbers)

    return OneSided(
        tuple(SampleColumn(name, name in numbers) for name in head),
        tuple((history(row.row_after or row.row_before), tuple(shown(row, name) for name in head)) for row in rows),
    )


def _changed(row: RowChange, numbers: frozenset[str], before: Capture, after: Capture) -> ChangedRow:
    key = ", ".join(f"{name} = {value}" for name, value in row.called_by.items())
    manifest = after.record.outcome.manifest
    at = manifest.seq if manifest else None
    columns = tuple(
        ChangedValue(
            name,
            _cell(change.before, is_number=name in numbers),
            _cell(change.after, is_number=name in numbers),
            addresses.explanation(after.record.run_id, row.row_after, name, at=at) if row.row_after else None,
        )
        for name, change in row.columns.items()
    )
    histories = ("before", _history(before)(row.row_before)), ("after", _history(after)(row.row_after))
    return ChangedRow(key, columns, tuple((name, address) for name, address in histories if address is not None))
