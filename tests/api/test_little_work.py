"""Which runs have so little to read that Spark is started for a short life."""

import json
from pathlib import Path

import pytest

from clew.api.little_work import has_little_to_read
from clew.api.workspace import open_workspace
from tests.engine.engine_workspaces import Shop, make_shop

MANY = 9 * 2**20
"""More bytes than are little."""


def has_little(shop: Shop) -> bool:
    workspace = open_workspace(shop.root)
    return has_little_to_read(workspace.run_environment, workspace.loaded.workspace.datasources)


def of_size(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def test_a_few_small_files_are_little(shop: Shop) -> None:
    assert has_little(shop)


def test_many_bytes_are_not_little_in_one_file_or_in_several(shop: Shop) -> None:
    for part in range(2):
        of_size(shop.root / "data" / "deep" / f"part-{part}.csv", MANY // 2)
    assert not has_little(shop)


def test_rows_that_earlier_runs_have_registered_count(shop: Shop) -> None:
    storage = shop.root / open_workspace(shop.root).environment.storage_root
    of_size(storage / "datasets" / "closed" / "run-10" / "part-0.parquet", MANY)
    assert not has_little(shop)


def test_what_lies_elsewhere_may_be_much(shop: Shop) -> None:
    database = {"id": "books", "type": "database", "options": {"url": "jdbc:postgresql://example/books"}}
    shop.write({"datasources/books.yaml": database})
    assert not has_little(shop)


@pytest.mark.parametrize("key", ["storage_root", "datasource"])
def test_what_lies_in_an_object_store_may_be_much(shop: Shop, key: str) -> None:
    if key == "storage_root":
        settings = json.loads((shop.root / "clew.yaml").read_text(encoding="utf-8"))
        settings["environments"]["dev"]["storage_root"] = "s3://bucket/clew"
        shop.write({"clew.yaml": settings})
    else:
        shop.write({"datasources/far.yaml": {"id": "far", "type": "files", "options": {"root": "s3://bucket/data"}}})
    assert not has_little(shop)
