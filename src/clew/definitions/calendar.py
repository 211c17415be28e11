"""Calendars: the levels of time and the periods on them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta

from clew.definitions.nodes import Node, node_at
from clew.definitions.path_segments import NOT_A_SEGMENT, is_path_segment
from clew.definitions.shapes import DAY, NAME, SLUG, TEXT, Definition, ListOf, Located, Record, Whole, key, record
from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes.workspace import DUPLICATE_ID, INVALID_VALUE, UNKNOWN_PERIOD

GENERATED_LEVELS = ("year", "quarter", "month")
"""The levels that `generate` knows, coarse to fine."""

_MOST_YEARS = 200


@record("a period")
class Period(Located):
    """A stretch of time that a run can be for. Both dates belong to it."""

    identifier: str = key(NAME, 'What the period is called, such as "2026-01".')
    level: str = key(NAME, "The calendar level of the period.")
    parent: str | None = key(
        NAME, "The identifier of the parent, the period of a coarser level that this one is part of.", default=None
    )
    start_date: date = key(DAY, "The first day.")
    end_date: date = key(DAY, "The last day.")

    def check(self) -> Iterator[Diagnostic]:
        """The period does not end before it starts, and its identifier can stand in a path."""
        if not is_path_segment(self.identifier):
            problem = f'"{self.identifier}" cannot identify a period'
            yield INVALID_VALUE.at(self.place("identifier"), problem=problem, hint=NOT_A_SEGMENT)
        if self.end_date < self.start_date:
            problem = f'the period "{self.identifier}" ends on {self.end_date}, before it starts on {self.start_date}'
            yield INVALID_VALUE.at(self.place("end_date"), problem=problem, hint="swap the two dates")


@record("a generator of periods")
class Generate(Located):
    """Creates the periods of whole years."""

    first_year: int = key(Whole(1, 9999), "The first year.")
    last_year: int = key(Whole(1, 9999), "The last year.")

    def check(self) -> Iterator[Diagnostic]:
        """The years are in order and not too many."""
        if self.last_year < self.first_year:
            problem = f"the last year, {self.last_year}, is before the first, {self.first_year}"
            yield INVALID_VALUE.at(self.place("last_year"), problem=problem, hint="swap the two years")
        elif self.last_year - self.first_year >= _MOST_YEARS:
            problem = f"a calendar may generate {_MOST_YEARS} years, not {self.last_year - self.first_year + 1}"
            yield INVALID_VALUE.at(self.place("last_year"), problem=problem, hint="choose fewer years")


@record("a calendar")
class Calendar(Definition):
    """The periods that runs can be for, on levels such as year, quarter and month."""

    id: str = key(SLUG, "The id, unique among calendars.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    description: str = key(TEXT, "What the calendar is for.", default="")
    levels: tuple[str, ...] = key(
        ListOf(NAME, "levels", at_least=1), "The levels, coarse to fine.", default=GENERATED_LEVELS
    )
    periods: tuple[Period, ...] = key(ListOf(Record(Period), "periods"), "Periods written out.", default=())
    generate: Generate | None = key(
        Record(Generate),
        'Creates the years "2026", quarters "2026-Q1" and months "2026-01" of whole years.',
        default=None,
    )

    def check(self) -> Iterator[Diagnostic]:
        """Levels, parents and dates fit together."""
        yield from _problems_of_levels(self)
        if self.generate is not None and any(self.generate.check()):
            return
        periods = periods_of(self)
        yield from _duplicates(periods)
        yield from _problems_of_parents(self, periods)
        yield from _overlaps(period for period in periods if not any(period.check()))


def periods_of(calendar: Calendar) -> tuple[Period, ...]:
    """All periods of a calendar, the generated ones first, each level in the order of time."""
    return (*_generated(calendar), *calendar.periods)


@dataclass(frozen=True, slots=True)
class PeriodTree:
    """Periods by identifier, with the ones above and below each."""

    periods: tuple[Period, ...]
    _by_identifier: Mapping[str, Period] = field(init=False, repr=False, compare=False)
    _children: Mapping[str, Sequence[Period]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        children: dict[str, list[Period]] = {}
        for period in self.periods:
            if period.parent is not None:
                children.setdefault(period.parent, []).append(period)
        object.__setattr__(self, "_by_identifier", {period.identifier: period for period in reversed(self.periods)})
        object.__setattr__(self, "_children", children)

    def period(self, identifier: str) -> Period | None:
        """The period of this identifier."""
        return self._by_identifier.get(identifier)

    def children(self, identifier: str) -> tuple[Period, ...]:
        """The periods directly below."""
        return tuple(self._children.get(identifier, ()))

    def descendants(self, identifier: str) -> tuple[Period, ...]:
        """All periods below, each before its own children."""
        return tuple(self._below(identifier, frozenset({identifier})))

    def ancestors(self, identifier: str) -> tuple[Period, ...]:
        """The periods above, nearest first."""
        found: list[Period] = []
        period = self.period(identifier)
        while period is not None and period.parent is not None:
            period = self.period(period.parent)
            if period is None or period in found:
                break
            found.append(period)
        return tuple(found)

    def _below(self, identifier: str, above: frozenset[str]) -> Iterator[Period]:
        for child in self.children(identifier):
            if child.identifier not in above:
                yield child
                yield from self._below(child.identifier, above | {child.identifier})


def _generated(calendar: Calendar) -> Iterator[Period]:
    if calendar.generate is None:
        return
    node = node_at(calendar.node, ("generate",))
    levels = [level for level in GENERATED_LEVELS if level in calendar.levels]
    for level in levels:
        coarser = [other for other in levels if GENERATED_LEVELS.index(other) < GENERATED_LEVELS.index(level)]
        for year in range(calendar.generate.first_year, calendar.generate.last_year + 1):
            yield from _of_year(year, level, coarser[-1] if coarser else None, node)


def _of_year(year: int, level: str, parent_level: str | None, node: Node) -> Iterator[Period]:
    months_each = {"year": 12, "quarter": 3, "month": 1}[level]
    for first_month in range(1, 13, months_each):
        yield Period(
            identifier=_identifier(year, first_month, level),
            level=level,
            parent=_identifier(year, first_month, parent_level) if parent_level else None,
            start_date=date(year, first_month, 1),
            end_date=_last_day(year, first_month + months_each - 1),
            node=node,
        )


def _identifier(year: int, month: int, level: str) -> str:
    match level:
        case "year":
            return f"{year:04}"
        case "quarter":
            return f"{year:04}-Q{(month + 2) // 3}"
        case _:
            return f"{year:04}-{month:02}"


def _last_day(year: int, month: int) -> date:
    return date(year, 12, 31) if month == 12 else date(year, month + 1, 1) - timedelta(days=1)


def _problems_of_levels(calendar: Calendar) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for position, level in enumerate(calendar.levels):
        if level in seen:
            problem = f'duplicate level "{level}"'
            yield INVALID_VALUE.at(calendar.place("levels", position), problem=problem, hint="remove one")
        seen.add(level)
    for period in calendar.periods:
        if period.level not in calendar.levels:
            problem = f'the calendar has no level "{period.level}"; its levels are {", ".join(calendar.levels)}'
            hint = did_you_mean(period.level, calendar.levels) or "correct the level, or add it to `levels`"
            yield INVALID_VALUE.at(period.place("level"), problem=problem, hint=hint)
    if calendar.generate is not None and not set(calendar.levels) & set(GENERATED_LEVELS):
        problem = (
            f"periods can be generated for the levels {', '.join(GENERATED_LEVELS)} only; the calendar has none of them"
        )
        yield INVALID_VALUE.at(calendar.place_of_key("generate"), problem=problem, hint="write the periods out")


def _duplicates(periods: Iterable[Period]) -> Iterator[Diagnostic]:
    first: dict[str, Period] = {}
    for period in periods:
        known = first.setdefault(period.identifier, period)
        if known is not period:
            where = str(known.span)
            yield DUPLICATE_ID.at(period.place("identifier"), kind="period", id=period.identifier, first=where)


def _problems_of_parents(calendar: Calendar, periods: tuple[Period, ...]) -> Iterator[Diagnostic]:
    by_identifier = {period.identifier: period for period in reversed(periods)}
    for period in periods:
        if period.parent is None:
            continue
        parent = by_identifier.get(period.parent)
        if parent is None:
            hint = did_you_mean(period.parent, by_identifier)
            yield UNKNOWN_PERIOD.at(period.place("parent"), name=period.parent, hint=hint)
        elif not any(period.check()) and not any(parent.check()):
            yield from _misfits(calendar, period, parent)


def _misfits(calendar: Calendar, period: Period, parent: Period) -> Iterator[Diagnostic]:
    levels = calendar.levels
    if period.level in levels and parent.level in levels and levels.index(parent.level) >= levels.index(period.level):
        problem = f'the parent "{parent.identifier}" has the level {parent.level}, which is not above {period.level}'
        yield INVALID_VALUE.at(period.place("parent"), problem=problem, hint="name a period of a coarser level")
    elif not (parent.start_date <= period.start_date and period.end_date <= parent.end_date):
        problem = (
            f'"{period.identifier}" ({period.start_date} to {period.end_date}) is not within its parent '
            f'"{parent.identifier}" ({parent.start_date} to {parent.end_date})'
        )
        yield INVALID_VALUE.at(period.place("parent"), problem=problem, hint="correct the dates or the parent")


def _overlaps(periods: Iterable[Period]) -> Iterator[Diagnostic]:
    """Periods of one level must not share a day: a row belongs to one of them."""
    latest: dict[str, Period] = {}
    for period in sorted(periods, key=lambda each: (each.start_date, each.end_date)):
        before = latest.get(period.level)
        if before is not None and period.start_date <= before.end_date and period.identifier != before.identifier:
            problem = f'"{period.identifier}" overlaps "{before.identifier}", which ends on {before.end_date}'
            yield INVALID_VALUE.at(period.place("start_date"), problem=problem, hint="correct the dates")
        if before is None or period.end_date > before.end_date:
            latest[period.level] = period
