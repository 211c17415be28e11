"""Column lineage: from which columns of which datasets each column comes."""

from collections.abc import Callable

from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def lineage_of(found: Checked, column: str) -> tuple[set[str], set[str]]:
    [lineage] = [each for each in found.plan.lineage if each.column == column]
    return (
        {f"{source.dataset}.{source.column}" for source in lineage.derives_from},
        {f"{source.dataset}.{source.column}" for source in lineage.influenced_by},
    )


def test_a_loaded_column_comes_from_itself(check: Check) -> None:
    assert lineage_of(check(""), "amount") == ({"orders.amount"}, set())


def test_values_derive_and_conditions_influence_through_joins_and_other_columns(check: Check) -> None:
    found = check("""
        - seq: 1
          name: a
          type: update
          selector: region = "N"
          arguments:
            joins: [{alias: c, dataset_id: customers, on: c.id = customer_id}]
            assignments: [{column: x, expression: "CONCAT(c.tier, orders.status)"}]
        - seq: 2
          name: b
          type: update
          selector: x = "y"
          arguments: {assignments: [{column: z, expression: LEN(x)}]}
    """)
    derived = {"customers.tier", "orders.status"}
    assert lineage_of(found, "x") == (derived, {"orders.region", "customers.id", "orders.customer_id"})
    assert lineage_of(found, "z") == (derived, derived | {"orders.region", "customers.id", "orders.customer_id"})


def test_a_column_keeps_its_origins_on_the_rows_that_a_step_leaves_alone(check: Check) -> None:
    found = check("""
        - seq: 1
          name: a
          type: update
          selector: status = "x"
          arguments: {assignments: [{column: region, expression: status}]}
    """)
    assert lineage_of(found, "region") == ({"orders.region", "orders.status"}, {"orders.status"})


def test_assignments_of_one_operation_see_the_columns_as_they_were(check: Check) -> None:
    found = check("""
        - seq: 1
          name: swap
          type: update
          arguments: {assignments: [{column: region, expression: status}, {column: status, expression: region}]}
    """)
    assert lineage_of(found, "status")[0] == {"orders.region", "orders.status"}


def test_summaries_come_from_their_rows_keys_and_from_what_was_deleted_before(check: Check) -> None:
    found = check("""
        - {seq: 1, name: drop, type: delete, selector: order_id < 0}
        - seq: 2
          name: sum
          type: aggregate
          selector: status = "x"
          arguments: {group_by: [_period, region], aggregations: [{column: total, expression: SUM(amount)}]}
    """)
    assert lineage_of(found, "total") == (
        {"orders.amount"},
        {"orders.status", "orders._period", "orders.region", "orders.order_id"},
    )
    assert lineage_of(found, "region") == ({"orders.region"}, set())


def test_appended_rows_bring_the_origins_of_their_source(check: Check) -> None:
    found = check("""
        - seq: 1
          name: more
          type: append
          arguments:
            source: {dataset_id: rates}
            source_selector: rates.amount > 0
            aggregation: {group_by: [region], aggregations: [{column: amount, expression: MAX_AGG(amount)}]}
    """)
    assert lineage_of(found, "region") == ({"orders.region", "rates.region"}, {"rates.amount"})
    assert lineage_of(found, "amount") == ({"orders.amount", "rates.amount"}, {"rates.amount", "rates.region"})
    assert lineage_of(found, "status") == ({"orders.status"}, set())
