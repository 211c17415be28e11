"""Calendars: the levels of time and the periods on them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import date
from enum import StrEnum

from clew.deferred import dataclass
from clew.definitions import fiscal_years
from clew.definitions.fiscal_years import Stretch
from clew.definitions.nodes import node_at
from clew.definitions.path_segments import NOT_A_SEGMENT, is_path_segment
from clew.definitions.shapes import (
    DAY,
    NAME,
    SLUG,
    TEXT,
    Choice,
    Definition,
    ListOf,
    Located,
    Record,
    Whole,
    key,
    record,
)
from clew.diagnostics import Diagnostic, did_you_mean
from clew.diagnostics.codes.workspace import DUPLICATE_ID, INVALID_VALUE, UNKNOWN_PERIOD

DEFAULT_LEVELS = ("year", "quarter", "month")
"""The levels of a calendar that does not list them."""

GENERATED_LEVELS = ("year", "quarter", "month", "period", "week", "day")
"""The levels that `generate` knows, coarse to fine. `period` is for thirteen periods instead of months."""

_MOST_YEARS_OF_DAYS = 20

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


class Pattern(StrEnum):
    """How a year is divided."""

    MONTHS = "months"
    W445 = "4-4-5"
    W454 = "4-5-4"
    W544 = "5-4-4"
    W13 = "13-periods"


class Weekday(StrEnum):
    """A day of the week."""

    MONDAY = "monday"
    TUESDAY = "tuesday"
    WEDNESDAY = "wednesday"
    THURSDAY = "thursday"
    FRIDAY = "friday"
    SATURDAY = "saturday"
    SUNDAY = "sunday"


class End(StrEnum):
    """Which day of the week at the end of a month ends a year of weeks."""

    LAST = "last"
    NEAREST = "nearest"


@record("a generator of periods")
class Generate(Located):
    """Creates the periods of whole years."""

    first_year: int = key(Whole(1, 9999), "The first year.")
    last_year: int = key(Whole(1, 9999), "The last year.")
    start_month: int = key(
        Whole(1, 12),
        "The month in which fiscal years begin; a year that does not begin in January is named by the year it ends in.",
        default=1,
    )
    pattern: Pattern = key(
        Choice(Pattern),
        "months (the default), or years of 52 or 53 weeks: periods of 4-4-5, 4-5-4 or 5-4-4 weeks, or 13-periods.",
        default=Pattern.MONTHS,
    )
    ends_on: Weekday | None = key(
        Choice(Weekday), "For years of weeks: the day of the week on which they end.", default=None
    )
    ends: End | None = key(
        Choice(End),
        "For years of weeks: on the last such day of the month before start_month (the default), or nearest its end.",
        default=None,
    )

    @property
    def has_own_years(self) -> bool:
        """Whether its years are not those of the calendar."""
        return self.start_month != 1 or self.pattern is not Pattern.MONTHS

    def check(self) -> Iterator[Diagnostic]:
        """The years are in order and not too many, and weeks say where years end."""
        if self.pattern is not Pattern.MONTHS and self.ends_on is None:
            hint = "add the day of the week on which years end, such as ends_on: saturday"
            yield INVALID_VALUE.at(self.place("pattern"), problem="a pattern of weeks needs ends_on", hint=hint)
        for name, given in (("ends_on", self.ends_on), ("ends", self.ends)):
            if given is not None and self.pattern is Pattern.MONTHS:
                problem = f"{name} is for patterns of weeks only"
                hint = "remove it, or add a pattern such as 4-4-5"
                yield INVALID_VALUE.at(self.place_of_key(name), problem=problem, hint=hint)
        for name, year in (("first_year", self.first_year), ("last_year", self.last_year)):
            if self.has_own_years and not 2 <= year <= 9998:
                yield INVALID_VALUE.at(
                    self.place(name), problem=f"a fiscal year lies between 2 and 9998, not in {year}", hint=None
                )
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
        ListOf(NAME, "levels", at_least=1), "The levels, coarse to fine.", default=DEFAULT_LEVELS
    )
    periods: tuple[Period, ...] = key(ListOf(Record(Period), "periods"), "Periods written out.", default=())
    generate: Generate | None = key(
        Record(Generate),
        'Creates the years "2026", quarters "2026-Q1", months "2026-01", weeks "2026-W01" and days of whole years, and'
        ' those of fiscal years: "FY2026", "FY2026-Q1", "FY2026-P01", "FY2026-W01".',
        default=None,
    )
    holidays: tuple[date, ...] = key(
        ListOf(DAY, "days"), 'Days on which nobody works: WORKDAY(day, 2, HOLIDAYS("ID")) skips them.', default=()
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
    """Levels below the year that have periods written out are left to those who wrote them."""
    generate = calendar.generate
    if generate is None:
        return
    node = node_at(calendar.node, ("generate",))
    written = {period.level for period in calendar.periods} & {"period", "week", "day"}
    levels = [level for level in _levels_of(generate) if level in calendar.levels and level not in written]
    years = {year: _year(generate, year, levels) for year in range(generate.first_year, generate.last_year + 1)}
    for level in levels:
        coarser = [other for other in levels if GENERATED_LEVELS.index(other) < GENERATED_LEVELS.index(level)]
        if generate.pattern is Pattern.MONTHS:  # such weeks go over the bounds of months and years
            coarser = [] if level == "week" else [other for other in coarser if other != "week"]
        for stretches in years.values():
            above = stretches[coarser[-1]] if coarser else {}
            parents = iter(above.items())
            parent = next(parents, None)
            for identifier, stretch in stretches[level].items():
                while parent is not None and parent[1][1] < stretch[0]:
                    parent = next(parents, None)
                yield Period(
                    identifier=identifier,
                    level=level,
                    parent=parent[0] if parent else None,
                    start_date=stretch[0],
                    end_date=stretch[1],
                    node=node,
                )


def _levels_of(generate: Generate) -> tuple[str, ...]:
    """The levels that a pattern has: thirteen periods form neither quarters nor months."""
    if generate.pattern is Pattern.W13:
        return ("year", "period", "week", "day")
    return ("year", "quarter", "month", "week", "day")


def _year(generate: Generate, year: int, levels: Sequence[str]) -> dict[str, dict[str, Stretch]]:
    """The periods of a year by level and identifier, in the order of time."""
    name = f"FY{year:04}" if generate.has_own_years else f"{year:04}"
    if generate.pattern is Pattern.MONTHS:
        months = fiscal_years.months_of(year, generate.start_month)
        named = {f"{begin:%Y-%m}": (begin, end) for begin, end in months}
        weeks = fiscal_years.iso_weeks_of((months[0][0], months[-1][1])) if "week" in levels else {}
    else:
        weekday = fiscal_years.DAYS.index((generate.ends_on or Weekday.SUNDAY).value)
        end_month = (generate.start_month - 2) % 12 + 1
        whole = fiscal_years.weeks_of(year, end_month, weekday, nearest=generate.ends is End.NEAREST)
        months = fiscal_years.periods_of_weeks(whole, generate.pattern.value)
        named = {f"{name}-P{number:02}": stretch for number, stretch in enumerate(months, 1)}
        weeks = {f"{name}-W{number:02}": week for number, week in enumerate(whole, 1)}
    quarters = fiscal_years.joined(months, [0, 3, 6, 9, 12])
    whole_year = (months[0][0], months[-1][1])
    days = fiscal_years.days_of(whole_year) if "day" in levels else ()
    return {
        "year": {name: whole_year},
        "quarter": {f"{name}-Q{number}": quarter for number, quarter in enumerate(quarters, 1)},
        "month": named,
        "period": named,
        "week": weeks,
        "day": {day.isoformat(): (day, day) for day in days},
    }


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
    if calendar.generate is None:
        return
    known = _levels_of(calendar.generate)
    years = calendar.generate.last_year - calendar.generate.first_year + 1
    if "day" in calendar.levels and years > _MOST_YEARS_OF_DAYS:
        problem = f"a calendar may generate the days of {_MOST_YEARS_OF_DAYS} years, not of {years}"
        yield INVALID_VALUE.at(calendar.place_of_key("generate"), problem=problem, hint="choose fewer years")
    if not set(calendar.levels) & set(known):
        problem = f"periods can be generated for the levels {', '.join(known)} only; the calendar has none of them"
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
