"""Outputs: where they go, what they write, and in which mode."""

from collections.abc import Callable

import pytest

from clew.plan.json_form import to_plain
from clew.plan.operations import Destination, OutputStep
from tests.plan.plan_workspaces import Checked

Check = Callable[..., Checked]


def writing(arguments: str) -> str:
    return f"- {{seq: 1, name: out, type: output, arguments: {{{arguments}}}}}"


def output_of(found: Checked) -> OutputStep:
    [step] = found.plan.steps
    assert isinstance(step, OutputStep)
    return step


@pytest.mark.parametrize(
    ("destination", "expected"),
    [
        ("{datasource_id: files, path: 'a/{period}.csv'}", Destination("files", None, "a/{period}.csv", "csv", ())),
        ("{datasource_id: books, table: t}", Destination("books", "t", None, None, ())),
        ("{location: {path: out, format: delta}}", Destination(None, None, "out", "delta", ())),
        (
            "{location: {path: out.csv, options: {header: true, b: 2, a: x, unset: null}}}",
            Destination(None, None, "out.csv", "csv", (("a", "x"), ("b", "2"), ("header", "true"))),
        ),
    ],
)
def test_a_destination_is_a_datasource_or_a_location(check: Check, destination: str, expected: Destination) -> None:
    assert output_of(check(writing(f"destination: {destination}"))).destination == expected


def test_all_columns_are_written_with_those_of_the_system_unless_some_are_named(check: Check) -> None:
    everything = output_of(check(writing("destination: {location: {path: o}}"))).columns
    assert everything[:2] == ("order_id", "customer_id")
    assert everything[-3:] == ("_period", "_labels", "_row_id")
    with_deleted = output_of(check(writing("destination: {location: {path: o}}, include_deleted: true")))
    assert with_deleted.columns == (*everything, "_deleted")
    named = output_of(check(writing("destination: {location: {path: o}}, columns: [amount, _row_id]")))
    assert (named.columns, named.include_deleted) == (("amount", "_row_id"), False)


@pytest.mark.parametrize(
    ("arguments", "mode"),
    [
        ("destination: {location: {path: o}}", "overwrite"),
        ("destination: {location: {path: o}}, mode: append", "append"),
        ("destination: {location: {path: o}, mode: append}", "append"),
    ],
)
def test_an_output_replaces_unless_it_says_otherwise(check: Check, arguments: str, mode: str) -> None:
    assert output_of(check(writing(arguments))).mode == mode


def test_outputs_may_stand_anywhere_and_write_what_is_there_by_then(check: Check) -> None:
    plan = check("""
        - {seq: 1, name: early, type: output, arguments: {destination: {location: {path: a}}}}
        - {seq: 2, name: add, type: update, arguments: {assignments: [{column: x, expression: amount}]}}
        - {seq: 3, name: late, type: output, arguments: {destination: {location: {path: b}}}}
    """).plan
    early, late = (step for step in plan.steps if isinstance(step, OutputStep))
    assert set(late.columns) - set(early.columns) == {"x"}


def test_an_unknown_datasource_is_found_in_a_project_with_other_mistakes_too(check: Check) -> None:
    check("""
        - {seq: «0», name: x, type: delete}
        - {seq: 2, name: out, type: output, arguments: {destination: {datasource_id: «fils», path: a}}}
    """).reports("InvalidValue", "UnknownDatasource")


def two_outputs(first: str, second: str) -> str:
    return f"""
        - {{seq: 1, name: early, type: output, arguments: {{{first}}}}}
        - {{seq: 2, name: late, type: output, arguments: {{{second}}}}}
    """


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("destination: {location: {path: out}}", "destination: {location: {path: ./out/}}"),
        (
            "destination: {datasource_id: files, path: 'a/{period}'}",
            "destination: {location: {path: 'data/a/{period}'}}",
        ),
        ("destination: {location: {path: out/parts/one}}", "destination: {location: {path: out}}"),
        ("destination: {location: {path: out}}, mode: append", "destination: {location: {path: out}}"),
        ("destination: {datasource_id: books, table: t}", "destination: {datasource_id: books, table: t}"),
    ],
)
def test_an_output_that_would_replace_an_earlier_one_of_its_run_is_refused(
    check: Check, first: str, second: str
) -> None:
    [found] = check(two_outputs(first, second)).diagnostics
    assert found.code == "OutputConflict"
    assert 'would replace what step 1 "early" (projects/p.yaml:' in found.message
    assert found.span is not None
    assert found.span.line == int(found.message.split("projects/p.yaml:")[1].split(":")[0]) + 1
    assert found.hint is not None
    assert "mode: append" in found.hint


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("destination: {location: {path: out}}", "destination: {location: {path: out}}, mode: append"),
        ("destination: {location: {path: out}}", "destination: {location: {path: outer}}"),
        ("destination: {location: {path: out}}", "destination: {location: {path: out/parts}}"),
        ("destination: {datasource_id: books, table: t}", "destination: {datasource_id: books, table: u}"),
        ("destination: {datasource_id: books, table: t}", "destination: {location: {path: t}}"),
    ],
)
def test_outputs_that_leave_each_other_alone_are_no_conflict(check: Check, first: str, second: str) -> None:
    assert len(check(two_outputs(first, second)).plan.steps) == 2


