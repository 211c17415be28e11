"""The page of the commands says what the commands themselves say."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from clew.cli.main import command_line
from clew.cli.plain_values import commands_of

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


@pytest.mark.parametrize("name", list(commands_of(command_line()).commands))
def test_every_command_and_option_is_on_the_page(name: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page.partition(f"\n## clew {name}\n")[2].partition("\n## ")[0]
    command = commands_of(command_line()).commands[name]
    assert section
    for parameter in command.params:
        for option in parameter.opts if parameter.param_type_name == "option" else [parameter.metavar]:
            assert f"`{option}" in section, f"{name} {option}"


@pytest.mark.parametrize("name", list(commands_of(command_line()).commands))
def test_every_command_is_in_the_readme(name: str) -> None:
    assert f"clew {name}" in (ROOT / "README.md").read_text(encoding="utf-8")
