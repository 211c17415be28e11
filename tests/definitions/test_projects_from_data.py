"""Projects from Python data go through the same door as files."""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal

import pytest

from clew.definitions import Project, Update, project_from_data
from clew.definitions.nodes import SourceText
from clew.definitions.shapes import Record
from clew.definitions.yaml_nodes import read_yaml
from clew.diagnostics import Span, UserError


def update(**more: object) -> dict[str, object]:
    arguments = {"assignments": [{"column": "a", "expression": "b + 1"}]}
    return {"seq": 1, "name": "u", "type": "update", "arguments": arguments, **more}


def project(*operations: Mapping[str, object], **more: object) -> dict[str, object]:
    return {"id": "p", "input_dataset": "d", "operations": operations, **more}


def test_data_and_yaml_give_the_same_project() -> None:
    text = (
        "id: p\ninput_dataset: d\noperations:\n  - seq: 1\n    name: u\n    type: update\n    selector: a > 0\n"
        "    arguments: {assignments: [{column: a, expression: b + 1}]}\n"
    )
    root = read_yaml(SourceText("p.yaml", text)).root
    assert root is not None
    assert project_from_data(project(update(selector="a > 0")), "notebook") == Record(Project).read(root)


def test_keys_with_the_value_none_count_as_absent() -> None:
    built = project_from_data(project(update(selector=None, after_request=None), description=None), "notebook")
    [operation] = built.operations
    assert isinstance(operation, Update)
    assert operation.selector is None


def test_places_are_the_origin() -> None:
    built = project_from_data(project(update()), "notebook")
    assert built.span == built.place("operations", 0, "name") == Span("notebook", 1, 1, 1)
    assert built.file == "notebook"


def test_expressions_may_be_python_values() -> None:
    values = [0, Decimal("1.50"), True, date(2026, 1, 31), "a + b"]
    assignments = [{"column": "a", "expression": value} for value in values]
    built = project_from_data(project(update(arguments={"assignments": assignments})), "notebook")
    [operation] = built.operations
    assert isinstance(operation, Update)
    written = [each.expression.value for each in operation.arguments.assignments]
    assert written == ["0", "1.50", "true", "2026-01-31", "a + b"]


def test_everything_that_is_wrong_is_raised_together() -> None:
    wrong = project(update(type="updte"), update(seq=0), {"seq": 2, "name": "x", "type": "delete"}, stauts="draft")
    with pytest.raises(UserError) as caught:
        project_from_data(wrong, "notebook")
    assert sorted(d.code for d in caught.value.diagnostics) == ["InvalidValue", "InvalidValue", "UnknownKey"]
    assert {str(d.span) for d in caught.value.diagnostics} == {"notebook:1:1"}


def test_what_is_wrong_between_values_is_raised_too() -> None:
    destination = {"location": {"path": "out"}, "mode": "append"}
    output = {"seq": 1, "name": "o", "type": "output", "arguments": {"destination": destination, "mode": "append"}}
    with pytest.raises(UserError) as caught:
        project_from_data(project(output), "notebook")
    assert caught.value.diagnostic.message == "the mode is set both in the destination and beside it"


@pytest.mark.parametrize("value", [object(), b"bytes", Decimal("NaN"), {1, 2}])
def test_values_that_no_file_could_hold_are_refused(value: object) -> None:
    with pytest.raises(UserError) as caught:
        project_from_data(project(update(description=value)), "notebook")
    assert caught.value.code == "InvalidValue"


def test_a_time_is_text() -> None:
    built = project_from_data(project(update(description=datetime(2026, 1, 1, 12, 0))), "notebook")  # noqa: DTZ001
    [operation] = built.operations
    assert isinstance(operation, Update)
    assert operation.description == "2026-01-01T12:00:00"


def test_data_that_contains_itself_is_refused() -> None:
    data = project()
    data["selectors"] = {"x": data}
    with pytest.raises(UserError) as caught:
        project_from_data(data, "notebook")
    assert caught.value.diagnostic.message == "nested more than 100 levels deep"
