"""An output never writes over what a dataset of the workspace reads: `clew check` says so, and so does the run."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from tests.engine.engine_workspaces import DATA, SHOP, Shop, make_shop

_RULES: dict[str, Any] = {
    "folders": {"path": "in/{table}", "format": "csv"},
    "months": {"path": "by-month/{table}_{period}.csv"},
    "patterns": {"path": "many/*.parquet"},
    "deep": {"path": "deep/**/x.csv"},
}


def destination(path: str, **more: Any) -> dict[str, Any]:
    target = {"datasource_id": "data", "path": path, **more}
    return {"seq": 10, "name": "Write", "type": "output", "arguments": {"destination": target}}


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """Its datasets read `orders.csv`, `rates.csv`, `targets.csv`, and more by the rules above."""
    shop = make_shop(tmp_path)
    for name, strategy in _RULES.items():
        rule = {"name": name, "strategy": {"type": "path", "datasource_id": "data", **strategy}}
        shop.write(
            {
                f"resolvers/{name}.yaml": {"id": name, "rules": [rule]},
                f"datasets/{name}.yaml": {
                    **SHOP["datasets/targets.yaml"],
                    "id": name,
                    "resolver_id": name,
                    "main_table": {**SHOP["datasets/targets.yaml"]["main_table"], "name": name},
                },
            }
        )
    return shop


@pytest.mark.parametrize(
    ("path", "dataset"),
    [
        ("orders.csv", "orders"),
        ("./sub/../orders.csv", "orders"),
        ("{table}.csv", "orders"),
        ("rates.csv", "rates"),
        ("in/folders/mine.csv", "folders"),
        ("in/folders", "folders"),
        ("in", "folders"),
        ("by-month/months_{period}.csv", "months"),
        ("by-month/months_2026-02.csv", "months"),
        ("by-month/months_{year}-{month}.csv", "months"),
        ("many/new.parquet", "patterns"),
        ("many", "patterns"),
        ("deep/a/b/x.csv", "deep"),
    ],
)
def test_check_refuses_a_destination_that_a_dataset_reads(shop: Shop, path: str, dataset: str) -> None:
    shop.project("p", destination(path))
    (found,) = Workspace(shop.root).check().diagnostics
    assert found.code == "OutputConflict"
    assert found.message == f'the output to "{path}" would write over data that the dataset "{dataset}" reads'
    assert found.span is not None
    assert found.span.file == "projects/p.yaml"


@pytest.mark.parametrize(
    "path",
    [
        "out/orders.csv",
        "orders_{period}.csv",
        "by-month/other_{period}.csv",
        "by-month/months_{period}.parquet",
        "by-month/months_of_{year}.csv",
        "in/folders/_mine/x.csv",
        "in/other.csv",
        "many/new.csv",
    ],
)
def test_a_destination_beside_what_datasets_read_is_fine(shop: Shop, path: str) -> None:
    assert Workspace(shop.project("p", destination(path)).root).check().diagnostics == ()


def test_adding_files_to_a_folder_that_is_read_is_refused_too(shop: Shop) -> None:
    shop.project("p", destination("many", mode="append", format="parquet"))
    assert [found.code for found in Workspace(shop.root).check().diagnostics] == ["OutputConflict"]


def test_a_location_and_another_datasource_with_the_same_folder_are_the_same_place(shop: Shop) -> None:
    shop.write({"datasources/again.yaml": {"id": "again", "type": "files", "options": {"root": "data/../data"}}})
    inline = {"location": {"path": "data/orders.csv", "format": "csv"}}
    again = {"datasource_id": "again", "path": "orders.csv"}
    for target in (inline, again):
        step = {"seq": 10, "name": "Write", "type": "output", "arguments": {"destination": target}}
        shop.project("p", step)
        assert [found.code for found in Workspace(shop.root).check().diagnostics] == ["OutputConflict"]


def test_a_resolver_that_a_project_chooses_counts(shop: Shop) -> None:
    shop.project("reader", resolver_overrides={"orders": "months"})
    shop.project("p", destination("by-month/orders_{period}.csv"))
    assert [found.code for found in Workspace(shop.root).check().diagnostics] == ["OutputConflict"]


def test_a_table_that_is_read_is_not_written(shop: Shop) -> None:
    database = {"type": "database", "options": {"url": "postgresql://u@db/x", "schema": "public"}}
    strategy = {"type": "table", "datasource_id": "db", "table": "{table}"}
    shop.write(
        {
            "datasources/db.yaml": {"id": "db", **database},
            "resolvers/r.yaml": {"id": "r", "is_default": True, "rules": [{"name": "a", "strategy": strategy}]},
        }
    )
    target = {"datasource_id": "db", "table": "rates"}
    shop.project("p", {"seq": 10, "name": "Write", "type": "output", "arguments": {"destination": target}})
    (found,) = Workspace(shop.root).check().diagnostics
    assert found.message == 'the output to "rates" would write over data that the dataset "rates" reads'


def link_to_data(shop: Shop) -> None:
    (shop.root / "reports").symlink_to(shop.root / "data", target_is_directory=True)


def read_by_a_new_dataset(shop: Shop) -> None:
    strategy = {"type": "path", "datasource_id": "reports", "path": "orders.csv"}
    shop.write(
        {
            "resolvers/later.yaml": {"id": "later", "rules": [{"name": "a", "strategy": strategy}]},
            "datasets/later.yaml": {**SHOP["datasets/orders.yaml"], "id": "later", "resolver_id": "later"},
        }
    )


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("change", [link_to_data, read_by_a_new_dataset])
def test_a_run_of_a_version_that_was_activated_before_refuses_it_too(
    shop: Shop, change: Callable[[Shop], None]
) -> None:
    target = {"datasource_id": "reports", "path": "orders.csv"}
    shop.project("p", {"seq": 10, "name": "Write", "type": "output", "arguments": {"destination": target}})
    run_id = shop.submit("p")
    change(shop)
    view = shop.drive(run_id)
    assert view.failure is not None
    assert view.failure.code == "OutputConflict"
    assert "would write over data" in view.failure.message
    assert (shop.root / "data" / "orders.csv").read_text() == DATA["data/orders.csv"]


@pytest.mark.usefixtures("spark")
def test_files_for_each_value_are_replaced_by_the_next_run_and_files_of_others_are_not(shop: Shop) -> None:
    target = {"destination": {"datasource_id": "reports", "path": "by", "format": "csv"}, "file_per": "currency"}
    shop.project("p", {"seq": 10, "name": "Write", "type": "output", "arguments": target})
    folder = shop.root / "reports" / "by"
    for _ in range(2):
        view = shop.run("p")
        assert view.failure is None
        found = {path.stem for path in folder.glob("*.csv")}
        assert found == {line.split(",")[1] for line in DATA["data/orders.csv"].splitlines()[1:]}
    (folder / "mine.csv").write_text("mine")
    view = shop.run("p")
    assert view.failure is not None
    assert "would delete mine.csv, which no output wrote" in view.failure.message
