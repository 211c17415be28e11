"""The projects and scenarios of the sample, compiled and interpreted without Spark."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date

import pytest

from clew.definitions import ExpectedOutput, ExpectedTrace, Match, PeriodTree, Scenario, load_workspace
from clew.plan import Plan, WorkspaceCompiler, compile_workspace
from tests.plan.plan_interpreter import Cells, Change, Interpretation, JoinNotUnique
from tests.sample.sample_ledger import MONTHS, SAMPLE, ask_closed, open_ledger

WORKSPACE = load_workspace(SAMPLE).workspace
CLOSED_COLUMNS = (
    "row_kind, journal_id, line_number, posting_date, account_code, account_type, cost_center, description, currency, "
    "amount_local, category, amount_usd, total_usd, line_count"
)


@pytest.fixture(scope="module")
def data() -> dict[str, list[Cells]]:
    """The rows of all months, by dataset."""
    with open_ledger() as ledger:
        return {
            dataset: ledger.sql(f"FROM {table}").to_arrow_table().to_pylist()
            for dataset, table in {
                "journal-lines": "journal_lines",
                "accounts": "accounts",
                "cost-centers": "cost_centers",
                "fx-rates": "fx_rates",
                "budgets": "budgets",
            }.items()
        }


def interpret(plan: Plan, data: Mapping[str, Iterable[Mapping[str, object]]], period: str) -> Interpretation:
    rows = {name: list(each) for name, each in data.items()}
    return Interpretation(plan, rows, period, date.fromisoformat(f"{period}-01")).run()


def holds(cells: Mapping[str, object], expected: Mapping[str, object]) -> bool:
    return all(column in cells and cells[column] == value for column, value in expected.items())


def unmet_rows(written: list[Cells], expected: ExpectedOutput) -> list[Mapping[str, object]]:
    """Expected rows that were not written and, where the match is exact, written ones that were not expected."""
    rest = list(written)
    unmet = list[Mapping[str, object]]()
    for row in expected.rows:
        found = next((each for each in rest if holds(each, row)), None)
        if found is None:
            unmet.append(row)
        else:
            rest.remove(found)
            own = {column for column in found if not column.startswith("_")}
            if expected.match is Match.EXACT and own - set(row):
                unmet.append(found)
    return unmet + (rest if expected.match is Match.EXACT else [])


def is_traced(expected: ExpectedTrace, changes: list[Change]) -> bool:
    return any(
        change.seq == expected.operation_seq
        and change.change_type == expected.change_type
        and holds(change.after, expected.row_match)
        and (change.before is None or holds(change.before, {c: d.old for c, d in expected.expected_diff.items()}))
        and holds(change.after, {c: d.new for c, d in expected.expected_diff.items()})
        for change in changes
    )


def test_everything_compiles() -> None:
    compiled = compile_workspace(WORKSPACE)
    assert compiled.diagnostics == ()
    assert list(compiled.plans) == ["gl-close", "group-report"]


def test_breakpoints_have_the_names_that_the_documentation_uses() -> None:
    plans = compile_workspace(WORKSPACE).plans
    names = [point.name for plan in plans.values() for point in plan.breakpoints]
    assert names == [
        "gl-close::fx::converted",
        "gl-close::main::cleaned",
        "gl-close::main::after_totals",
        "group-report::main::after_fx",
    ]


def test_personal_columns_stay_out_of_the_closed_ledger() -> None:
    plan = compile_workspace(WORKSPACE).plans["group-report"]
    assert "entered_by" not in {column.name for column in plan.input.columns}
    assert not [column.name for column in plan.input.columns if column.privacy]


@pytest.mark.parametrize("scenario", WORKSPACE.scenarios, ids=lambda scenario: scenario.file)
def test_the_scenario_holds(scenario: Scenario) -> None:
    compiler = WorkspaceCompiler(WORKSPACE)
    project = compiler.scenario_project(scenario)
    assert project is not None
    plan = compiler.project_with(project, compiler.scenario_datasets(scenario)).plan
    assert plan is not None
    period = (PeriodTree(scenario.periods) if scenario.periods else WORKSPACE.periods).period(scenario.period)
    assert period is not None
    data = {dataset.id: dataset.rows or () for dataset in scenario.datasets}
    if scenario.expected_error is not None:
        assert scenario.expected_error.code == "JoinNotUnique"
        with pytest.raises(JoinNotUnique, match="Convert to USD"):
            interpret(plan, data, period.identifier)
        return
    result = interpret(plan, data, period.identifier)
    outputs = dict(scenario.expected_outputs or {})
    if scenario.expected_output is not None:
        outputs[next(iter(result.outputs))] = scenario.expected_output
    assert outputs
    for name, expected in outputs.items():
        assert unmet_rows(result.outputs[name], expected) == []
    assert [each for each in scenario.expected_trace if not is_traced(each, result.changes)] == []


@pytest.mark.parametrize("month", MONTHS)
def test_the_close_gives_what_sql_gives(data: dict[str, list[Cells]], month: str) -> None:
    plan = compile_workspace(WORKSPACE).plans["gl-close"]
    result = interpret(plan, data, month)
    columns = CLOSED_COLUMNS.split(", ")
    published = Counter(tuple(row[column] for column in columns) for row in result.outputs["Publish closed ledger"])
    with open_ledger() as ledger:
        expected = ask_closed(ledger, f"SELECT {CLOSED_COLUMNS} FROM closed WHERE row_kind <> 'test entry'", month)
    assert published == Counter(expected)


def test_the_group_report_adds_up_to_the_totals_of_the_close(data: dict[str, list[Cells]]) -> None:
    plans = compile_workspace(WORKSPACE).plans
    closed = interpret(plans["gl-close"], data, "2026-01").outputs["Publish closed ledger"]
    report = interpret(plans["group-report"], data | {"gl-closed": closed}, "2026-01").outputs["Write group report"]
    assert len(report) == 16
    for account_type in ("expense", "revenue"):
        [total] = [
            row["total_usd"] for row in closed if row["row_kind"] == "total" and row["account_type"] == account_type
        ]
        assert sum(row["actual_usd"] for row in report if row["account_type"] == account_type) == total  # type: ignore[misc]
