"""Runtime joins: what an update sees under an alias, where the dataset comes from, and in which version."""

from collections.abc import Callable

import pytest

from clew.plan.operations import UpdateStep
from clew.plan.steps import Join
from tests.plan.plan_workspaces import BASE, Checked

Check = Callable[..., Checked]


def joining(joins: str, expression: str = "c.tier", more: str = "") -> str:
    return f"""
        - seq: 1
          name: look up
          type: update
          arguments:
            joins: [{joins}]
            assignments: [{{column: x, expression: '{expression}'}}]
        {more}
    """


CUSTOMERS = "{alias: c, dataset_id: customers, on: c.id = customer_id}"


def join_of(found: Checked) -> Join:
    step = found.plan.steps[0]
    assert isinstance(step, UpdateStep)
    return step.joins[0]


def test_an_assignment_may_use_the_aliases_of_its_own_operation(check: Check) -> None:
    plan = check(joining(CUSTOMERS, 'IF(c.tier = "gold", orders.amount * 0.9, amount)')).plan
    [step] = plan.steps
    assert [(read.table, read.column) for read in step.reads if read.because == "assignment of x"] == [
        ("c", "tier"),
        ("orders", "amount"),
    ]
    assert [str(column.type) for column in step.adds] == ["decimal(14,3)"]


def test_selectors_and_later_conditions_may_use_the_aliases_too(check: Check) -> None:
    found = check("""
        - seq: 1
          name: look up
          type: update
          selector: c.tier = "gold" AND t.amount > 1
          arguments:
            joins:
              - {alias: c, dataset_id: customers, on: c.id = customer_id}
              - {alias: t, dataset_id: targets, on: t.region = c.tier}
            assignments: [{column: x, expression: t.amount}]
    """)
    assert found.diagnostics == ()


def test_a_condition_cannot_use_a_join_after_its_own(check: Check) -> None:
    found = check(
        joining(CUSTOMERS.replace("= customer_id", "= «t».amount") + ", {alias: t, dataset_id: targets, on: 'TRUE'}")
    )
    found.reports("UnknownTable")
    assert "put that one first" in str(found.hints[0])


def test_an_alias_is_unknown_in_every_other_operation(check: Check) -> None:
    found = check("""
        - {seq: 1, name: before, type: delete, selector: «c».tier = "gold"}
        - seq: 2
          name: look up
          type: update
          arguments:
            joins: [{alias: c, dataset_id: customers, on: c.id = customer_id}]
            assignments: [{column: x, expression: c.tier}]
        - {seq: 3, name: after, type: update, arguments: {assignments: [{column: y, expression: «c».tier}]}}
    """)
    found.reports("UnknownTable", "UnknownTable")
    assert set(found.hints) == {'it is a join alias of step 2 "look up" and is visible only there'}


def test_the_columns_of_a_join_do_not_stay(check: Check) -> None:
    plan = check(joining(CUSTOMERS)).plan
    assert [column.name for column in plan.columns][-1] == "x"
    assert "tier" not in [column.name for column in plan.columns]


def test_a_bare_name_that_two_tables_have_is_ambiguous(check: Check) -> None:
    check(joining(CUSTOMERS, "«status»")).reports("AmbiguousColumn")


def test_a_bare_system_column_is_that_of_the_working_dataset(check: Check) -> None:
    joins = "{alias: t, dataset_id: targets, on: t._period = _period}, {alias: r, dataset_id: rates, on: 'TRUE'}"
    plan = check(joining(joins, "CONCAT(_period, t._period, TO_STRING(r._period_from))")).plan
    tables = {(read.table, read.column) for read in plan.steps[0].reads if read.because == "assignment of x"}
    assert tables == {("orders", "_period"), ("t", "_period"), ("r", "_period_from")}


