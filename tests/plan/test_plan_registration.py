"""Outputs that become datasets, and projects that take them as their input."""

from collections.abc import Callable
from pathlib import Path

import pytest

from clew.api.workspace import Workspace
from clew.plan.privacy import privacy_by_column
from tests.engine.engine_workspaces import SHOP, make_shop
from tests.plan.plan_workspaces import Checked, project_text

Check = Callable[..., Checked]


def registering(name: str, columns: str = "", seq: int = 50) -> str:
    return f"""
- seq: {seq}
  name: publish
  type: output
  arguments: {{destination: {{location: {{path: out-{seq}}}}}, {columns}register_as_dataset: {name}}}
"""


def reading(dataset: str, operations: str = "", name: str = "q") -> dict[str, str]:
    text = project_text(operations, input_dataset=dataset).replace("id: p", f"id: {name}")
    return {f"projects/{name}.yaml": text}


def test_a_project_can_take_what_another_registers(check: Check) -> None:
    found = check(
        registering("made"), files=reading("made", "- {seq: 1, name: x, type: delete, selector: orders.amount = 1}")
    )
    assert found.diagnostics == ()
    use = found.plans["q"].input
    assert (use.dataset_id, use.table, use.temporal_mode, use.resolver_source) == (
        "made",
        "orders",
        "period",
        "managed",
    )
    assert [column.name for column in use.columns] == [
        "order_id",
        "customer_id",
        "region",
        "status",
        "amount",
        "ordered_on",
        "_period",
    ]


def test_it_has_the_columns_that_are_written_and_not_those_added_later(check: Check) -> None:
    operations = (
        registering("made", "columns: [region, amount], ")
        + "- {seq: 60, name: later, type: update, arguments: {assignments: [{column: late, expression: amount}]}}"
    )
    found = check(operations, files=reading("made", "- {seq: 1, name: x, type: delete, selector: «late» = 1}"))
    found.reports("UnknownColumn")
    assert list(found.plans) == ["p"]


def test_the_file_order_of_projects_does_not_matter(check: Check) -> None:
    found = check(registering("made"), files=reading("made", name="a") | reading("made", name="z"))
    assert sorted(found.plans) == ["a", "p", "z"]


def test_personal_values_stay_personal_through_joins_and_expressions(check: Check) -> None:
    found = check(
        """
- seq: 1
  name: look up
  type: update
  arguments:
    joins: [{alias: c, dataset_id: customers, on: c.id = customer_id}]
    assignments: [{column: contact, expression: "CONCAT(c.email, region)"}, {column: tier, expression: c.tier}]
"""
        + registering("made"),
        files=reading("made"),
    )
    assert found.diagnostics == ()
    marked = {column.name: column.privacy for column in found.plans["q"].input.columns if column.privacy}
    assert marked == {"contact": "personal"}


def test_two_projects_cannot_register_one_dataset(check: Check) -> None:
    found = check(
        registering("«made»"), files={"projects/a.yaml": project_text(registering("made")).replace("id: p", "id: a")}
    )
    found.reports("RegistrationConflict")
    assert "by the project a" in found.diagnostics[0].message


def test_neither_can_two_steps_of_one_project(check: Check) -> None:
    found = check(registering("made", seq=5) + registering("«made»", seq=6).replace("publish", "publish again"))
    found.reports("RegistrationConflict")
    assert 'by step 5 "publish"' in found.diagnostics[0].message


def test_projects_that_wait_for_each_other_are_reported_once(check: Check) -> None:
    files = {
        "projects/a.yaml": project_text(registering("«of-a»"), input_dataset="of-c").replace("id: p", "id: a"),
        "projects/b.yaml": project_text(registering("of-b"), input_dataset="of-a").replace("id: p", "id: b"),
        "projects/c.yaml": project_text(registering("of-c"), input_dataset="of-b").replace("id: p", "id: c"),
    }
    found = check("", files=files)
    found.reports("RegistrationConflict")
    assert found.diagnostics[0].message == 'the dataset "of-a" comes from a cycle of projects: a -> c -> b -> a'
    assert list(found.plans) == ["p"]


def test_a_long_chain_of_projects_compiles_from_either_end(check: Check) -> None:
    def link(number: int) -> str:
        source = f"d{number + 1}" if number < 200 else "orders"
        return project_text(registering(f"d{number}"), input_dataset=source).replace("id: p", f"id: p{number}")

    found = check("", files={f"projects/p{number:03}.yaml": link(number) for number in range(201)})
    assert found.diagnostics == ()
    assert len(found.plans) == 202


def test_a_project_cannot_start_from_its_own_output(check: Check) -> None:
    found = check(registering("«made»"), input_dataset="made")
    found.reports("RegistrationConflict")
    assert found.hints == ["define it under datasets/"]


DECLARED = """
    id: made
    {more}
    main_table:
      name: made
      temporal_mode: {mode}
      columns: [{{name: region, type: string}}, {{name: amount, type: {type}}}]
"""


