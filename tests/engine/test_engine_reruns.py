"""Reruns on Spark: what is taken over, that the result is that of a full run, and that either run may go."""

from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from tests.change.rerun_shops import (
    ORDERS,
    answers,
    completed,
    found,
    full,
    operation,
    output,
    reasons,
    rerun,
    rerun_shop,
    setting,
    six_steps,
    taken,
)
from tests.engine.engine_workspaces import Shop

pytestmark = pytest.mark.usefixtures("spark")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return rerun_shop(tmp_path)


def rows_of(shop: Shop, run: Any) -> list[dict[str, Any]]:
    (out,) = run.outputs
    return sorted(shop.read(out["path"]), key=str)


def test_a_change_of_the_last_operation_keeps_all_that_comes_before_it(shop: Shop) -> None:
    first = full(shop)
    steps = six_steps()
    steps[4]["arguments"]["assignments"][0]["expression"] = "net * COALESCE(r.rate, 1) + 5"
    shop.project("six", *steps, status="draft")
    again = rerun(shop, first)
    rows = rows_of(shop, again)
    assert taken(again) == [10, 20, 30, 40]
    assert reasons(again) == {50: "the operation was changed"}
    whole = full(shop)
    assert rows_of(shop, whole) == rows
    assert answers(again) == answers(whole)
    for run in (first, again):
        assert found(shop, run).verify(deep=True).findings == ()
