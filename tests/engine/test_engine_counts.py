"""Every kind of commit, with a file lost between writing and committing: refused, with nothing published."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.captures.worker import CaptureWorker
from clew.definitions import capture_wishes_of_data
from clew.engine.output.places import LocalOutput, StagedPiece
from clew.storage.drafts import Draft
from clew.storage.root import StoredFile
from tests.engine.engine_workspaces import Shop, make_shop

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

MANY = "id,currency,amount,_period\n" + "".join(f"{index},EUR,{index}.25,2026-01\n" for index in range(1, 1201))
STEPS: list[dict[str, Any]] = [
    {
        "seq": 10,
        "name": "Double",
        "type": "update",
        "assign": "doubled",
        "arguments": {"assignments": [{"column": "amount", "expression": "amount * 2"}]},
    },
    {
        "seq": 20,
        "name": "Totals",
        "type": "aggregate",
        "arguments": {"group_by": ["id"], "aggregations": [{"column": "total", "expression": "SUM(amount)"}]},
    },
    {
        "seq": 30,
        "name": "Keep",
        "type": "output",
        "arguments": {
            "destination": {"datasource_id": "reports", "path": "all"},
            "register_as_dataset": "kept",
        },
    },
    {
        "seq": 40,
        "name": "List",
        "type": "output",
        "arguments": {"destination": {"datasource_id": "reports", "path": "list", "format": "csv"}},
    },
]
DAMAGES: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "emptied": lambda path: path.write_bytes(b""),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path).write({"data/orders.csv": MANY}).project("p", *STEPS)


def damaging(patch: pytest.MonkeyPatch, place: str, damage: Callable[[Path], object]) -> list[Path]:
    """Damage a file of every attempt that is listed in a place, before anyone looks at it; what was damaged."""
    damaged = list[Path]()

    def harm(path: Path) -> None:
        is_new = path.parent not in {each.parent for each in damaged}
        if is_new and place in path.as_posix() and path.stat().st_size > 0:
            damage(path)
            damaged.append(path)

    files, pieces = Draft.files, LocalOutput.pieces

    def listed(self: Draft, suffix: str) -> list[StoredFile]:
        for file in files(self, suffix):
            harm(Path(self.root.address) / file.key)
        return list(files(self, suffix))

    def found(self: LocalOutput) -> list[StagedPiece]:
        for piece in pieces(self):
            harm(Path(piece.uri))
        return pieces(self)

    patch.setattr(Draft, "files", listed)
    patch.setattr(LocalOutput, "pieces", found)
    return damaged


@pytest.mark.parametrize(
    ("place", "damage"),
    [
        ("/input/orders/", "removed"),
        ("/input/orders/", "cut"),
        ("/changes/", "removed"),
        ("/changes/", "emptied"),
        ("/created/", "removed"),
        ("/datasets/kept/", "removed"),
        ("/reports/.all.", "removed"),
        ("/reports/.all.", "cut"),
        ("/reports/.list.", "removed"),
        ("/reports/.list.", "cut"),
    ],
)
def test_a_file_that_is_lost_before_it_is_committed_fails_the_step(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, place: str, damage: str
) -> None:
    run_id = shop.submit("p")
    with monkeypatch.context() as patch:
        patch.setattr("clew.engine.step_groups.FEW_ROWS", 0)
        damaged = damaging(patch, place, DAMAGES[damage])
        view = shop.drive(run_id)
    assert damaged
    assert view.snapshot.status.value == "FAILED"
    assert view.snapshot.error is not None
    assert view.snapshot.error.code == "RowsMissing", view.snapshot.error
    kept = "list" if "list" in place else "all"
    assert not any(name.startswith(kept) for name in shop.published())
    step = next(step.step_id for step in view.snapshot.steps if step.status.value == "FAILED")
    again = shop.retry(view, step)
    assert again.snapshot.status.value == "COMPLETED"
    assert len(shop.read("reports/all")) == 2400
    lines = [path.read_text().splitlines()[1:] for path in (shop.root / "reports/list").glob("part-*")]
    assert sum(map(len, lines)) == 2400


def test_a_capture_whose_file_is_lost_is_not_ready(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.starter() as starter:
        wishes = capture_wishes_of_data(["doubled"], "captures")
        run_id = starter.submit("p", "2026-01", captures=wishes).run_id
    shop.drive(run_id)
    with shop.starter() as starter, monkeypatch.context() as patch:
        damaged = damaging(patch, "/captures/", DAMAGES["removed"])
        CaptureWorker(starter.environment, starter.state, starter.session).after_run(run_id)
        [record] = starter.state.captures.of_run(run_id)
    assert damaged
    assert (record.status.value, record.outcome.error and record.outcome.error.code) == ("failed", "RowsMissing")
