"""What each operation does to rows: one project with all of them, run once, and looked at from many sides."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from clew.diagnostics import ClewError
from clew.storage.parts import after_column
from clew.trace.reader import RunTrace
from tests.engine.engine_runs import PERIOD, Ran, run_plan
from tests.plan.plan_interpreter import Cells
from tests.trace.random_projects import compiled

COLUMNS = {"id": "integer", "region": "string", "status": "string", "a": "string", "b": "string"} | {
    "amount": "decimal(12,2)",
    "qty": "integer",
}
DATASETS: dict[str, dict[str, Any]] = {
    "orders": {"columns": COLUMNS, "mode": "period", "table": "orders", "key": ["id"]},
    "returns": {
        "columns": {"id": "integer", "region": "string", "amount": "decimal(12,2)"},
        "mode": "none",
        "table": "returns",
    },
    "regions": {
        "columns": {"code": "string", "name": "string", "low": "decimal(12,2)", "high": "decimal(12,2)"},
        "mode": "none",
        "table": "regions",
    },
}


def order(id_: int, region: str | None, status: str | None, amount: str | None, qty: int | None) -> Cells:
    number = None if amount is None else Decimal(amount)
    texts: Cells = {"region": region, "status": status, "a": f"a{id_}", "b": f"b{id_}"}
    return {"id": id_, **texts, "amount": number, "qty": qty, "_period": PERIOD}


DATA: dict[str, list[Cells]] = {
    "orders": [
        order(1, "EMEA", "open", "100.00", 2),
        order(2, "EMEA", "closed", "50.00", 1),
        order(3, "APAC", "open", "30.00", None),
        order(4, "TEST", "open", "999.00", 9),
        order(5, None, None, None, 4),
        order(6, "APAC", "closed", "0.00", 0),
    ],
    "returns": [
        {"id": 101, "region": "EMEA", "amount": Decimal("-5.00")},
        {"id": 102, "region": "EMEA", "amount": Decimal("3.00")},
        {"id": 103, "region": "APAC", "amount": None},
    ],
    "regions": [
        {"code": "EMEA", "name": "Europe", "low": Decimal("0.00"), "high": Decimal("60.00")},
        {"code": "APAC", "name": "Asia", "low": Decimal("60.00"), "high": Decimal("500.00")},
        {"code": "TEST", "name": "one", "low": Decimal("900.00"), "high": Decimal("1000.00")},
        {"code": "TEST", "name": "two", "low": Decimal("900.00"), "high": Decimal("1000.00")},
    ],
}


def operation(seq: int, type_: str, arguments: dict[str, Any] | None = None, selector: str | None = None) -> Any:
    chosen = {} if selector is None else {"selector": selector}
    return {"seq": seq, "name": f"step {seq}", "type": type_, **chosen, "arguments": arguments or {}}


def update(seq: int, selector: str | None = None, joins: list[Any] | None = None, **columns: str) -> Any:
    assignments = [{"column": column, "expression": text} for column, text in columns.items()]
    return operation(seq, "update", {"joins": joins or [], "assignments": assignments}, selector)


def output(seq: int, selector: str | None = None, **arguments: Any) -> Any:
    destination = {"destination": {"location": {"path": f"out{seq}", "format": "parquet"}}}
    return operation(seq, "output", {**destination, **arguments}, selector)


def aggregation(**columns: str) -> list[dict[str, str]]:
    return [{"column": column, "expression": text} for column, text in columns.items()]


def project(*operations: Any, selectors: dict[str, str] | None = None) -> dict[str, Any]:
    head = {"id": "p", "name": "p", "version": 1, "status": "active", "input_dataset": "orders"}
    return {**head, "selectors": selectors or {}, "operations": list(operations)}


BY_BAND = {"alias": "bands", "dataset_id": "regions", "on": "orders.amount >= bands.low AND orders.amount < bands.high"}
BY_CODE = {"alias": "regions", "dataset_id": "regions", "on": "regions.code = orders.region"}
OWN = {"alias": "own", "dataset_id": "orders", "on": "own.id = orders.id + 1"}
BY_BAND_CODE = {"alias": "second", "dataset_id": "regions", "on": "second.code = bands.code AND orders.id <> 4"}

EVERYTHING = project(
    update(10, a="b", b="a"),
    update(20, "{{open}}", fee="ROUND(amount * 0.1, 2)", status='"invoiced"'),
    operation(30, "delete", selector='region = "TEST"'),
    update(40, _labels='CONCAT(_labels, "x")'),
    update(45, per_piece="amount / qty"),
    update(47, 'orders.region <> "APAC"', [BY_CODE, OWN], place="regions.name", next_amount="own.amount"),
    update(48, None, [BY_BAND, BY_BAND_CODE], band="bands.name", again="second.name"),
    update(
        49,
        'cheap.name = "Europe"',
        [{**BY_BAND, "alias": "cheap", "on": "cheap.high > amount AND cheap.low <= amount"}],
        cheap="TRUE",
    ),
    output(50, "id <= 4", columns=["id", "region"]),
    operation(
        60,
        "aggregate",
        {
            "group_by": ["orders.region"],
            "aggregations": aggregation(
                total="SUM(amount)",
                fees="COUNT(fee)",
                everything="COUNT_ALL()",
                mean="AVG(amount)",
                least="MIN_AGG(amount)",
                most="MAX_AGG(qty)",
                kinds="COUNT_DISTINCT(status)",
            ),
        },
        "amount > 0",
    ),
    operation(70, "append", {"source": {"dataset_id": "returns"}, "source_selector": "returns.amount < 0"}),
    operation(
        80,
        "append",
        {
            "source": {"dataset_id": "returns"},
            "aggregation": {
                "group_by": ["returns.region"],
                "aggregations": aggregation(amount="SUM(returns.amount)", qty="COUNT_ALL()"),
            },
        },
    ),
    update(90, "total IS NOT NULL", status='"sum"'),
    output(100),
    output(110, "id = 4", include_deleted=True, columns=["id", "_deleted", "_labels", "status"]),
    output(120, "id = 4"),
    output(130, "_deleted = TRUE"),
    selectors={"open": 'status = "open"'},
)


@pytest.fixture(scope="module")
def ran(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    folder = tmp_path_factory.mktemp("operations")
    plan = compiled(folder / "workspace", EVERYTHING, DATASETS)
    assert plan is not None
    return run_plan(spark, folder / "storage", plan, DATA)


@pytest.fixture(scope="module")
def orders(ran: Ran) -> dict[int, Cells]:
    """The loaded rows that came out, by id."""
    return {row["id"]: row for row in ran.outputs[100] if isinstance(row["id"], int) and row["id"] < 100}


@pytest.fixture(scope="module")
def sums(ran: Ran) -> dict[str, Cells]:
    return {str(row["region"]): row for row in ran.outputs[100] if row["total"] is not None}


def test_assignments_of_one_update_all_see_the_row_as_it_was_before(orders: dict[int, Cells]) -> None:
    assert [(orders[1]["a"], orders[1]["b"]), (orders[5]["a"], orders[5]["b"])] == [("b1", "a1"), ("b5", "a5")]


def test_an_update_with_a_named_selector_adds_a_column_and_changes_one_on_the_selected_rows(
    ran: Ran, orders: dict[int, Cells]
) -> None:
    assert {id_: row["fee"] for id_, row in orders.items()} == {
        1: Decimal("10.00"),
        2: None,
        3: Decimal("3.00"),
        5: None,
        6: None,
    }
    assert [orders[id_]["status"] for id_ in (1, 2, 3, 5)] == ["invoiced", "closed", "invoiced", None]
    assert ran.counts[20].updated == 3


def test_without_a_selector_an_operation_is_for_all_rows_that_are_not_deleted(ran: Ran) -> None:
    assert ran.counts[10].updated == 6
    assert ran.counts[40].updated == 5


def test_deleted_rows_are_invisible_to_every_later_operation(ran: Ran, sums: dict[str, Cells]) -> None:
    assert ran.counts[30].deleted == 1
    assert ran.outputs[50] == [{"id": 1, "region": "EMEA"}, {"id": 2, "region": "EMEA"}, {"id": 3, "region": "APAC"}]
    assert "TEST" not in sums


def test_without_opting_in_no_deleted_row_is_written_whatever_the_selector_asks_for(ran: Ran) -> None:
    assert ran.outputs[120] == ran.outputs[130] == []


def test_an_output_that_opts_in_writes_deleted_rows_as_they_were_when_they_were_deleted(ran: Ran) -> None:
    assert ran.outputs[110] == [{"id": 4, "_deleted": True, "_labels": "", "status": "invoiced"}]


def test_division_by_zero_and_by_nothing_is_null(orders: dict[int, Cells]) -> None:
    pieces = {id_: row["per_piece"] for id_, row in orders.items()}
    assert pieces == {1: Decimal(50), 2: Decimal(50), 3: None, 5: None, 6: None}


def test_an_update_sees_the_joined_row_for_the_rows_it_is_for_and_null_where_nothing_matches(
    orders: dict[int, Cells],
) -> None:
    assert {id_: row["place"] for id_, row in orders.items()} == {1: "Europe", 2: "Europe", 3: None, 5: None, 6: None}


def test_a_join_to_the_own_input_sees_it_as_it_was_loaded(orders: dict[int, Cells]) -> None:
    assert orders[1]["next_amount"] == Decimal("50.00")
    assert orders[2]["next_amount"] == Decimal("30.00")


def test_an_inequality_join_finds_the_band_and_a_second_join_may_use_the_first(orders: dict[int, Cells]) -> None:
    bands = {id_: (row["band"], row["again"]) for id_, row in orders.items()}
    assert bands == {
        1: ("Asia", "Asia"),
        2: ("Europe", "Europe"),
        3: ("Europe", "Europe"),
        5: (None, None),
        6: ("Europe", "Europe"),
    }


def test_a_selector_may_look_at_joined_columns(ran: Ran, orders: dict[int, Cells]) -> None:
    assert {id_ for id_, row in orders.items() if row["cheap"]} == {2, 3, 6}
    assert ran.counts[49].updated == 3


def test_an_aggregate_adds_summaries_with_every_function_and_leaves_the_rows_alone(
    ran: Ran, sums: dict[str, Cells], orders: dict[int, Cells]
) -> None:
    names = ("total", "fees", "everything", "mean", "least", "most", "kinds")
    assert [sums["EMEA"][name] for name in names] == [150, 1, 2, 75, 50, 2, 2]
    assert [sums["APAC"][name] for name in names] == [30, 1, 1, 30, 30, None, 1]
    assert ran.counts[60].created == 2
    assert len(orders) == 5
    assert all(row["total"] is None for row in orders.values())


def test_summary_rows_belong_to_the_period_of_the_run_and_have_no_other_values(sums: dict[str, Cells]) -> None:
    assert {sums["EMEA"][name] for name in ("id", "amount", "qty", "fee", "a")} == {None}
    assert (sums["EMEA"]["_period"], sums["EMEA"]["_labels"]) == (PERIOD, "")
    assert sums["EMEA"]["status"] == "sum"


def test_append_brings_the_rows_that_the_source_selector_matches_and_fills_up_with_null(ran: Ran) -> None:
    (appended,) = (row for row in ran.outputs[100] if row["id"] == 101)
    assert (appended["region"], appended["amount"]) == ("EMEA", Decimal("-5.00"))
    assert {appended[name] for name in ("status", "qty", "fee", "a", "total", "band")} == {None}
    assert (appended["_period"], appended["_labels"]) == (PERIOD, "")
    assert ran.counts[70].created == 1


def test_append_can_bring_summaries_of_the_source(ran: Ran) -> None:
    appended = [row for row in ran.outputs[100] if row["id"] is None and row["total"] is None]
    found = {(row["region"], row["amount"], row["qty"]) for row in appended}
    assert found == {("EMEA", Decimal("-2.00"), 2), ("APAC", None, 1)}


def test_an_output_without_columns_writes_all_of_them_and_who_each_row_is(ran: Ran) -> None:
    names = list(ran.outputs[100][0])
    assert names[:7] == list(COLUMNS)
    assert names[-3:] == ["_period", "_labels", "_row_id"]
    ids = {row["_row_id"] for row in ran.outputs[100]}
    assert len(ids) == len(ran.outputs[100]) == ran.counts[100].written == 10


def test_the_row_ids_of_outputs_are_those_of_the_trace(ran: Ran) -> None:
    trace = ran.trace()
    for row in ran.outputs[100]:
        state = trace.state(str(row["_row_id"])).state
        assert state is not None
        assert {name: state[name] for name in row if name != "_row_id"} == {
            name: value for name, value in row.items() if name != "_row_id"
        }
    trace.close()


def test_only_outputs_leave_anything_outside_the_storage_root(ran: Ran) -> None:
    workspace = ran.root.parent / "workspace"
    assert {path.suffix for path in workspace.rglob("*") if path.is_file()} == {".yaml"}
    assert {path.name for path in ran.root.iterdir()} == {"runs"}


def test_a_personal_value_that_does_not_fit_is_told_without_the_value(spark: SparkSession, tmp_path: Path) -> None:
    steps = [update(10, None, [], copied="qty"), update(20, "id = 4", [], qty="copied * 9000000000000000000")]
    plan = compiled(tmp_path / "workspace", project(*steps), DATASETS)
    assert plan is not None
    marked = tuple(replace(each, privacy="personal" if each.name == "qty" else None) for each in plan.input.columns)
    plan = replace(plan, input=replace(plan.input, columns=marked))
    with pytest.raises(ClewError) as failed:
        run_plan(spark, tmp_path / "storage", plan, DATA)
    message = failed.value.diagnostic.message
    assert "81000000000000000000" not in message
    assert 'step 20 "step 20", column qty: a value does not fit, which is not shown' in message
    assert "row id 4 (" in message


def failure(spark: SparkSession, folder: Path, operations: list[Any], data: Any = None) -> Any:
    plan = compiled(folder / "workspace", project(*operations), DATASETS)
    assert plan is not None
    with pytest.raises(ClewError) as failed:
        run_plan(spark, folder / "storage", plan, data or DATA)
    return failed.value.diagnostic


def test_a_value_that_does_not_fit_is_told_with_step_column_value_and_row(spark: SparkSession, tmp_path: Path) -> None:
    told = failure(
        spark, tmp_path, [update(10, None, small="1"), update(20, "id = 4", [], qty="qty * 9000000000000000000")]
    )
    assert told.code == "ValueOutOfRange"
    assert told.span is not None
    for part in ('step 20 "step 20"', "column qty: 81000000000000000000", "row id 4 ("):
        assert part in told.message


def test_the_culprit_is_looked_for_among_the_rows_that_the_step_is_for(spark: SparkSession, tmp_path: Path) -> None:
    """Row 1 could not be calculated either, but it is not needed."""
    told = failure(spark, tmp_path, [update(20, "id >= 4", [], c="TO_DECIMAL(amount, 3, 2)")])
    assert "999.00" in told.message
    assert "row id 4 (" in told.message


def test_rows_that_are_deleted_or_not_selected_cannot_fail(spark: SparkSession, tmp_path: Path) -> None:
    fits = "TO_DECIMAL(amount, 4, 2)"
    plan = compiled(
        tmp_path / "workspace",
        project(
            update(5, 'region = "TEST"', [BY_BAND_OF_OTHERS], status="COALESCE(bands.name, status)"),
            operation(10, "delete", selector="amount >= 100 AND status <> COALESCE(a, status)"),
            update(20, f"{fits} < 60", [], fit=fits),
            update(30, None, [{**BY_CODE, "on": f"regions.low = {fits}"}], place="regions.name"),
            operation(
                40, "aggregate", {"group_by": ["region"], "aggregations": aggregation(n="COUNT_ALL()")}, f"{fits} > 1"
            ),
            output(50, f"{fits} >= 30", columns=["id"]),
        ),
        DATASETS,
    )
    assert plan is not None
    ran = run_plan(spark, tmp_path / "storage", plan, DATA)
    assert ran.outputs[50] == [{"id": 2}, {"id": 3}]
    assert (ran.counts[20].updated, ran.counts[40].created) == (3, 2)


BY_BAND_OF_OTHERS = {**BY_BAND, "on": 'orders.id < bands.low AND bands.name = "one"'}


@pytest.mark.parametrize("join", [BY_CODE, BY_BAND], ids=["by equality", "by inequality"])
def test_a_join_that_matches_twice_names_the_row_and_both_matches(
    spark: SparkSession, tmp_path: Path, join: Any
) -> None:
    told = failure(spark, tmp_path, [update(10, None, [join], place=f"{join['alias']}.name"), output(20)])
    assert told.code == "JoinNotUnique"
    for part in ('step 10 "step 10"', "2 rows of", "(name one) and (name two)"):
        assert part in told.message
    assert told.hint.startswith("1 row would be duplicated")


def test_a_second_join_that_matches_twice_through_the_first_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    first = {**BY_CODE, "alias": "one", "on": 'one.code = orders.region AND one.name <> "two"'}
    second = {**BY_CODE, "alias": "two", "on": "two.low = one.low"}
    told = failure(spark, tmp_path, [update(10, None, [first, second], place="two.name")])
    assert (told.code, "rows of two match" in told.message) == ("JoinNotUnique", True)


def test_rows_that_a_step_is_not_for_may_match_twice(spark: SparkSession, tmp_path: Path) -> None:
    plan = compiled(
        tmp_path / "workspace",
        project(
            update(10, 'region <> "TEST"', [BY_CODE, BY_BAND], place="CONCAT(regions.name, bands.name)"),
            output(20, columns=["id", "place"]),
        ),
        DATASETS,
    )
    assert plan is not None
    ran = run_plan(spark, tmp_path / "storage", plan, DATA)
    places = {row["id"]: row["place"] for row in ran.outputs[20]}
    assert len(ran.outputs[20]) == 6
    assert places == {1: "EuropeAsia", 2: "EuropeEurope", 3: "AsiaEurope", 4: None, 5: None, 6: "AsiaEurope"}


def test_no_rows_at_all_go_through_every_operation(spark: SparkSession, tmp_path: Path) -> None:
    plan = compiled(tmp_path / "workspace", EVERYTHING, DATASETS)
    assert plan is not None
    ran = run_plan(spark, tmp_path / "storage", plan, {"orders": [], "returns": [], "regions": []})
    assert ran.outputs == {50: [], 100: [], 110: [], 120: [], 130: []}
    assert all(count.updated == count.created == count.deleted == 0 for count in ran.counts.values())


def test_a_sum_that_is_too_large_names_the_column(spark: SparkSession, tmp_path: Path) -> None:
    many = [{**order(index, "EMEA", "open", "9999999999.99", 1)} for index in range(3)]
    totals = {"group_by": ["region"], "aggregations": aggregation(n="COUNT_ALL()", amount="SUM(amount)")}
    told = failure(spark, tmp_path, [operation(10, "aggregate", totals)], {**DATA, "orders": many})
    assert told.code == "ValueOutOfRange"
    assert "column amount" in told.message


def test_two_hundred_updates_run_in_segments(spark: SparkSession, tmp_path: Path) -> None:
    steps = [update(seq, None, [], amount="amount + 1") for seq in range(1, 201)]
    plan = compiled(tmp_path / "workspace", project(*steps, output(201, columns=["id", "amount"])), DATASETS)
    assert plan is not None
    ran = run_plan(spark, tmp_path / "storage", plan, {**DATA, "orders": DATA["orders"][:2]})
    assert {row["id"]: row["amount"] for row in ran.outputs[201]} == {1: Decimal("300.00"), 2: Decimal("250.00")}
    assert all(ran.counts[seq].updated == 2 for seq in range(1, 201))
    trace = ran.trace()
    row_id = trace.search("id = 1").rows[0].row_id
    states = [trace.state(row_id, seq).state for seq in (0, 99, 200)]
    assert [state["amount"] for state in states if state] == [100, 199, 300]
    check_segments(trace, tmp_path / "storage")
    trace.close()


def check_segments(trace: RunTrace, storage: Path) -> None:
    """A part has the differences of at most a dozen steps, and the state after the last of them once, if a dozen."""
    changes = sorted((part for part in trace.parts if part.kind == "changes"), key=lambda part: part.steps[0].seq)
    assert [step.seq for part in changes for step in part.steps] == list(range(1, 201))
    assert [len(part.steps) for part in changes] == [12] * 16 + [8]
    for part in changes:
        is_segment = len(part.steps) == 12
        assert bool(part.columns) is is_segment
        first, last = part.steps[0].seq, part.steps[-1].seq
        for file in part.files:
            for row in pq.read_table(storage / file.path).to_pylist():
                after = [row[after_column(step.seq, 0)] for step in part.steps]
                assert [amount - after[0] for amount in after] == list(range(last - first + 1))
                assert row.get("amount") == (after[-1] if is_segment else None)


def test_aliases_and_columns_with_two_underscores_are_kept_apart(spark: SparkSession, tmp_path: Path) -> None:
    datasets = DATASETS | {
        "left": {"columns": {"k": "integer", "b__c": "string"}, "mode": "none", "table": "left"},
        "right": {"columns": {"k": "integer", "c": "string"}, "mode": "none", "table": "right"},
    }
    data = DATA | {"left": [{"k": 1, "b__c": "of a"}], "right": [{"k": 1, "c": "of a__b"}]}
    joins = [
        {"alias": "a", "dataset_id": "left", "on": "a.k = orders.id"},
        {"alias": "a__b", "dataset_id": "right", "on": "a__b.k = a.k"},
    ]
    steps = [update(10, "id = 1", joins, one="a.b__c", other="a__b.c"), output(20, "id = 1", columns=["one", "other"])]
    plan = compiled(tmp_path / "workspace", project(*steps), datasets)
    assert plan is not None
    assert run_plan(spark, tmp_path / "storage", plan, data).output == [{"one": "of a", "other": "of a__b"}]


def test_a_sum_of_many_terms_runs(spark: SparkSession, tmp_path: Path) -> None:
    steps = [
        update(10, "id = 1", [], many="qty" + " + qty" * 180, exact="amount" + " - 0.01" * 180),
        output(20, "id = 1", columns=["many", "exact"]),
    ]
    plan = compiled(tmp_path / "workspace", project(*steps), DATASETS)
    assert plan is not None
    assert run_plan(spark, tmp_path / "storage", plan, DATA).output == [{"many": 362, "exact": Decimal("98.20")}]
