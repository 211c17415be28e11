"""`clew schema`: what it publishes fits the files that Clew itself writes."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from clew.definitions import KINDS
from clew.definitions.kinds import FILE_KINDS, read_source
from clew.definitions.nodes import ListNode, MapNode, Node, ScalarNode
from clew.definitions.yaml_nodes import read_yaml
from clew.definitions.yaml_scalars import scalar_value
from tests.cli.conftest import Clew


def as_data(node: Node | None) -> object:
    """A file as an editor sees it, which takes dates for text."""
    match node:
        case MapNode():
            return {key: as_data(entry.value) for key, entry in node.entries.items()}
        case ListNode():
            return [as_data(item) for item in node.items]
        case ScalarNode():
            value = scalar_value(node)
            return str(value) if isinstance(value, date) else float(value) if isinstance(value, Decimal) else value
        case None:
            return None


def test_without_a_kind_all_kinds_are_listed(clew: Clew) -> None:
    answer = clew("schema")
    assert answer.code == 0
    assert [line.split()[0] for line in answer.out.splitlines()[:-1]] == [*KINDS, "captures"]
    assert [each["kind"] for each in clew("schema", "--json").json["kinds"]] == [*KINDS, "captures"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_of_a_kind_accepts_the_sample_files_of_that_kind(clew: Clew, sample: Path, kind: str) -> None:
    answer = clew("schema", kind)
    assert answer.code == 0
    validator = Draft202012Validator(answer.json)
    validator.check_schema(answer.json)
    folder = FILE_KINDS[kind].folder
    paths = sorted((sample / folder).iterdir()) if folder else [sample / "clew.yaml"]
    assert paths
    for path in paths:
        content = as_data(read_yaml(read_source(path, sample)).root)
        assert [error.message for error in validator.iter_errors(content)] == [], path.name


@pytest.mark.parametrize("kind", [*KINDS, "captures"])
def test_the_schema_of_a_kind_refuses_an_unknown_key(clew: Clew, kind: str) -> None:
    schema = clew("schema", kind).json
    assert not Draft202012Validator(schema).is_valid({"id": "x", "name": "x", "no_such_key": 1})


def test_the_schema_of_captures_is_that_of_what_a_run_takes(clew: Clew) -> None:
    answer = clew("schema", "captures")
    assert answer.json["title"] == "Clew captures (the file of `clew run --captures`)"
    validator = Draft202012Validator(answer.json)
    validator.check_schema(answer.json)
    wish = {
        "breakpoint": "cleaned",
        "mode": "sample_view",
        "limits": {"max_rows": 10},
        "sample": {"rows": 5},
        "include_columns": "ALL",
        "exclude_columns": ["memo_*"],
        "mask": {"name": {"keep_last": 2}, "city": "hash"},
        "ttl_days": 2,
        "store": "close-review",
    }
    assert validator.is_valid({"captures": [wish, {"breakpoint": "*"}]})
    for wrong in ({"mode": "all"}, {"sample": 5}, {"breakpoint": 1.5}, {"mask": {"name": "blur"}}):
        assert not validator.is_valid({"captures": [wish | wrong]}), wrong


def test_json_makes_no_difference_to_a_schema(clew: Clew) -> None:
    assert clew("schema", "project").out == clew("schema", "project", "--json").out


def test_an_unknown_kind_is_not_found(clew: Clew) -> None:
    answer = clew("schema", "projct")
    assert answer.code == 3
    assert answer.out == ""
    assert answer.err == 'error UnknownKind: no file kind "projct"\n  did you mean "project"?\n'
    assert json.loads(clew("schema", "projct", "--json").out)["error"]["code"] == "UnknownKind"
