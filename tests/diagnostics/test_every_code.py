"""Every code of the catalogue is raised by a test, and all but a few through a door that users have."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.commands import WRONG_USAGE
from tests.diagnostics.doors import NAMED, WATCHED, WITHIN, watched
from tests.diagnostics.test_codes_of_files import CASES

TESTS = Path(__file__).parents[1]


@cache
def sources_of_tests(file: str) -> dict[str, str]:
    """The text of each test of a file."""
    text = (TESTS / file).read_text(encoding="utf-8")
    return {
        node.name: ast.get_source_segment(text, node) or ""
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def source_of(test: str) -> str:
    file, _, name = test.partition("::")
    return sources_of_tests(file)[re.sub(r"\[.*", "", name).rpartition("::")[2]]


def test_every_code_has_one_place() -> None:
    listed = [*WATCHED, *CASES, *NAMED, *WITHIN]
    assert sorted(listed) == sorted(CATALOGUE)


@pytest.mark.parametrize("code", WATCHED)
def test_the_test_of_a_code_exists(code: str) -> None:
    assert source_of(WATCHED[code])


@pytest.mark.parametrize("code", NAMED)
def test_a_test_that_is_not_watched_names_its_code(code: str) -> None:
    assert code in source_of(NAMED[code])


@pytest.mark.parametrize("code", WITHIN)
def test_a_code_that_no_door_shows_has_a_reason_and_a_test(code: str) -> None:
    test, reason = WITHIN[code]
    assert source_of(test)
    assert reason


def test_few_codes_are_seen_within_only() -> None:
    assert len(WITHIN) <= 11


def test_a_test_that_does_not_raise_its_code_behind_a_door_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="WrongUsage"), watched(f"tests/{WATCHED['WrongUsage']}"):
        WRONG_USAGE.anywhere(problem="made by a test, with no door in between")


def test_a_test_without_a_code_is_left_alone() -> None:
    with watched("tests/other.py::test_something"):
        pass
