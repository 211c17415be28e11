"""docs/adr/: the list and the pages agree, and every page has the same form."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "adr"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
LIST = (FOLDER / "README.md").read_text(encoding="utf-8")
PACKAGES = {path.name for path in (ROOT / "src" / "clew").iterdir() if (path / "__init__.py").is_file()}


def title_of(page: Path) -> str:
    return page.read_text(encoding="utf-8").splitlines()[0]


def test_pages_are_numbered_without_gaps() -> None:
    assert [int(page.name[:4]) for page in PAGES] == list(range(1, len(PAGES) + 1))


def test_the_list_names_every_page_once_by_its_title() -> None:
    listed = re.findall(r"^\| \[(\d{4})\]\((.+?)\) \| (.+) \|$", LIST, re.MULTILINE)
    assert [(number, file, f"# {int(number)}. {title}") for number, file, title in listed] == [
        (page.name[:4], page.name, title_of(page)) for page in PAGES
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_has_a_status_a_context_a_decision_and_consequences(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"^\*\*Status\.\*\* (Accepted|Superseded by \[\d{4}\]\(.+\))\.$", text, re.MULTILINE)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert all(section.strip() for section in re.split(r"^## .+$", text, flags=re.MULTILINE))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_names_packages_that_exist(page: Path) -> None:
    named = re.findall(r"`clew\.([a-z_]+)[\w.]*`", page.read_text(encoding="utf-8"))
    assert set(named) - {"open", "yaml"} <= PACKAGES
