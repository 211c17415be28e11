"""The page of the commands says what the commands themselves say."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from clew.cli.main import COMMANDS, command_line

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "commands.md"


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("command_pages", ROOT / "tools" / "command_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_generator_gives() -> None:
    actual = PAGE.read_bytes().decode()
    assert actual == _generator().commands_page(), "docs/reference/commands.md is out of date: make docs"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_and_option_is_on_the_page(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition(f"\n## clew {name}\n")[2].partition("\n## ")[0]
    command = command_line().commands[name]
    assert section
    for parameter in command.params:
        for option in parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]:
            written = str(option).replace("|", r"\|")  # a bare bar would end the cell
            assert f"`{written}" in section, f"{name} {option}"


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_is_in_the_readme(name: str) -> None:
    assert f"clew {name}" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_row_of_a_table_has_two_cells() -> None:
    """A bar inside a cell has to be escaped, also between backquotes."""
    rows = re.findall(r"^\|.*\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) != 3] == []


def test_usage_lines_have_one_pair_of_brackets_around_what_may_be_left_out() -> None:
    lines = re.findall(r"^```\n(clew .*)\n```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == len(COMMANDS)
    word = r"[A-Za-z_]+(?:\|[a-z]+)*"
    for line in lines:
        assert re.fullmatch(rf"clew [a-z-]+ \[OPTIONS\](?: (?:{word}|\[{word}\])(?:\.\.\.)?)*", line), line
    assert "clew test [OPTIONS] [PATH]..." in lines
    assert "clew capture [OPTIONS] show|view|diff|rm ID..." in lines
