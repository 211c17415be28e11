"""The page of the keys of YAML files says what the declarations of the files say."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import pytest

from clew.definitions.schemas import SCHEMA_PLACES, schema_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "keys.md"


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("key_pages", ROOT / "tools" / "key_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_generator_gives() -> None:
    actual = PAGE.read_bytes().decode()
    assert actual == _generator().keys_page(), "docs/reference/keys.md is out of date: make docs"


def _described(schema: Any) -> Iterator[tuple[str, str]]:
    """Each key in a schema, however deep, with its description."""
    if isinstance(schema, dict):
        for name, each in cast("dict[str, Any]", schema.get("properties", {})).items():
            yield name, each.get("description", "")
        for each in schema.values():
            yield from _described(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _described(each)


@pytest.mark.parametrize("kind", list(SCHEMA_PLACES))
def test_every_key_of_every_file_is_on_the_page_with_what_it_is(kind: str) -> None:
    rows = re.findall(r"^\| `(?:[^`]*\.)?([^`.]+)` \|.*\| (.*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    known = {(name, text.replace("\\|", "|").strip()) for name, text in rows}
    assert [each for each in _described(schema_of(kind)) if (each[0], each[1].strip()) not in known] == []


def test_links_lead_to_headings_of_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    headings = [line.removeprefix("### ") for line in text.splitlines() if line.startswith("### ")]
    anchors = {"".join(ch for ch in each.lower() if ch.isalnum() or ch in " -_").replace(" ", "-") for each in headings}
    assert len(anchors) == len(headings)
    assert [each for each in re.findall(r"\]\(#([^)]+)\)", text) if each not in anchors] == []


def test_every_row_has_four_cells() -> None:
    rows = re.findall(r"^\|.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) != 5] == []