@pytest.mark.parametrize(
    ("first", "second", "expression"),
    [
        ("«orders»", "b", "orders.tier"),
        ("«ORDERS»", "b", "orders.tier"),
        ("b", "«b»", "CONCAT(b.tier, b.region)"),
        ("b", "«B»", "CONCAT(b.tier, b.region)"),
    ],
)
def test_an_alias_belongs_to_one_table(check: Check, first: str, second: str, expression: str) -> None:
    joins = f"""
              - {{alias: {first}, dataset_id: customers, on: 'TRUE'}}
              - {{alias: {second}, dataset_id: targets, on: 'TRUE'}}"""
    check(joining("@", expression).replace("[@]", joins)).reports("DuplicateAlias")


def test_a_project_may_join_its_own_input(check: Check) -> None:
    join = join_of(check(joining("{alias: c, dataset_id: orders, on: c.order_id = orders.order_id}", "c.region")))
    assert join.dataset.dataset_id == "orders"


# The dataset of a join


def test_a_dataset_is_found_by_id_and_by_name(check: Check) -> None:
    by_id = join_of(check(joining(CUSTOMERS))).dataset
    by_name = join_of(check(joining(CUSTOMERS.replace("customers", "all customers")))).dataset
    assert by_id == by_name
    assert (by_id.dataset_id, by_id.name, by_id.table) == ("customers", "all customers", "clients")


def test_an_unknown_dataset_is_refused_and_its_columns_are_not(check: Check) -> None:
    found = check(joining("{alias: c, dataset_id: «custmers», on: c.id = customer_id}"))
    found.reports("UnknownDataset")
    assert found.hints == ['did you mean "customers"?']


@pytest.mark.parametrize("status", ["draft", "inactive"])
def test_a_dataset_that_is_not_active_is_refused(check: Check, status: str) -> None:
    files = {
        "datasets/old.yaml": f"""
            id: old
            status: {status}
            main_table: {{name: old, columns: [{{name: id, type: integer}}]}}
        """
    }
    found = check(joining("{alias: c, dataset_id: «old», on: c.id = customer_id}", "c.«tier»"), files=files)
    found.reports("DatasetInactive", "UnknownColumn")
    assert status in found.diagnostics[0].message


def dataset(resolver: str) -> str:
    columns = "[{name: id, type: integer}, {name: tier, type: string}]"
    return f"id: d\n{resolver}\nmain_table: {{name: d, columns: {columns}}}"


@pytest.mark.parametrize(
    ("own", "override", "expected"),
    [
        ("resolver_id: tables", "resolver_overrides: {d: archive}", ("archive", "project override")),
        ("", "resolver_overrides: {d: archive}", ("archive", "project override")),
        ("resolver_id: archive", "resolver_overrides: {orders: archive}", ("archive", "dataset")),
        ("resolver_id: archive", "", ("archive", "dataset")),
        ("", "", ("tables", "default")),
    ],
)
def test_the_resolver_is_the_override_then_that_of_the_dataset_then_the_default(
    check: Check, own: str, override: str, expected: tuple[str, str]
) -> None:
    found = check(
        joining("{alias: c, dataset_id: d, on: c.id = customer_id}"),
        files={"datasets/d.yaml": dataset(own)},
        more=override + "\n",
    )
    use = join_of(found).dataset
    assert (use.resolver_id, use.resolver_source) == expected


def test_the_input_and_appended_sources_take_the_override_too(check: Check) -> None:
    plan = check(
        "- {seq: 1, name: more, type: append, arguments: {source: {dataset_id: targets}}}",
        more="resolver_overrides: {orders: archive, targets: archive}\n",
    ).plan
    [step] = plan.steps
    assert step.type == "append"
    assert plan.input.resolver_id == step.source.resolver_id == "archive"


def test_a_dataset_that_no_resolver_finds_is_refused(check: Check) -> None:
    check(
        joining("{alias: c, dataset_id: «customers», on: c.id = customer_id}"),
        files={"resolvers/tables.yaml": BASE["resolvers/tables.yaml"].replace("is_default: true", "")},
        more="resolver_overrides: {orders: archive}\n",
    ).reports("UnknownResolver")


