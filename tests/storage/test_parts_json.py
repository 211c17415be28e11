import json
from dataclasses import replace

import pytest

from clew.diagnostics import UserError
from clew.storage.parts import (
    CARRIED,
    LAYOUT_VERSION,
    IdBlock,
    Part,
    PartFile,
    TracedStep,
    part_from_json,
    part_to_json,
)

PART = Part(
    kind="changes",
    name="5-30",
    files=(
        PartFile("runs/r/changes/5-30/a.parquet", 3, 900, "ab" * 32),
        PartFile("x", 1, 2, "cd" * 32, 7, IdBlock(3, 4711)),
        PartFile("y", 1, 2, "ef" * 32, 8, CARRIED),
    ),
    columns=(("amount", "decimal(18,2)"),),
    seq=30,
    steps=(TracedStep(5, "update", ("amount", "_labels")), TracedStep(30, "delete", ())),
    details={"dataset": "gl", "version": 2, "source": None},
)


def test_a_part_survives_json() -> None:
    assert part_from_json(json.loads(json.dumps(part_to_json(PART))), "part.json") == PART


def test_a_part_of_the_first_layout_has_files_without_trace_ids() -> None:
    data = json.loads(json.dumps(part_to_json(replace(PART, version=1))))
    for file in data["files"]:
        del file["ids"]
    part = part_from_json(data, "part.json")
    assert part.version == 1
    assert [file.ids for file in part.files] == [None, None, None]


def test_a_part_of_a_newer_layout_is_refused_by_name() -> None:
    data = part_to_json(replace(PART, version=LAYOUT_VERSION + 1))
    data["something new"] = {}
    with pytest.raises(UserError, match=rf"runs/r/part\.json has layout version {LAYOUT_VERSION + 1}") as caught:
        part_from_json(data, "runs/r/part.json")
    assert caught.value.code == "NewerTraceLayout"


FILE_IN_JSON: dict[str, object] = json.loads(json.dumps(part_to_json(PART)))["files"][0]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ({"kind": "other"}, "'other' is not one of input, created, changes"),
        ({"files": "a"}, "expected a list, found 'a'"),
        ({"files": [{}]}, "it has no 'ordinal'"),
        ({"seq": "3"}, "expected a number, found '3'"),
        ({"seq": True}, "expected a number, found True"),
        ({"columns": [["a"]]}, "not enough values"),
        ({"steps": [{"seq": 1, "kind": "append", "columns": []}]}, "'append' is not one of update, delete"),
        ({"details": {"x": []}}, "expected a string or a number"),
        ({"extra": 1}, "Part has no extra"),
        ({"files": [FILE_IN_JSON | {"ids": "x"}]}, "expected IdBlock, found 'x'"),
    ],
)
def test_what_is_no_part_is_damage_that_names_the_file(damage: dict[str, object], problem: str) -> None:
    with pytest.raises(UserError) as caught:
        part_from_json(part_to_json(PART) | damage, "runs/r/part.json")
    assert caught.value.code == "DamagedTrace"
    assert caught.value.diagnostic.message.startswith("runs/r/part.json is damaged: ")
    assert problem in caught.value.diagnostic.message


def test_what_is_not_even_an_object_is_damage() -> None:
    with pytest.raises(UserError, match="expected Part, found"):
        part_from_json([1, 2], "part.json")
