"""A storage root that is emptied under a run: the run fails with one message, and the next one is whole."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import clew
from clew.diagnostics import ClewError
from clew.engine import parts
from clew.storage.committed import DescribedPart, publish_part
from clew.storage.drafts import Draft
from clew.storage.parts import Part
from tests.engine.engine_workspaces import make_shop
from tests.engine.test_engine_runs import output, told, update

Publish = Callable[[Draft, Part], DescribedPart]
TOTALS = {
    "seq": 20,
    "name": "totals",
    "type": "aggregate",
    "arguments": {"group_by": ["currency"], "aggregations": [{"column": "n", "expression": "SUM(twice)"}]},
}


def emptying(storage: Path, kind: str) -> Publish:
    """Publishing that loses everything under the root as soon as the first part of a kind is there."""
    done = list[str]()

    def publish_and_lose(draft: Draft, part: Part) -> DescribedPart:
        published = publish_part(draft, part)
        if part.kind == kind and not done:
            done.append(part.name)
            for each in storage.iterdir():
                shutil.rmtree(each)
        return published

    return publish_and_lose


@pytest.mark.parametrize("kind", ["input", "changes", "created"])
def test_a_run_whose_storage_is_emptied_fails_and_the_next_one_is_whole(
    spark: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    shop = make_shop(tmp_path).project("p", update(10, twice="amount * 2"), TOTALS, output(30, "out"))
    assert told(shop.run("p", "2026-02")) == ("COMPLETED", None, 30)
    before = shop.read("reports/out")
    with monkeypatch.context() as patched:
        patched.setattr(parts, "publish_part", emptying(shop.storage, kind))
        view = shop.run("p")
    status, code, _ = told(view)
    assert (status, code) == ("FAILED", "DamagedTrace"), view.snapshot.error
    assert shop.read("reports/out") == before
    run = clew.open(shop.root).find_run(view.record.run_id)
    with pytest.raises(ClewError):
        run.trace(where="id = 1")
    assert told(shop.run("p")) == ("COMPLETED", None, 30)
