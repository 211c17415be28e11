"""Periods, generated and written out, and the tree that they form."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from itertools import pairwise

import pytest

from clew.definitions import LoadedWorkspace, periods_of

WorkspaceOf = Callable[[Mapping[str, str | bytes]], LoadedWorkspace]


def problems(workspace_of: WorkspaceOf, content: str) -> list[tuple[str, str, int]]:
    found = workspace_of({"calendars/c.yaml": content}).diagnostics
    return [(d.code, d.message, d.span.line) for d in found if d.span is not None]


def test_years_quarters_and_months_are_generated(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of({"calendars/c.yaml": "id: c\ngenerate: {first_year: 2027, last_year: 2028}\n"})
    assert loaded.diagnostics == ()
    periods = periods_of(loaded.workspace.calendars[0])
    assert len(periods) == 2 * (1 + 4 + 12)
    by_identifier = {period.identifier: period for period in periods}
    quarter = by_identifier["2028-Q1"]
    assert (quarter.level, quarter.parent, quarter.start_date, quarter.end_date) == (
        "quarter",
        "2028",
        date(2028, 1, 1),
        date(2028, 3, 31),
    )
    february = by_identifier["2028-02"]
    assert (february.parent, february.end_date) == ("2028-Q1", date(2028, 2, 29))
    assert by_identifier["2027"].parent is None
    assert by_identifier["2027-12"].end_date == date(2027, 12, 31)


def test_generated_periods_of_a_level_follow_each_other_without_gaps(workspace_of: WorkspaceOf) -> None:
    loaded = workspace_of({"calendars/c.yaml": "id: c\ngenerate: {first_year: 1999, last_year: 2001}\n"})
    periods = periods_of(loaded.workspace.calendars[0])
    for level in ("year", "quarter", "month"):
        for before, after in pairwise(period for period in periods if period.level == level):
            assert after.start_date == before.end_date + timedelta(days=1)


def test_levels_that_are_left_out_are_not_generated(workspace_of: WorkspaceOf) -> None:
    content = "id: c\nlevels: [year, month]\ngenerate: {first_year: 2026, last_year: 2026}\n"
    periods = workspace_of({"calendars/c.yaml": content}).workspace.periods
    assert len(periods.periods) == 13
    month = periods.period("2026-03")
    assert month is not None
    assert month.parent == "2026"


def test_the_tree_of_periods(workspace_of: WorkspaceOf) -> None:
    content = "id: c\ngenerate: {first_year: 2026, last_year: 2026}\n"
    tree = workspace_of({"calendars/c.yaml": content}).workspace.periods
    assert [period.identifier for period in tree.ancestors("2026-05")] == ["2026-Q2", "2026"]
    assert [period.identifier for period in tree.descendants("2026-Q2")] == ["2026-04", "2026-05", "2026-06"]
    assert len(tree.descendants("2026")) == 16
    assert [period.identifier for period in tree.children("2026")] == ["2026-Q1", "2026-Q2", "2026-Q3", "2026-Q4"]
    assert tree.period("2026-13") is None
    assert tree.ancestors("2026-13") == tree.descendants("2026-13") == ()


def test_what_is_wrong_with_periods_is_reported_together(workspace_of: WorkspaceOf) -> None:
    content = """id: c
levels: [year, month, year]
generate: {first_year: 2026, last_year: 2026}
periods:
  - {identifier: a, level: day, start_date: 2030-01-01, end_date: 2030-01-31}
  - {identifier: b, level: month, parent: "2027", start_date: 2027-02-01, end_date: 2027-02-28}
  - {identifier: 2026-01, level: month, start_date: 2029-01-01, end_date: 2029-01-31}
  - {identifier: d, level: month, parent: "2026", start_date: 2028-01-01, end_date: 2028-01-31}
  - {identifier: e, level: year, parent: 2026-02, start_date: 2026-02-01, end_date: 2026-02-02}
  - {identifier: f, level: month, start_date: 2028-01-31, end_date: 2028-02-02}
  - {identifier: g, level: month, start_date: 2028-05-31, end_date: 2028-05-02}
  - {identifier: h, level: month, parent: g, start_date: 2028-06-01, end_date: 2028-06-02}
"""
    assert problems(workspace_of, content) == [
        ("InvalidValue", 'duplicate level "year"', 2),
        ("InvalidValue", 'the calendar has no level "day"; its levels are year, month, year', 5),
        ("UnknownPeriod", 'no period "2027"', 6),
        ("DuplicateId", 'the period "2026-01" is already defined in calendars/c.yaml:3:11', 7),
        (
            "InvalidValue",
            '"d" (2028-01-01 to 2028-01-31) is not within its parent "2026" (2026-01-01 to 2026-12-31)',
            8,
        ),
        ("InvalidValue", 'the parent "2026-02" has the level month, which is not above year', 9),
        ("InvalidValue", '"e" overlaps "2026", which ends on 2026-12-31', 9),
        ("InvalidValue", '"f" overlaps "d", which ends on 2028-01-31', 10),
        ("InvalidValue", 'the period "g" ends on 2028-05-02, before it starts on 2028-05-31', 11),
    ]


@pytest.mark.parametrize(
    ("generate", "message"),
    [
        ("{first_year: 2027, last_year: 2026}", "the last year, 2026, is before the first, 2027"),
        ("{first_year: 1, last_year: 9999}", "a calendar may generate 200 years, not 9999"),
        ("{first_year: 0, last_year: 2026}", "expected a whole number from 1 to 9999, found the number 0"),
        ("{first_year: 2026}", 'the key "last_year" is missing in a generator of periods'),
    ],
)
def test_years_are_generated_within_reason(workspace_of: WorkspaceOf, generate: str, message: str) -> None:
    [(_, found, line)] = problems(workspace_of, f"id: c\ngenerate: {generate}\n")
    assert (found, line) == (message, 2)


def test_only_known_levels_can_be_generated(workspace_of: WorkspaceOf) -> None:
    content = "id: c\nlevels: [fortnight]\ngenerate: {first_year: 2026, last_year: 2026}\n"
    [(_, message, line)] = problems(workspace_of, content)
    assert (
        message
        == "periods can be generated for the levels year, quarter, month, week, day only; the calendar has none of them"
    )
    assert line == 3
