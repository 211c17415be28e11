"""Control totals: what can be added up, and what is wrong with those that cannot."""

from collections.abc import Callable

import pytest

from clew.plan import plan_from_json, plan_to_json
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]

OUT = "- {seq: 50, name: out, type: output, arguments: {destination: {location: {path: o}}}}"
ADDS = """
    - seq: 10
      name: add
      type: update
      arguments: {assignments: [{column: net, expression: amount * 2}, {column: note, expression: TRUE}]}
"""


def controls(*texts: str) -> str:
    return "controls:\n" + "".join(f"  - {text}\n" for text in texts)


def test_a_plan_carries_its_control_totals_and_reads_them_back(check: Check) -> None:
    found = check(
        ADDS + "    " + OUT,
        more=controls("{name: Net, expression: net, by: [orders.region], tolerance: 0.05, on_difference: warn}"),
    ).plan
    [control] = found.controls
    assert (control.name, control.by, control.tolerance, control.on_difference) == ("Net", ("region",), "0.05", "warn")
    assert plan_from_json(plan_to_json(found)) == found


def test_control_totals_are_part_of_the_digest_and_plans_without_them_keep_theirs(check: Check) -> None:
    plain = check(OUT).plan
    assert "controls" not in str(plan_to_json(plain))
    assert check(OUT, more=controls("{name: A, expression: amount}")).plan.digest != plain.digest


@pytest.mark.parametrize(
    ("control", "code"),
    [
        ("{name: A, expression: «amuont»}", "UnknownColumn"),
        ("{name: A, expression: «region»}", "InvalidControl"),
        ("{name: A, expression: «amount * 2»}", "InvalidControl"),
        ("{name: A, expression: «SUM»(amount)}", "AggregateNotAllowed"),
        ("{name: A, expression: amount, by: [«regin»]}", "UnknownColumn"),
        ("{name: A, expression: amount, by: [«_row_id»]}", "ReservedColumn"),
        ("{name: A, expression: amount, tolerance: «-1»}", "InvalidValue"),
        ("{name: A, expression: amount, tolerance: «'1'»}", "InvalidValue"),
        ("{name: A, expression: amount, on_difference: «ignore»}", "InvalidValue"),
    ],
)
def test_a_control_total_that_cannot_be_added_up_is_refused_at_its_place(check: Check, control: str, code: str) -> None:
    check(OUT, more=controls(control)).reports(code)


def test_a_column_that_only_exists_after_the_last_output_is_never_written(check: Check) -> None:
    late = ADDS.replace("seq: 10", "seq: 60")
    check("    " + OUT + late, more=controls("«{name: Net, expression: net}»")).reports("InvalidControl")


def test_two_control_totals_cannot_share_a_name(check: Check) -> None:
    twice = controls("{name: A, expression: amount}", "{name: «A», expression: order_id}")
    check(OUT, more=twice).reports("DuplicateId")
