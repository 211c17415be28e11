"""One mistake, one message: what follows from a mistake is not reported as another one."""

from collections.abc import Callable

from tests.plan.plan_workspaces import BASE, Checked

Check = Callable[..., Checked]

JOIN = """
    - seq: 1
      name: look up
      type: update
      selector: c.tier = "gold"
      arguments:
        joins: [{alias: c, dataset_id: customers, on: c.id = customer_id}]
        assignments: [{column: tier, expression: c.tier}, {column: doubled, expression: amount * 2}]
    - {seq: 2, name: use it, type: delete, selector: tier = "x" AND LEN(tier) > 1 AND doubled > 1}
    - seq: 3
      name: sum
      type: aggregate
      arguments: {group_by: [tier], aggregations: [{column: m, expression: MAX_AGG(tier)}]}
    - {seq: 4, name: more, type: append, arguments: {source: {dataset_id: targets}}}
"""


def test_a_broken_dataset_of_a_join_is_blamed_alone_and_leaves_no_plan(check: Check) -> None:
    broken = BASE["datasets/customers.yaml"].replace("version: 2", "version: «two»")
    found = check(JOIN, files={"datasets/customers.yaml": broken})
    found.reports("InvalidValue")
    assert found.plans == {}


def test_a_broken_source_of_an_append_is_blamed_alone_and_leaves_no_plan(check: Check) -> None:
    broken = BASE["datasets/targets.yaml"].replace("temporal_mode: period", "temporal_mode: «monthly»")
    found = check(JOIN, files={"datasets/targets.yaml": broken})
    found.reports("InvalidValue")
    assert found.plans == {}


def test_a_broken_input_hides_nothing_but_its_own_columns(check: Check) -> None:
    broken = BASE["datasets/orders.yaml"].replace("type: date", "type: «dat»")
    found = check(
        JOIN + "    - {seq: 9, name: x, type: delete, selector: any.thing = 1 AND some = «SUMM»(other)}",
        files={"datasets/orders.yaml": broken},
    )
    found.reports("InvalidValue", "UnknownFunction")


def test_an_unknown_input_hides_nothing_but_its_own_columns(check: Check) -> None:
    found = check(
        """
        - {seq: 1, name: x, type: delete, selector: orders.amount = 1 AND «(»amount = 2}
        - {seq: «1», name: y, type: delete, selector: "«{{z}}»"}
        - {seq: 2, name: t, type: delete, selector: amount = DATE("«»2026-02-30")}
        """.replace("«»", "").replace('DATE("2026-02-30")', '«DATE("2026-02-30")»'),
        input_dataset="«ordres»",
    )
    found.reports("UnknownDataset", "SyntaxError", "DuplicateSeq", "UnknownSelector", "ValueOutOfRange")


def test_an_inactive_input_keeps_its_columns(check: Check) -> None:
    inactive = BASE["datasets/orders.yaml"].replace("id: orders\n", "id: orders\n        status: inactive\n")
    check(
        "- {seq: 1, name: x, type: delete, selector: orders.«amout» = 1}",
        input_dataset="«orders»",
        files={"datasets/orders.yaml": inactive},
    ).reports("DatasetInactive", "UnknownColumn")


def test_a_broken_default_resolver_is_blamed_alone(check: Check) -> None:
    broken = BASE["resolvers/tables.yaml"].replace("strategy", "«strateg»")
    check(JOIN, files={"resolvers/tables.yaml": broken}).reports("UnknownKey")


def test_a_broken_selector_is_not_unknown(check: Check) -> None:
    found = check(
        """
        - {seq: 1, name: x, type: delete, selector: "{{empty}} OR amount = «SUMM»(1)"}
        """,
        selectors="empty: «[]»",
    )
    found.reports("InvalidValue", "UnknownFunction")


def test_an_operation_that_cannot_be_read_may_have_added_columns(check: Check) -> None:
    check("""
        - {seq: 1, name: x, type: update, arguments: {assignments: [«{column: added}»]}}
        - {seq: 2, name: y, type: delete, selector: added = 1 AND «SUMM»(added) = 1}
    """).reports("MissingKey", "UnknownFunction")


def test_the_scenarios_of_a_project_do_not_repeat_what_is_wrong_with_it(check: Check) -> None:
    scenario = """
        name: one
        periods: [{identifier: "1", level: all, start_date: 2026-01-01, end_date: 2026-01-31}]
        period: "1"
        datasets: [{id: orders, rows: []}, {id: customers, rows: []}]
        project: p
        expected_output: {rows: []}
    """
    check(
        "- {seq: 1, name: x, type: delete, selector: «amout» = 1}",
        files={"scenarios/a.yaml": scenario, "scenarios/b.yaml": scenario.replace("name: one", "name: two")},
    ).reports("UnknownColumn")


def test_two_projects_with_one_id_are_both_checked(check: Check) -> None:
    found = check(
        "",
        files={
            "projects/q.yaml": """
                id: «p»
                input_dataset: orders
                operations: [{seq: 1, name: x, type: delete, selector: «amout» = 1}]
            """
        },
    )
    found.reports("DuplicateId", "UnknownColumn")


def test_resolver_rules_are_checked(check: Check) -> None:
    rules = BASE["resolvers/archive.yaml"].replace("name: all,", 'name: all, when: "period.«lvel» = 1 AND «SUMM»(1)",')
    check("", files={"resolvers/archive.yaml": rules}).reports("UnknownColumn", "UnknownFunction")
