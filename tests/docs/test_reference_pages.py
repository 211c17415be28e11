"""The reference pages say what the code says."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from clew.diagnostics import PlainText
from clew.diagnostics.codes import CATALOGUE
from clew.lang import FUNCTIONS, parse
from clew.lang.functions import SHORTHANDS, Family
from clew.lang.lexer import MAX_CHARACTERS
from clew.lang.parser import MAX_NESTING
from clew.lang.syntax import MAX_DEPTH
from clew.lang.types import MAX_PRECISION

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs" / "reference"


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference_pages", ROOT / "tools" / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATOR = _generator()


def _text(name: str) -> str:
    return (REFERENCE / name).read_bytes().decode()


@pytest.mark.parametrize("name", list(GENERATOR.PAGES))
def test_a_generated_page_is_what_the_generator_gives(name: str) -> None:
    assert _text(name) == GENERATOR.PAGES[name](), f"docs/reference/{name} is out of date: make docs"


def test_every_function_and_every_code_has_a_heading() -> None:
    functions, errors = _text("functions.md"), _text("errors.md")
    for function in (*FUNCTIONS.values(), *SHORTHANDS.values()):
        assert function.family is Family.OPERATOR or f"\n### {function.name}\n" in functions
    for code in CATALOGUE:
        assert f"\n### {code}\n" in errors


@pytest.mark.parametrize("name", ["language.md", "functions.md", "errors.md"])
def test_links_between_the_pages_lead_somewhere(name: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", _text(name)):
        file, _, anchor = target.partition("#")
        assert (REFERENCE / (file or name)).is_file(), target
        headings = re.findall(r"^#+ (.+)$", _text(file or name), re.MULTILINE)
        assert not anchor or anchor in {heading.lower().replace(" ", "-") for heading in headings}, target


EXAMPLES = [
    line for block in re.findall(r"```\n(.*?)```", _text("language.md"), re.DOTALL) for line in block.splitlines()
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_of_the_introduction_is_an_expression(example: str) -> None:
    parse(PlainText(example))


def _forms(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


@pytest.mark.parametrize("cell", [example for _, _, example in GENERATOR.PRECEDENCE if " is `" in example])
def test_an_example_of_precedence_is_read_as_the_page_says(cell: str) -> None:
    written, meant = _forms(cell)
    assert parse(PlainText(written)) == parse(PlainText(meant))


@pytest.mark.parametrize("name", ["language.md", "grammar.lark"])
def test_the_limits_on_the_page_are_those_of_the_parser(name: str) -> None:
    text = " ".join(_text(name).split())
    for limit in (
        f"{MAX_CHARACTERS:,} characters",
        f"{MAX_NESTING} levels",
        f"{MAX_DEPTH} levels",
        f"{MAX_PRECISION} digits",
    ):
        assert limit in text.replace("// ", "")