def test_a_definition_of_the_dataset_breaks_the_circle_and_its_data_is_kept_by_clew(check: Check) -> None:
    found = check(
        registering("made"),
        input_dataset="made",
        files={"datasets/made.yaml": DECLARED.format(mode="period", type="decimal", more="")},
    )
    assert (found.plan.input.resolver_id, found.plan.input.resolver_source) == (None, "managed")


@pytest.mark.parametrize(
    ("more", "expected"),
    [("resolver_id: archive", ("archive", "dataset")), ("", (None, "managed"))],
)
def test_a_registered_dataset_is_found_by_its_own_resolver_but_not_by_the_default_one(
    check: Check, more: str, expected: tuple[str | None, str]
) -> None:
    found = check(
        registering("made"),
        files=reading("made") | {"datasets/made.yaml": DECLARED.format(mode="period", type="decimal", more=more)},
    )
    use = found.plans["q"].input
    assert (use.resolver_id, use.resolver_source) == expected


def test_an_override_counts_for_a_registered_dataset_too(check: Check) -> None:
    q = project_text("", input_dataset="made", more="resolver_overrides: {made: archive}\n").replace("id: p", "id: q")
    found = check(registering("made"), files={"projects/q.yaml": q})
    assert found.diagnostics == ()
    assert found.plans["q"].input.resolver_source == "project override"


def test_versions_of_a_registered_dataset_come_with_runs_so_any_can_be_pinned(check: Check) -> None:
    found = check(
        registering("made"),
        files=reading("{dataset_id: made, dataset_version: 7}")
        | {"datasets/made.yaml": DECLARED.format(mode="period", type="decimal", more="")},
    )
    assert found.diagnostics == ()
    assert found.plans["q"].input.pinned_version == 7


@pytest.mark.parametrize(
    ("columns", "mode", "type_", "problem"),
    [
        ("columns: [region], ", "none", "decimal", 'declares a column "amount", which step 50 does not write'),
        ("columns: [region, amount], ", "period", "decimal", 'declares "_period", which step 50 does not write'),
        ("", "none", "date", 'declares "amount" as date, step 50 writes decimal(12,2)'),
    ],
)
def test_an_output_must_have_what_the_definition_of_its_dataset_declares(
    check: Check, columns: str, mode: str, type_: str, problem: str
) -> None:
    found = check(
        registering("«made»", columns),
        files={"datasets/made.yaml": DECLARED.format(mode=mode, type=type_, more="")},
    )
    found.reports("RegistrationConflict")
    assert problem in found.diagnostics[0].message


# Mistakes in one project and what others make of them


def test_a_project_that_reads_from_a_broken_one_is_not_blamed_and_has_no_plan(check: Check) -> None:
    found = check(
        "- {seq: 1, name: x, type: delete, selector: «nothing» = 1}" + registering("made"),
        files=reading("made", "- {seq: 1, name: y, type: delete, selector: anything = 1}"),
    )
    found.reports("UnknownColumn")
    assert found.plans == {}


def test_datasets_of_a_project_with_a_mistake_in_its_file_are_known_and_others_are_not(check: Check) -> None:
    found = check(
        "- {seq: «0», name: x, type: delete}" + registering("made"),
        files=reading("made", name="q") | reading("«mode»", name="r"),
    )
    found.reports("InvalidValue", "UnknownDataset")
    assert found.plans == {}


def test_nothing_is_said_about_unknown_datasets_where_a_project_cannot_be_read_at_all(check: Check) -> None:
    found = check("", files={"projects/broken.yaml": "id: broken\noperations: [«", **reading("unheard-of")})
    assert {each.code for each in found.diagnostics} == {"SyntaxError"}
    assert list(found.plans) == ["p"]


def test_labels_made_from_a_personal_column_are_personal_in_the_next_project(tmp_path: Path) -> None:
    """They travel with the registered dataset, and so does what restricts them."""
    shop = make_shop(tmp_path)
    orders = SHOP["datasets/orders.yaml"]
    columns = [*orders["main_table"]["columns"], {"name": "buyer", "type": "string", "privacy": "personal"}]
    shop.write({"datasets/orders.yaml": {**orders, "main_table": {**orders["main_table"], "columns": columns}}})
    label = {"assignments": [{"column": "_labels", "expression": "CONCAT(_labels, buyer)"}]}
    destination = {"destination": {"datasource_id": "reports", "path": "a"}}
    written = {**destination, "columns": ["id", "_labels"], "register_as_dataset": "labelled"}
    shop.project(
        "label",
        {"seq": 1, "name": "Label", "type": "update", "arguments": label},
        {"seq": 2, "name": "Write", "type": "output", "arguments": written},
    )
    shop.project("next", {"seq": 1, "name": "Write", "type": "output", "arguments": destination}, dataset="labelled")
    assert privacy_by_column(Workspace(shop.root).plan("next")) == {"_labels": "personal"}
