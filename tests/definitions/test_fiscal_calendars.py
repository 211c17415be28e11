"""Fiscal years, weeks and days that calendars generate, held against pandas and against the rules as published."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from itertools import pairwise

import pandas as pd  # type: ignore[import-untyped]
import pytest

from clew.definitions import LoadedWorkspace, Period, periods_of
from clew.definitions.fiscal_years import DAYS

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]


def generated(
    workspace_of: WorkspaceOf, generate: str, levels: str = "[year, quarter, month, week, day]"
) -> list[Period]:
    loaded = workspace_of({"calendars/c.yaml": f"id: c\nlevels: {levels}\ngenerate: {{{generate}}}\n"})
    assert loaded.diagnostics == ()
    return list(periods_of(loaded.workspace.calendars[0]))


def on(periods: list[Period], level: str) -> list[Period]:
    return [period for period in periods if period.level == level]


def weeks_in(period: Period) -> int:
    days = (period.end_date - period.start_date).days + 1
    assert days % 7 == 0
    return days // 7


def require_complete(periods: list[Period], levels: list[str]) -> None:
    """Each level follows itself without a gap, and lies in its parents."""
    by_identifier = {period.identifier: period for period in periods}
    for level in levels:
        for before, after in pairwise(on(periods, level)):
            assert after.start_date == before.end_date + timedelta(days=1)
        for period in on(periods, level):
            if period.parent is not None:
                parent = by_identifier[period.parent]
                assert parent.start_date <= period.start_date <= period.end_date <= parent.end_date


@pytest.mark.parametrize("start_month", range(1, 13))
def test_a_year_that_begins_with_a_month_is_that_of_pandas(workspace_of: WorkspaceOf, start_month: int) -> None:
    periods = generated(workspace_of, f"first_year: 2023, last_year: 2026, start_month: {start_month}")
    require_complete(periods, ["year", "quarter", "month", "day"])
    last_month = pd.Timestamp(2000, (start_month - 2) % 12 + 1, 1).strftime("%b").upper()
    years = {int(each.identifier.removeprefix("FY")): each for each in on(periods, "year")}
    for year, period in years.items():
        theirs = pd.Period(year=year, freq=f"Y-{last_month}")
        assert (period.start_date, period.end_date) == (theirs.start_time.date(), theirs.end_time.date())
    for quarter in on(periods, "quarter"):
        named = quarter.identifier.removeprefix("FY").split("-Q")
        theirs = pd.Period(year=int(named[0]), quarter=int(named[1]), freq=f"Q-{last_month}")
        assert (quarter.start_date, quarter.end_date) == (theirs.start_time.date(), theirs.end_time.date())
    for month in on(periods, "month"):
        assert month.identifier == month.start_date.strftime("%Y-%m")


@pytest.mark.parametrize("weekday", DAYS)
@pytest.mark.parametrize("ends", ["last", "nearest"])
@pytest.mark.parametrize("start_month", [1, 2, 9])
def test_a_year_of_weeks_ends_where_that_of_pandas_ends(
    workspace_of: WorkspaceOf, weekday: str, ends: str, start_month: int
) -> None:
    end = f"ends_on: {weekday}, ends: {ends}"
    text = f"first_year: 2010, last_year: 2030, start_month: {start_month}, pattern: 4-4-5, {end}"
    periods = generated(workspace_of, text, "[year, quarter, month, week]")
    require_complete(periods, ["year", "quarter", "month", "week"])
    end_month = (start_month - 2) % 12 + 1
    offset = pd.offsets.FY5253(weekday=DAYS.index(weekday), startingMonth=end_month, variation=ends)
    for year in on(periods, "year"):
        assert offset.is_on_offset(pd.Timestamp(year.end_date)), year
        assert abs((year.end_date - date(int(year.identifier[2:]), end_month, 28)).days) < 9
        assert weeks_in(year) in {52, 53}
    quarters = pd.offsets.FY5253Quarter(
        weekday=DAYS.index(weekday), startingMonth=end_month, variation=ends, qtr_with_extra_week=4
    )
    for quarter in on(periods, "quarter"):
        assert quarters.is_on_offset(pd.Timestamp(quarter.end_date)), quarter


@pytest.mark.parametrize(("pattern", "weeks"), [("4-4-5", [4, 4, 5]), ("4-5-4", [4, 5, 4]), ("5-4-4", [5, 4, 4])])
def test_periods_have_the_weeks_of_their_pattern_and_the_last_one_the_53rd(
    workspace_of: WorkspaceOf, pattern: str, weeks: list[int]
) -> None:
    """The year of the National Retail Federation: 2023 had 53 weeks and ended on 3 February 2024."""
    text = f"first_year: 2023, last_year: 2025, start_month: 2, pattern: {pattern}, ends_on: saturday, ends: nearest"
    periods = generated(workspace_of, text)
    for year, total in (("FY2023", 52), ("FY2024", 53), ("FY2025", 52)):
        months = [each for each in on(periods, "month") if each.identifier.startswith(year)]
        expected = weeks * 4
        expected[-1] += total - 52
        assert [weeks_in(each) for each in months] == expected
        assert sum(each.identifier.startswith(year) for each in on(periods, "week")) == total
    assert next(each for each in periods if each.identifier == "FY2024").end_date == date(2024, 2, 3)
    day = next(each for each in periods if each.identifier == "2024-02-03")
    assert day.parent == "FY2024-W53"


def test_thirteen_periods_have_four_weeks_each(workspace_of: WorkspaceOf) -> None:
    text = "first_year: 2023, last_year: 2024, start_month: 2, pattern: 13-periods, ends_on: saturday, ends: nearest"
    periods = generated(workspace_of, text, "[year, period, week]")
    require_complete(periods, ["year", "period", "week"])
    assert [weeks_in(each) for each in on(periods, "period")] == [4] * 25 + [5]
    assert on(periods, "period")[-1].identifier == "FY2024-P13"


def test_weeks_of_ordinary_years_are_those_of_iso_8601(workspace_of: WorkspaceOf) -> None:
    periods = generated(workspace_of, "first_year: 2020, last_year: 2026")
    require_complete(periods, ["year", "quarter", "month", "week", "day"])
    for week in on(periods, "week"):
        year, number, weekday = week.start_date.isocalendar()
        assert (week.identifier, weekday, week.parent) == (f"{year}-W{number:02}", 1, None)
    assert {day.parent for day in on(periods, "day") if day.identifier.startswith("2024-02")} == {"2024-02"}


def test_weeks_of_years_that_begin_with_a_month_go_with_the_days_of_these_years(workspace_of: WorkspaceOf) -> None:
    periods = generated(workspace_of, "first_year: 2021, last_year: 2026, start_month: 4", "[year, week]")
    require_complete(periods, ["year", "week"])
    weeks, years = on(periods, "week"), on(periods, "year")
    thursdays = [day for day in pd.date_range(years[0].start_date, years[-1].end_date) if day.dayofweek == 3]
    assert [week.identifier for week in weeks] == [day.strftime("%G-W%V") for day in thursdays]
    assert [week.start_date + timedelta(days=3) for week in weeks] == [day.date() for day in thursdays]
    assert weeks[0].identifier == "2020-W14"
    assert sum(week.identifier.startswith("2020-") for week in weeks) == 53 - 13


@pytest.mark.parametrize("year", [1, 9999])
def test_the_first_and_the_last_year_have_their_weeks(workspace_of: WorkspaceOf, year: int) -> None:
    weeks = on(generated(workspace_of, f"first_year: {year}, last_year: {year}", "[year, week]"), "week")
    assert len(weeks) == (52 if year == 1 else 51)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("generate: {first_year: 2026, last_year: 2026, pattern: 4-4-5}", "a pattern of weeks needs ends_on"),
        ("generate: {first_year: 2026, last_year: 2026, ends_on: friday}", "ends_on is for patterns of weeks only"),
        ("generate: {first_year: 1, last_year: 2, start_month: 4}", "a fiscal year lies between 2 and 9998"),
        ("generate: {first_year: 2026, last_year: 2026, start_month: 13}", "from 1 to 12"),
        (
            "levels: [day]\ngenerate: {first_year: 2000, last_year: 2026}",
            "may generate the days of 20 years, not of 27",
        ),
        (
            "levels: [month]\ngenerate: {first_year: 2026, last_year: 2026, pattern: 13-periods, ends_on: friday}",
            "periods can be generated for the levels year, period, week, day only",
        ),
    ],
)
def test_what_does_not_fit_is_refused(workspace_of: WorkspaceOf, text: str, message: str) -> None:
    found = workspace_of({"calendars/c.yaml": f"id: c\n{text}\n"}).diagnostics
    assert [each.code for each in found] == ["InvalidValue"]
    assert message in found[0].message


def test_weeks_that_are_written_out_are_left_alone(workspace_of: WorkspaceOf) -> None:
    text = """
id: c
levels: [year, week]
generate: {first_year: 2026, last_year: 2026}
periods: [{identifier: w1, level: week, parent: "2026", start_date: 2026-01-01, end_date: 2026-01-07}]
"""
    loaded = workspace_of({"calendars/c.yaml": text})
    assert loaded.diagnostics == ()
    assert [each.identifier for each in periods_of(loaded.workspace.calendars[0])] == ["2026", "w1"]
