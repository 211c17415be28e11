"""Doubles as keys: NaN equals itself and the two zeros are equal, wherever rows are matched or told apart."""

from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from tests.engine.engine_workspaces import Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")

_READING = {
    "id": "readings",
    "main_table": {
        "name": "readings",
        "temporal_mode": "none",
        "columns": [{"name": "id", "type": "integer"}, {"name": "level", "type": "double"}],
    },
}
_LEVELS = {
    "id": "levels",
    "main_table": {
        "name": "levels",
        "temporal_mode": "none",
        "columns": [{"name": "level", "type": "double"}, {"name": "label", "type": "string"}],
    },
}
_NAME_LEVELS = {
    "seq": 10,
    "name": "Name levels",
    "type": "update",
    "arguments": {
        "joins": [{"alias": "levels", "dataset_id": "levels", "on": "levels.level = readings.level"}],
        "assignments": [{"column": "label", "expression": "levels.label"}],
    },
}
_WRITE = {
    "seq": 20,
    "name": "Write",
    "type": "output",
    "arguments": {
        "destination": {"datasource_id": "reports", "path": "named"},
        "columns": ["id", "level", "label", "_row_id"],
    },
}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = make_shop(tmp_path)
    shop.write({"datasets/readings.yaml": _READING, "datasets/levels.yaml": _LEVELS})
    shop.write({"data/readings.csv": "id,level\n1,0.5\n2,NaN\n3,-0.0\n4,\n5,1.5\n"})
    return shop.project("label", _NAME_LEVELS, _WRITE, dataset="readings")


def levels(*rows: str) -> dict[str, Any]:
    return {"data/levels.csv": "level,label\n" + "".join(f"{row}\n" for row in rows)}


@pytest.mark.parametrize("rows", [("NaN,one", "NaN,two", "0.5,half"), ("0.0,one", "-0.0,two", "0.5,half")])
def test_a_join_on_a_key_that_two_rows_share_is_refused(shop: Shop, rows: tuple[str, ...]) -> None:
    view = shop.write(levels(*rows)).run("label")
    assert view.failure is not None
    assert view.failure.code == "JoinNotUnique"
    assert "2 rows of levels match" in view.failure.message
    assert shop.published() == set()


def test_rows_match_on_nan_and_on_zero_and_stay_the_rows_that_they_are(shop: Shop) -> None:
    """Output, trace and explanation agree on every row."""
    view = shop.write(levels("NaN,none", "0.0,zero", "0.5,half")).run("label")
    assert view.snapshot.status.value == "COMPLETED"
    written = {row["id"]: row for row in shop.read("reports/named")}
    assert {key: row["label"] for key, row in written.items()} == {1: "half", 2: "none", 3: "zero", 4: None, 5: None}
    assert len({row["_row_id"] for row in written.values()}) == len(written)
    run = Workspace(shop.root).get_run(view.record.run_id)
    for row in written.values():
        history = run.trace(row["_row_id"])
        assert history.entries[-1].full_state.get("label") == row["label"]
        assert history.entries[0].full_state["id"] == row["id"]


@pytest.mark.parametrize("keys", ["NaN NaN", "0.0 -0.0"])
def test_a_natural_key_that_is_a_double_comes_once(shop: Shop, keys: str) -> None:
    shop.write({"datasets/levels.yaml": {**_LEVELS, "natural_key": ["level"]}})
    one, other = keys.split()
    view = shop.write(levels(f"{one},one", f"{other},two")).run("label")
    assert view.failure is not None
    assert view.failure.code == "SchemaMismatch"
    assert "natural key" in view.failure.message
