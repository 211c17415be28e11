"""Projects written in Python give the plans that project files give."""

from pathlib import Path

import pytest

import clew
from clew.api.fluent import ProjectBuilder
from clew.diagnostics import UserError
from clew.plan.operations import OutputStep
from clew.sample import write_sample

ACCOUNTS = clew.join("accounts", "accounts", on="accounts.account_code = transactions.account_code")

REVIEWED = [
    "journal_id",
    "line_number",
    "account_code",
    "cost_center",
    "currency",
    "amount_local",
    "amount_usd",
    "_deleted",
]
PUBLISHED = [
    "_period",
    "row_kind",
    "journal_id",
    "line_number",
    "posting_date",
    "account_code",
    "account_type",
    "cost_center",
    "description",
    "currency",
    "amount_local",
    "category",
    "amount_usd",
    "total_usd",
    "line_count",
]


@pytest.fixture
def workspace(tmp_path: Path) -> clew.Workspace:
    write_sample(tmp_path / "ledger")
    return clew.open(tmp_path / "ledger")


def month_close() -> ProjectBuilder:
    """projects/gl-close.yaml of the sample, in Python."""
    return (
        clew.project(
            "gl-close",
            input="journal-lines",
            selectors={
                "lines": 'row_kind = "line"',
                "travel": 'transactions.account_code = "5210"',
                "project_travel": '{{travel}} AND STARTSWITH(transactions.cost_center, "P")',
                "test_entries": 'CONTAINS(transactions.description, "TEST")',
            },
            controls=[
                {"name": "Ledger in USD", "expression": "amount_usd", "by": ["account_type"]},
                {"name": "Booked amounts", "expression": "amount_local", "by": ["currency"]},
            ],
        )
        .update(
            "Look up account types",
            {"row_kind": '"line"', "account_type": "accounts.account_type"},
            joins=[ACCOUNTS],
            seq=5,
        )
        .use("fx-to-usd", alias="fx", seq=9)
        .update(
            "Reclassify travel",
            {"account_code": '"5290"', "category": '"projects"'},
            where="{{project_travel}}",
            seq=20,
        )
        .delete("Drop test entries", where="{{test_entries}}", seq=30)
        .assign("cleaned")
        .after_request(
            {
                "name": "converted-lines",
                "tasks": [
                    {"filter": 'currency <> "USD"'},
                    {"sample": {"rows": 200}},
                    {
                        "project": [
                            "journal_id",
                            "line_number",
                            "account_code",
                            "currency",
                            "amount_local",
                            "amount_usd",
                        ]
                    },
                    {"describe": {"columns": ["amount_local", "amount_usd"]}},
                    {"serialize_rowset": {"format": "parquet", "mode": "view"}},
                    {"emit_capture_store": {"store": "close-review", "ttl_days": 7}},
                ],
            }
        )
        .output(
            "Write review file",
            datasource="reports",
            path="review/{period}",
            format="csv",
            columns=REVIEWED,
            include_deleted=True,
            seq=35,
        )
        .aggregate(
            "Totals by type",
            {"total_usd": "SUM(transactions.amount_usd)", "line_count": "COUNT(transactions.journal_id)"},
            group_by=["transactions._period", "transactions.account_type"],
            where="{{lines}}",
            seq=40,
        )
        .update("Mark totals", {"row_kind": '"total"'}, where="row_kind IS NULL", seq=45)
        .assign("after_totals")
        .append(
            "Append budgets",
            "budgets",
            source_where='budgets.status = "approved"',
            group_by=["budgets._period", "budgets.account_code", "budgets.cost_center"],
            aggregations={"amount_usd": "SUM(budgets.amount_usd)"},
            seq=50,
        )
        .update(
            "Mark budgets",
            {"row_kind": '"budget"', "account_type": "accounts.account_type"},
            where="row_kind IS NULL",
            joins=[ACCOUNTS],
            seq=55,
        )
        .output(
            "Publish closed ledger",
            datasource="reports",
            path="gl-closed/{period}",
            format="parquet",
            columns=PUBLISHED,
            register_as="gl-closed",
            seq=60,
        )
    )


def test_the_same_content_gives_the_same_plan_as_the_file(workspace: clew.Workspace) -> None:
    """Both are drafts: the plan of an active project has the resolvers that its version keeps, too."""
    file = workspace.root / "projects" / "gl-close.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("status: active", "status: draft"), encoding="utf-8")
    built, written = workspace.plan(month_close()), clew.open(workspace.root).plan("gl-close")
    assert built.digest == written.digest
    assert built.breakpoints == written.breakpoints


def test_operations_without_a_seq_stand_ten_apart() -> None:
    made = clew.project("x", input="accounts").delete("a", where="TRUE").delete("b", where="TRUE", seq=25)
    assert [operation["seq"] for operation in made.delete("c", where="TRUE").operations] == [10, 25, 35]


def test_a_builder_is_not_changed_by_what_comes_after_it(workspace: clew.Workspace) -> None:
    base = clew.project("x", input="accounts")
    one = base.delete("Drop all", where="account_type IS NULL")
    other = one.assign("dropped")
    assert base.operations == ()
    assert workspace.plan(one).breakpoints == ()
    assert [point.name for point in workspace.plan(other).breakpoints] == ["x::main::dropped"]


def test_a_location_needs_no_datasource(workspace: clew.Workspace) -> None:
    made = clew.project("x", input="accounts").output("Write", path="out/{period}.csv", format="csv", mode="append")
    [step] = workspace.plan(made).steps
    assert isinstance(step, OutputStep)
    assert (step.type, step.destination.path, step.mode) == ("output", "out/{period}.csv", "append")


def test_a_mistake_names_the_project_and_offers_a_near_name(workspace: clew.Workspace) -> None:
    made = clew.project("x", input="accounts").update("Copy", {"copy": "account_cod"})
    with pytest.raises(UserError) as raised:
        workspace.plan(made)
    assert raised.value.code == "UnknownColumn"
    assert raised.value.diagnostic.hint == 'did you mean "account_code"?'
    assert raised.value.diagnostic.span is not None
    assert raised.value.diagnostic.span.file == "<project x>"


def test_a_label_needs_an_operation_before_it() -> None:
    with pytest.raises(ValueError, match="add an operation first"):
        clew.project("x", input="accounts").assign("nothing")