def test_an_override_for_a_dataset_that_does_not_exist_is_refused(check: Check) -> None:
    found = check("", more="resolver_overrides: {«custmers»: archive}\n")
    found.reports("UnknownDataset")
    assert found.plans == {}


def test_a_version_is_pinned_and_without_one_the_newest_counts(check: Check) -> None:
    assert join_of(check(joining(CUSTOMERS))).dataset.pinned_version is None
    pinned = CUSTOMERS.replace("customers,", "customers, dataset_version: 2,")
    assert join_of(check(joining(pinned))).dataset.pinned_version == 2


@pytest.mark.parametrize("version", [1, 3])
def test_of_a_dataset_that_a_resolver_finds_only_its_own_version_can_be_pinned(check: Check, version: int) -> None:
    found = check(joining(CUSTOMERS.replace("customers,", f"customers, dataset_version: «{version}»,")))
    found.reports("UnknownDataset")
    assert found.hints == [
        "the definition has version 2, and the data comes from a resolver, which keeps no other versions"
    ]


def test_the_temporal_mode_of_a_join_is_its_own(check: Check) -> None:
    joins = "{alias: c, dataset_id: rates, on: c.region = orders.region}"
    assert join_of(check(joining(joins, "c.amount"))).dataset.temporal_mode == "bitemporal"
    assert join_of(check(joining(CUSTOMERS))).dataset.temporal_mode == "none"


def test_a_check_that_every_row_finds_a_match_may_be_as_of_a_day_too(check: Check) -> None:
    checked = "{alias: r, dataset_id: rates, on: r.region = orders.region, as_of: ordered_on}"
    rule = "checks: [{join_must_match: " + checked + "}]\n"
    found = check(joining(RATES_ON_DAY % "ordered_on", "r.amount"), more=rule)
    [planned] = found.plan.checks
    assert planned.join == join_of(found)
    named = check(joining(RATES_ON_DAY % "ordered_on", "r.amount"), more="checks: [{join_must_match: r}]\n")
    assert named.plan.checks[0].join == join_of(named)


RATES_ON_DAY = "{alias: r, dataset_id: rates, on: r.region = orders.region, as_of: %s}"


def test_a_join_may_be_as_of_a_day_that_each_row_says(check: Check) -> None:
    join = join_of(check(joining(RATES_ON_DAY % "ordered_on", "r.amount")))
    assert (join.dataset.all_days, join.dataset.key) == (True, "rates@all-days")
    in_force = "r._period_from <= ordered_on AND (r._period_to IS NULL OR ordered_on < r._period_to)"
    assert join.on.text == f"(r.region = orders.region) AND {in_force}"
    written = f"{{alias: r, dataset_id: rates, on: 'r.region = orders.region AND {in_force}'}}"
    assert join.on.tree == join_of(check(joining(written, "r.amount"))).on.tree
    assert not join_of(check(joining(written, "r.amount"))).dataset.all_days, "as_of decides what is read"


def test_the_day_may_be_of_the_run_or_of_a_join_before(check: Check) -> None:
    join = join_of(check(joining(RATES_ON_DAY % "PERIOD_END()", "r.amount")))
    assert "r._period_from <= (PERIOD_END())" in join.on.text
    check(joining(RATES_ON_DAY % "«r»._period_from", "r.amount")).reports("UnknownTable")


@pytest.mark.parametrize(
    ("join", "code"),
    [
        ("{alias: r, dataset_id: targets, on: r.region = orders.region, «as_of»: ordered_on}", "InvalidValue"),
        (RATES_ON_DAY % "«region»", "TypeMismatch"),
        (RATES_ON_DAY % "«nowhere»", "UnknownColumn"),
    ],
)
def test_a_day_that_no_join_can_be_as_of_is_refused(check: Check, join: str, code: str) -> None:
    check(joining(join, "r.amount")).reports(code)
