"""Parameters: typed values of a run in expressions, and what is wrong with those that are given."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from clew.diagnostics import UserError
from clew.lang import Value
from clew.lang.evaluation import Row, evaluator
from clew.lang.text_form import text_of
from clew.plan import Plan, plan_from_json, plan_to_json
from clew.plan.binding import bound
from clew.plan.operations import UpdateStep
from clew.plan.planned_parameters import RunPeriod
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]

JANUARY = RunPeriod("2026-01", "month", date(2026, 1, 1), date(2026, 1, 31))
OUT = "    - {seq: 50, name: out, type: output, arguments: {destination: {location: {path: o}}}}"
DECLARED = """
parameters:
  rate: {type: "decimal(5,2)", default: 1.5}
  kind: {type: string, default: a, allowed: [a, b]}
  since: {type: date}
"""


def adds(expression: str) -> str:
    assignments = f"[{{column: net, expression: '{expression}'}}]"
    step = f"- {{seq: 10, name: add, type: update, arguments: {{assignments: {assignments}}}}}"
    return f"    {step}\n{OUT}"


def value_of(plan: Plan, amount: str = "10.00") -> object:
    step = plan.steps[0]
    assert isinstance(step, UpdateStep)
    row: dict[str, dict[str, Value]] = {
        "orders": {"amount": Decimal(amount), "region": "north", "ordered_on": date(2026, 1, 15)}
    }
    return evaluator(step.assignments[0].value.tree)(Row(row, date(2026, 2, 1)))


def test_a_value_is_what_is_given_or_the_default_and_part_of_the_digest(check: Check) -> None:
    plan = check(adds("ROUND(amount * param.rate, 2)"), more=DECLARED).plan
    given = {"since": "2026-01-01"}
    usual, other = bound(plan, given, None), bound(plan, {**given, "rate": "2"}, None)
    assert (value_of(usual), value_of(other)) == (Decimal("15.00"), Decimal("20.00"))
    assert len({plan.digest, usual.digest, other.digest}) == 3
    assert plan_from_json(plan_to_json(other)) == other
    assert [(each.name, each.value) for each in other.extensions.parameters] == [
        ("kind", "a"),
        ("rate", "2.00"),
        ("since", "2026-01-01"),
    ]
    tree = other.steps[0].assignments[0].value.tree  # type: ignore[union-attr]
    assert "param.rate" in text_of(tree)


def test_the_period_of_the_run_is_known_to_expressions(check: Check) -> None:
    text = "CONCAT(PERIOD_ID(), PERIOD_LEVEL(), TO_STRING(DATEDIFF(PERIOD_END(), PERIOD_START())))"
    plan = check(adds(text)).plan
    february = RunPeriod("2026-02", "month", date(2026, 2, 1), date(2026, 2, 28))
    assert value_of(bound(plan, {}, JANUARY)) == "2026-01month30"
    assert value_of(bound(plan, {}, february)) == "2026-02month27"
    assert bound(bound(plan, {}, JANUARY), {}, JANUARY) == bound(plan, {}, JANUARY)


def test_plans_without_parameters_keep_their_digest_whatever_the_period(check: Check) -> None:
    plan = check(adds("amount * 2")).plan
    assert "parameters" not in str(plan_to_json(plan))
    assert bound(plan, {}, JANUARY) is plan


@pytest.mark.parametrize(
    ("given", "codes"),
    [
        ({}, ["MissingParameter"]),
        ({"since": "2026-01-01", "rte": "1"}, ["UnknownParameter"]),
        ({"since": "yesterday"}, ["InvalidParameter"]),
        ({"since": "2026-01-01", "rate": "1.005"}, ["InvalidParameter"]),
        ({"since": "2026-01-01", "kind": "c"}, ["InvalidParameter"]),
        ({"kind": "c", "x": "1"}, ["UnknownParameter", "InvalidParameter", "MissingParameter"]),
    ],
)
def test_values_that_are_wrong_are_refused_all_at_once(
    check: Check, given: dict[str, object], codes: list[str]
) -> None:
    plan = check(adds("amount * param.rate"), more=DECLARED).plan
    with pytest.raises(UserError) as caught:
        bound(plan, given, None)
    assert [each.code for each in caught.value.diagnostics] == codes


@pytest.mark.parametrize(
    ("expression", "more", "code"),
    [
        ("amount * param.«rte»", DECLARED, "UnknownParameter"),
        ("amount * param.«rate»", "", "UnknownParameter"),
        ("amount", "\nparameters:\n  rate: {type: «money»}\n", "InvalidValue"),
        ("amount", "\nparameters:\n  rate: {type: integer, default: «1.5»}\n", "InvalidValue"),
        ("amount", "\nparameters:\n  rate: {type: integer, default: «3», allowed: [1, 2]}\n", "InvalidValue"),
    ],
)
def test_a_parameter_that_cannot_be_is_refused_at_its_place(
    check: Check, expression: str, more: str, code: str
) -> None:
    check(adds(expression), more=more).reports(code)


HOLIDAYS = {"calendars/de.yaml": "{id: de, holidays: [2026-05-01, 2026-01-01, 2026-05-01]}"}


def due(expression: str) -> str:
    assigned = f"{{column: due, expression: '{expression}'}}"
    return f"- {{seq: 1, name: x, type: update, arguments: {{assignments: [{assigned}]}}}}"


def test_working_days_skip_the_holidays_of_a_calendar(check: Check) -> None:
    found = check(due('WORKDAY(ordered_on, 2, HOLIDAYS("de"), ordered_on)'), files=HOLIDAYS)
    [step] = found.plan.steps
    assert isinstance(step, UpdateStep)
    written = 'WORKDAY(ordered_on, 2, DATE("2026-01-01"), DATE("2026-05-01"), ordered_on)'
    [same] = check(due(written)).plan.steps
    assert isinstance(same, UpdateStep)
    assert step.assignments[0].value.tree == same.assignments[0].value.tree
    assert "HOLIDAYS" in step.assignments[0].value.text


@pytest.mark.parametrize(
    ("expression", "code"),
    [
        ('WORKDAY(ordered_on, 2, «HOLIDAYS("fr")»)', "InvalidValue"),
        ("WORKDAY(ordered_on, 2, «HOLIDAYS(region)»)", "InvalidValue"),
        ('DATEADD(«HOLIDAYS("de")», 1)', "SyntaxError"),
    ],
)
def test_holidays_that_there_are_not_and_in_other_places_are_refused(check: Check, expression: str, code: str) -> None:
    check(due(expression), files=HOLIDAYS).reports(code)
