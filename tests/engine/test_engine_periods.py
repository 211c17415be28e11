"""Periods of runs: those without rows, and those that hold others."""

from pathlib import Path
from typing import Any

import pytest

from clew.api.run_view import RunView
from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from tests.engine.engine_workspaces import Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")

COLUMNS = [{"name": "id", "type": "integer"}, {"name": "amount", "type": "decimal(12,2)"}]
SALES = {"id": "sales", "main_table": {"name": "sales", "temporal_mode": "period", "columns": COLUMNS}}
HEADER = "id,amount,_period\n"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Sales of all months in one file; one project registers them, another one reads what was registered."""
    shop = make_shop(tmp_path)
    rows = "1,10.00,2026-01\n2,20.00,2026-02\n3,30.00,2026-03\n"
    shop.write({"datasets/sales.yaml": SALES, "data/sales.csv": HEADER + rows})
    shop.project("close", output("closed", register_as_dataset="closed"), dataset="sales")
    return shop.project("report", output("report"), dataset="closed")


def output(path: str, **arguments: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path}
    return {"seq": 20, "name": "Write", "type": "output", "arguments": {"destination": destination, **arguments}}


def failure(view: RunView) -> tuple[str, str, str]:
    assert view.snapshot.status.value == "FAILED"
    assert view.failure is not None
    return view.failure.code, view.failure.message, view.failure.hint or ""


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("", 'sales.csv has no rows of "sales" for the period "2026-01"'),
        ("2,20.00,2026-02\n", "; the row there is not of this period"),
        ("2,20.00,2026-02\n3,30.00,2026-03\n", "; the 2 rows there are not of this period"),
    ],
)
def test_an_input_without_rows_of_the_period_is_an_error_and_a_retry_finds_them(
    shop: Shop, rows: str, told: str
) -> None:
    shop.write({"data/sales.csv": HEADER + rows})
    view = shop.run("close")
    code, message, hint = failure(view)
    assert code == "SourceUnavailable"
    assert message.endswith(told)
    assert "may_be_empty: true" in hint
    assert shop.published() == set()
    shop.write({"data/sales.csv": HEADER + "1,10.00,2026-01\n" + rows})
    assert shop.retry(view, 0).snapshot.status.value == "COMPLETED"
    assert [row["id"] for row in shop.read("reports/closed")] == [1]


def test_a_dataset_that_may_be_empty_is_none_and_its_outputs_are_empty(shop: Shop) -> None:
    shop.write({"data/sales.csv": HEADER, "datasets/sales.yaml": {**SALES, "may_be_empty": True}})
    assert shop.run("close").snapshot.status.value == "COMPLETED"
    assert shop.read("reports/closed") == []


def test_a_registered_dataset_without_rows_of_the_period_is_an_error_too(shop: Shop) -> None:
    assert shop.run("close").snapshot.status.value == "COMPLETED"
    code, message, hint = failure(shop.run("report", "2026-02"))
    assert (code, message) == (
        "SourceUnavailable",
        'version 1 of the dataset "closed" has no rows for the period "2026-02"',
    )
    assert hint.startswith('run the project that registers it for "2026-02" first')
    assert shop.run("close", "2026-02").snapshot.status.value == "COMPLETED"
    assert shop.run("report", "2026-02").snapshot.status.value == "COMPLETED"


def test_a_quarter_takes_the_place_of_its_months_in_a_registered_dataset(shop: Shop) -> None:
    for period in ("2026-01", "2026-02", "2026-Q1"):
        assert shop.run("close", period).snapshot.status.value == "COMPLETED"
    for period, ids in (("2026-01", [1]), ("2026-Q1", [1, 2, 3])):
        assert shop.run("report", period).snapshot.status.value == "COMPLETED"
        assert sorted(row["id"] for row in shop.read("reports/report")) == ids


def test_a_month_of_a_registered_quarter_is_refused_before_its_rows_are_there_twice(shop: Shop) -> None:
    assert shop.run("close", "2026-Q1").snapshot.status.value == "COMPLETED"
    before = shop.published()
    code, message, hint = failure(shop.run("close", "2026-01"))
    assert code == "RegistrationConflict"
    assert message.endswith(
        "has the rows of 2026-Q1, and 2026-01 is part of it: its rows would be in the dataset twice"
    )
    assert hint.startswith("run the project for 2026-Q1 again")
    assert shop.published() == before


def test_a_month_of_a_registered_quarter_is_refused_before_an_earlier_output_is_published(shop: Shop) -> None:
    assert shop.run("close", "2026-Q1").snapshot.status.value == "COMPLETED"
    before = shop.published()
    shop.project(
        "again",
        {**output("first"), "seq": 10, "name": "First"},
        output("second", register_as_dataset="closed"),
        dataset="sales",
    )
    (shop.root / "projects" / "close.yaml").unlink()
    view = shop.run("again", "2026-01")
    assert failure(view)[0] == "RegistrationConflict"
    assert view.failed_step is None
    assert [step.status.value for step in view.snapshot.steps if step.status.value != "PENDING"] == []
    assert shop.published() == before
    with pytest.raises(UserError, match="has the rows of 2026-Q1, and 2026-01 is part of it"):
        Workspace(shop.root).dry_run("again", "2026-01")
