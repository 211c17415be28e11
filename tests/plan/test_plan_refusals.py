"""What `clew check` refuses because a run would do something that the author did not ask for, or could not do it."""

from pathlib import Path
from typing import Any

import pytest

from clew.api.workspace import Workspace
from tests.engine.engine_workspaces import SHOP, Shop, make_shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def operation(type_: str, arguments: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"seq": 10, "name": "Do", "type": type_, "arguments": arguments, **more}


def with_columns(dataset: str, *columns: dict[str, Any]) -> dict[str, Any]:
    definition = SHOP[f"datasets/{dataset}.yaml"]
    return {f"datasets/{dataset}.yaml": {**definition, "main_table": {**definition["main_table"], "columns": columns}}}


def found(shop: Shop) -> list[tuple[str, str]]:
    return [(each.code, each.message) for each in Workspace(shop.root).check().diagnostics]


@pytest.mark.parametrize("name", ["__s1_m", "__ordinal", "__S1_A0", "__parents", "__source_file", "__", "_metadata"])
def test_a_name_that_files_of_a_run_use_is_refused_wherever_a_column_gets_its_name(shop: Shop, name: str) -> None:
    id_ = {"name": "id", "type": "integer"}
    shop.write(with_columns("orders", id_, {"name": name, "type": "string"}))
    (declared,) = found(shop)
    assert declared[0] == "InvalidValue"
    assert declared[1].startswith(f'no column can be called "{name}": ')
    shop.write(with_columns("orders", id_))
    assignments = [{"column": name, "expression": "1"}]
    aggregations = [{"column": name, "expression": "COUNT_ALL()"}]
    for step in (
        operation("update", {"assignments": assignments}),
        operation("aggregate", {"group_by": ["id"], "aggregations": aggregations}),
    ):
        assert found(shop.project("p", step)) == [declared]


@pytest.mark.parametrize("name", ["_own", "s1_m", "ordinal", "file_row_number", "row_id", "x__y"])
def test_other_names_are_fine(shop: Shop, name: str) -> None:
    shop.project("p", operation("update", {"assignments": [{"column": name, "expression": "1"}]}))
    assert found(shop) == []


@pytest.mark.parametrize(
    ("incoming", "working"),
    [("decimal(12,2)", "integer"), ("decimal(12,4)", "decimal(12,2)"), ("double", "decimal(12,2)")],
)
def test_appended_rows_are_not_rounded_silently(shop: Shop, incoming: str, working: str) -> None:
    orders = with_columns("orders", {"name": "amount", "type": working})
    orders["datasets/orders.yaml"]["natural_key"] = []
    shop.write(orders).write(with_columns("targets", {"name": "amount", "type": incoming}))
    shop.project("p", operation("append", {"source": {"dataset_id": "targets"}}))
    assert found(shop) == [
        ("AppendColumnMismatch", f'the column "amount" comes in as {incoming} and would be rounded to {working}')
    ]


def test_a_type_with_room_takes_appended_rows(shop: Shop) -> None:
    orders = with_columns("orders", {"name": "amount", "type": "decimal(12,4)"})
    orders["datasets/orders.yaml"]["natural_key"] = []
    shop.write(orders).write(with_columns("targets", {"name": "amount", "type": "decimal(10,2)"}))
    assert found(shop.project("p", operation("append", {"source": {"dataset_id": "targets"}}))) == []


def test_an_aggregate_function_in_a_selector_that_no_operation_uses_is_refused(shop: Shop) -> None:
    shop.project("p", selectors={"large": "amount > SUM(amount)"})
    ((code, message),) = found(shop)
    assert code == "AggregateNotAllowed"
    assert "SUM" in message


@pytest.mark.parametrize("name", ["my sel", "1st", "a/b"])
def test_a_selector_that_cannot_be_referred_to_is_refused(shop: Shop, name: str) -> None:
    shop.project("p", selectors={name: "amount > 1"})
    ((code, message),) = found(shop)
    assert code == "InvalidValue"
    assert message.startswith(f'a selector cannot be called "{name}"')
