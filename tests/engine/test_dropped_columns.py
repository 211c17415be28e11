"""Columns that an update renames or drops, on Spark: outputs do not have them, histories do."""

from pathlib import Path

import pyarrow.dataset as ds
import pytest

from clew.api.workspace import Workspace
from clew.cli.main import run as command
from tests.engine.engine_workspaces import make_shop
from tests.engine.test_engine_runs import output, told, update

pytestmark = pytest.mark.spark


def test_outputs_have_the_new_names_and_histories_what_the_old_ones_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = make_shop(tmp_path)
    only = {"seq": 5, "name": "drop", "type": "update", "arguments": {"drop": ["currency"]}}
    names = update(10, twice="amount * 2")
    names["arguments"] |= {"rename": {"amount": "paid"}}
    shop.project("p", only, names, update(15, large="paid >= 20"), output(20, "out", register_as_dataset="renamed"))
    shop.project("next", update(10, half="paid / 2"), output(20, "next"), dataset="renamed")
    view = shop.run("p")
    assert told(view) == ("COMPLETED", None, 20)
    columns = ds.dataset(shop.root / "reports" / "out", format="parquet").schema.names
    assert [name for name in columns if not name.startswith("_")] == ["id", "twice", "paid", "large"]
    assert {(row["id"], float(row["paid"]), row["large"]) for row in shop.read("reports/out")} == {
        (1, 10.0, False),
        (2, 20.0, True),
    }
    with Workspace(shop.root) as opened:
        run = opened.get_run(view.record.run_id)
        [row] = run.trace(where='currency = "USD"').rows
        assert "recomputed: equal" in run.explain(row.row_id, "paid").to_text()
    monkeypatch.chdir(shop.root)
    assert command(["verify", view.record.run_id, "--deep"]) == 0
    assert told(shop.run("next")) == ("COMPLETED", None, 20)
    assert {(row["id"], float(row["half"])) for row in shop.read("reports/next")} == {(1, 5.0), (2, 10.0)}
