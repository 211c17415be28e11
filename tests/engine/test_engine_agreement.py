"""Where the output, the trace and the checks of a run could disagree."""

import math
from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from tests.engine.engine_workspaces import SHOP, Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def update(column: str, expression: str, **more: Any) -> dict[str, Any]:
    joins = more.pop("joins", [])
    arguments = {"joins": joins, "assignments": [{"column": column, "expression": expression}]}
    return {"seq": 10, "name": "Set", "type": "update", "arguments": arguments, **more}


def output(*columns: str) -> dict[str, Any]:
    arguments = {"destination": {"datasource_id": "reports", "path": "out"}, "columns": list(columns)}
    return {"seq": 20, "name": "Write", "type": "output", "arguments": arguments}


def test_a_zero_that_changes_only_its_sign_is_the_same_in_output_and_trace(shop: Shop) -> None:
    """The two zeros are equal, so this is no change, and no record: the row keeps the value that it had."""
    table = SHOP["datasets/targets.yaml"]["main_table"]
    columns = [{"name": "id", "type": "integer"}, {"name": "ratio", "type": "double"}]
    shop.write(
        {
            "datasets/ratios.yaml": {"id": "ratios", "main_table": {**table, "name": "ratios", "columns": columns}},
            "data/ratios.csv": "id,ratio,_period\n1,0.0,2026-01\n2,1.5,2026-01\n3,-0.0,2026-01\n",
        }
    )
    shop.project("p", update("ratio", "ratio * -1"), output("id", "ratio", "_row_id"), dataset="ratios")
    view = shop.run("p")
    run = Workspace(shop.root).get_run(view.record.run_id)
    written = {row["id"]: row for row in shop.read("reports/out")}
    for row in written.values():
        traced = run.trace(row["_row_id"], at=10).state
        assert traced is not None
        assert (traced["ratio"], math.copysign(1, traced["ratio"])) == (  # type: ignore[arg-type]
            row["ratio"],
            math.copysign(1, row["ratio"]),
        )
    assert [record.after for record in run.records(step=10).records] == [{"ratio": -1.5}]


class TestSelectorsOverJoins:
    """Conditions on the row itself choose rows before a join, whatever else the selector looks at."""

    @pytest.fixture
    def doubled(self, shop: Shop) -> Shop:
        """EUR has two goals, USD has one."""
        return shop.write({"data/targets.csv": "currency,goal,_period\nEUR,1,2026-01\nEUR,2,2026-01\nUSD,3,2026-01\n"})

    def project(self, shop: Shop, selector: str) -> Any:
        join = {"alias": "t", "dataset_id": "targets", "on": "t.currency = orders.currency"}
        return shop.project("p", update("goal", "t.goal", joins=[join], selector=selector), output("id", "goal")).run(
            "p"
        )

    def test_rows_that_the_selector_leaves_out_by_themselves_cannot_be_doubled(self, doubled: Shop) -> None:
        view = self.project(doubled, 'orders.currency = "USD" AND t.goal > 0')
        assert view.snapshot.status.value == "COMPLETED"
        assert {row["id"]: row["goal"] for row in doubled.read("reports/out")} == {1: None, 2: 3}

    def test_a_condition_on_the_joined_row_comes_after_the_join_and_the_error_says_so(self, doubled: Shop) -> None:
        view = self.project(doubled, "t.goal > 2")
        assert view.failure is not None
        assert view.failure.code == "JoinNotUnique"
        assert "apply after the join" in (view.failure.hint or "")
