"""Versions of datasets and states of resolvers that a project can no longer live with."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from clew.api.projects import activate
from clew.api.run_view import RunView
from clew.api.workspace_files import WorkspaceFiles
from clew.runs.registry import DatasetFile, Registration
from tests.engine.engine_workspaces import SHOP, Shop, make_shop

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def output(path: str, **arguments: Any) -> dict[str, Any]:
    destination = {"datasource_id": "reports", "path": path}
    return {"seq": 20, "name": "Write", "type": "output", "arguments": {"destination": destination, **arguments}}


def told(view: RunView) -> tuple[str, str | None]:
    return view.snapshot.status.value, view.failure.code if view.failure else None


def test_a_version_that_takes_away_columns_in_use_is_a_conflict_and_a_pinned_one_still_serves(shop: Shop) -> None:
    shop.project("close", output("closed", register_as_dataset="closed"))
    shop.project("report", output("report", columns=["id", "amount"]), dataset="closed")
    assert told(shop.run("close")) == ("COMPLETED", None)
    assert told(shop.run("report")) == ("COMPLETED", None)

    file = DatasetFile("datasets/closed/none.parquet", 1, 1, "", "2026-01", "another-run", 20)
    columns = (("id", "string"), ("_period", "string"))
    second = Registration("closed", "another-run", 20, "2026-01", "orders", columns, (file,))
    february = replace(second, run_id="a-third", period="2026-02", files=(replace(file, period="2026-02"),))
    with shop.starter() as starter:
        starter.state.datasets.register(second)
        starter.state.datasets.register(february)
    view = shop.run("report")
    assert told(view) == ("FAILED", "DatasetConflict")
    assert view.failure is not None
    assert view.failure.message == (
        'version 2 of the dataset "closed" has "id" as string, not integer and has no column "amount", '
        'which the project "report" uses; version 1 was the last that fits'
    )

    pinned = {"dataset_id": "closed", "dataset_version": 1}
    shop.project("report", output("report", columns=["id", "amount"]), dataset=pinned)
    with shop.starter() as starter:
        activate(WorkspaceFiles(shop.root), starter.state, "report", actor="tester")
    assert told(shop.run("report")) == ("COMPLETED", None)


def test_a_resolver_that_is_no_longer_active_is_not_used(shop: Shop) -> None:
    shop.project("p", output("out"))
    with shop.starter() as starter:
        activate(WorkspaceFiles(shop.root), starter.state, "p", actor="tester")
    shop.write({"resolvers/r.yaml": {**SHOP["resolvers/r.yaml"], "status": "inactive"}})
    view = shop.run("p")
    assert told(view) == ("FAILED", "ResolverInactive")
    assert view.failure is not None
    assert view.failure.message == 'the resolver "r" is inactive, not active'
    assert shop.published() == set()