TO_DELTA = "destination: {location: {path: o, format: delta}}"


def test_a_table_with_commits_may_be_updated_by_keys_and_may_grow(check: Check) -> None:
    step = output_of(check(writing(f"{TO_DELTA}, mode: upsert, upsert_by: [order_id], new_columns: add")))
    assert (step.mode, step.upsert_by, step.adds_columns) == ("upsert", ("order_id",), True)
    plain = output_of(check(writing(f"{TO_DELTA}, mode: replace_period")))
    assert (plain.mode, plain.upsert_by, plain.adds_columns, plain.destination.options) == (
        "replace_period",
        (),
        False,
        (),
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("destination: {location: {path: o}}, mode: upsert, upsert_by: [order_id]", "needs a table with commits"),
        ("destination: {location: {path: o}, mode: replace_period}", "needs a table with commits"),
        ("destination: {datasource_id: books, table: t}, mode: replace_period", "needs a table with commits"),
        (f"{TO_DELTA}, mode: upsert", "the mode upsert needs upsert_by"),
        (f"{TO_DELTA}, upsert_by: [order_id]", "upsert_by is for the mode upsert only"),
        (f"{TO_DELTA}, mode: upsert, upsert_by: [order]", 'upsert_by names "order", which is not a column'),
        (f"{TO_DELTA}, mode: upsert, upsert_by: [_row_id]", 'upsert_by names "_row_id", which is not a column'),
        (f"{TO_DELTA}, mode: replace_period, columns: [order_id]", "replace_period needs the column _period"),
        ("destination: {location: {path: o}}, new_columns: add", "new_columns is for the formats delta and iceberg"),
        (
            "destination: {location: {path: o, format: delta, options: {upsert_by: a}}}",
            "is not an option of the format",
        ),
    ],
)
def test_what_a_table_with_commits_cannot_do_is_told_at_its_place(check: Check, arguments: str, problem: str) -> None:
    [found] = check(writing(arguments)).diagnostics
    assert found.code == "InvalidValue"
    assert problem in found.message
    assert found.span is not None
    assert found.hint


def arranged(arguments: str, path: str = "out", format_: str = "csv", **more: str) -> str:
    of = ", ".join(f"{name}: {value}" for name, value in more.items())
    destination = f"{{location: {{path: {path}, format: {format_}}}}}"
    given = f"destination: {destination}, {of + ', ' if of else ''}{arguments}"
    return f"- {{seq: 1, name: w, type: output, arguments: {{{given}}}}}"


def test_an_output_may_be_sorted_and_divided(check: Check) -> None:
    keys = "sort: [region, orders.amount desc]"
    [step] = check(arranged(f"{keys}, file_per: 'UPPER(region)', columns: [amount]")).plan.steps
    assert isinstance(step, OutputStep)
    assert [key.text for key in step.sorted_by] == ["region", "amount desc"]
    assert step.file_per is not None
    assert step.file_per.text == "UPPER(region)"
    assert [(read.column, read.because) for read in step.reads] == [("region", "file_per")]
    [divided] = check(arranged("partition_by: [region], columns: [region, amount]")).plan.steps
    assert isinstance(divided, OutputStep)
    assert divided.partition_by == ("region",)
    assert "folders by" in [detail.label for detail in divided.details()]
    [plain] = check(arranged("columns: [region, amount]")).plan.steps
    written = to_plain(plain)
    assert isinstance(written, dict)
    assert not {"sorted_by", "partition_by", "file_per"} & written.keys(), "plans without them stay as they were"


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        (arranged("«partition_by»: [region]", path="out.csv"), "InvalidValue"),
        (arranged("«file_per»: region", path="out.csv"), "InvalidValue"),
        (arranged("«sort»: [region]", format_="delta"), "InvalidValue"),
        (arranged("partition_by: [region], «file_per»: region"), "InvalidValue"),
        (arranged("«file_per»: region", mode="append"), "InvalidValue"),
        (arranged("partition_by: [«region»], columns: [amount]"), "InvalidValue"),
        (arranged("partition_by: [«region»], columns: [region]"), "InvalidValue"),
        (arranged("partition_by: [region, «region»]"), "InvalidValue"),
        (arranged("sort: [«regoin»]"), "UnknownColumn"),
        (arranged("file_per: «SQRT(amount)»"), "InvalidValue"),
        (arranged("file_per: «nowhere»"), "UnknownColumn"),
    ],
)
def test_what_cannot_be_sorted_or_divided_is_said(check: Check, operations: str, code: str) -> None:
    check(operations).reports(code)
