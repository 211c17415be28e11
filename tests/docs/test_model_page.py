"""docs/model.md: the actions, properties and files that it names are those of the model and of the code."""

import re
from pathlib import Path

from tools.model.__main__ import AT_LAST, CASES, INVARIANTS, STEPWISE

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "model.md").read_text(encoding="utf-8")
MODEL = (ROOT / "tools" / "model" / "run.tla").read_text(encoding="utf-8")
DEFINED = set(re.findall(r"^(\w+)(?:\(\w+\))? ==", MODEL, re.MULTILINE))


def test_the_page_names_every_property_that_is_checked() -> None:
    for name in (*INVARIANTS, *STEPWISE, *AT_LAST):
        assert name in DEFINED
        assert f"`{name}`" in PAGE


def test_actions_and_files_of_the_page_exist() -> None:
    [table] = re.findall(r"\| action of the model \| code \|\n(.*?)\n\n", PAGE, re.DOTALL)
    for line in table.splitlines()[1:]:
        actions, code = line.strip("|").split("|")
        assert set(re.findall(r"`(\w+)`", actions)) <= DEFINED
        assert all((ROOT / file).is_file() for file in re.findall(r"`([\w/]+\.py)`", code))


def test_each_planted_mistake_is_one_of_the_model_and_has_a_property_that_it_breaks() -> None:
    planted = {case.mistake for case in CASES} - {"none"}
    assert planted == set(re.findall(r'Mistake (?:=|#) "([\w ]+)"', MODEL)) - {"none"}
    assert all((case.found is None) == (case.mistake == "none") for case in CASES)


def test_each_property_is_broken_by_a_planted_mistake() -> None:
    assert {case.found for case in CASES} - {None} == {*INVARIANTS, *STEPWISE, *AT_LAST}
