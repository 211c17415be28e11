from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from math import inf, isnan

import pytest

from clew.definitions import LoadedWorkspace, Scalar

WorkspaceOf = Callable[[Mapping[str, str]], LoadedWorkspace]


def cell(workspace_of: WorkspaceOf, written: str) -> Scalar:
    loaded = workspace_of({"scenarios/s.yaml": scenario_with(written)})
    assert loaded.diagnostics == ()
    rows = loaded.workspace.scenarios[0].datasets[0].rows
    assert rows is not None
    return rows[0]["a"]


def scenario_with(written: str) -> str:
    return (
        "name: s\nperiods: [{identifier: p, level: month, start_date: 2026-01-01, end_date: 2026-01-31}]\n"
        "period: p\nproject: {input_dataset: d, operations: []}\nexpected_output: {rows: []}\n"
        f"datasets:\n  - id: d\n    rows:\n      - a: {written}\n"
    )


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("on", "on"),
        ("yes", "yes"),
        ("NO", "NO"),
        ("y", "y"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("~", None),
        ("", None),
        ("10", 10),
        ("-7", -7),
        ("+7", 7),
        ("007", 7),
        ("0o17", 15),
        ("0xff", 255),
        ("0b11", "0b11"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2026-01-31", date(2026, 1, 31)),
        ('"2026-01-31"', "2026-01-31"),
        ("2026-01", "2026-01"),
        ("2026-1-1", "2026-1-1"),
        ("2026-01-01T10:00:00", "2026-01-01T10:00:00"),
        (".inf", inf),
        ("-.INF", -inf),
        ("'10'", "10"),
        ('"true"', "true"),
        ("nullable", "nullable"),
        ("=", "="),
        ("ünïcödé", "ünïcödé"),
        ("JE-1", "JE-1"),
        ("...x", "...x"),
    ],
)
def test_a_scalar_means_what_yaml_1_2_says(workspace_of: WorkspaceOf, written: str, value: object) -> None:
    read = cell(workspace_of, written)
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("written", ["10.00", "0.1", "-3.140", "1e5", "1.5E-3", ".5", "5."])
def test_decimal_numbers_are_exact(workspace_of: WorkspaceOf, written: str) -> None:
    read = cell(workspace_of, written)
    assert isinstance(read, Decimal)
    assert read.as_tuple() == Decimal(written).as_tuple()


def test_not_a_number_is_a_float(workspace_of: WorkspaceOf) -> None:
    read = cell(workspace_of, ".nan")
    assert isinstance(read, float)
    assert isnan(read)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("2026-02-30", "there is no date 2026-02-30"),
        ("0000-01-01", "there is no date 0000-01-01"),
        ("1" * 500, "a number of 500 digits is too long"),
        ("1e999999999", "this number is too large or too long"),
        ("1." + "0" * 500, "this number is too large or too long"),
        ("1e" + "9" * 5000, "this number is too large or too long"),
    ],
)
def test_what_looks_like_a_date_or_number_but_is_none_is_refused(
    workspace_of: WorkspaceOf, written: str, problem: str
) -> None:
    loaded = workspace_of({"scenarios/s.yaml": scenario_with(written)})
    [diagnostic] = loaded.diagnostics
    assert (diagnostic.code, diagnostic.message) == ("InvalidValue", problem)
    assert diagnostic.span is not None
    assert (diagnostic.span.line, diagnostic.span.column, diagnostic.span.length) == (9, 12, len(written))
