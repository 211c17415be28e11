"""The guides are true: their files make a workspace that works, their Python runs and prints what the page says."""

import doctest
import io
import re
import tarfile
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

import clew

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KEPT = ROOT / "tests" / "history" / "layout-7" / "workspace.tar.gz"
"""A sample workspace whose two projects were run."""

FIRST = (DOCS / "first-project.md").read_text(encoding="utf-8")
PYTHON = (DOCS / "python.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```(?:\n\n```text\n(.*?)^```)?", PYTHON, re.DOTALL | re.MULTILINE)
NEEDS_SPARK = "needs Spark"


def write_files(page: str, root: Path) -> int:
    """Write the files that stand on a page, each with its name in the first line. Returns how many there are."""
    files = re.findall(r"^```(?:yaml|csv)\n# (\S+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    for name, text in files:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return len(files)


def test_the_first_project_checks_and_its_scenario_passes(tmp_path: Path) -> None:
    assert write_files(FIRST, tmp_path) == 8
    workspace = clew.open(tmp_path)
    assert workspace.check().diagnostics == ()
    report = workspace.test(on="quick")
    assert (report.count("pass"), report.is_ok) == (1, True)


def test_the_corrections_of_their_page_are_applied(tmp_path: Path) -> None:
    write_files(FIRST, tmp_path)
    assert write_files((DOCS / "adjustments.md").read_text(encoding="utf-8"), tmp_path) == 5
    workspace = clew.open(tmp_path)
    assert workspace.check().diagnostics == ()
    report = workspace.test(tmp_path / "scenarios" / "corrected.yaml", on="quick")
    assert (report.count("pass"), report.is_ok) == (1, True), report.to_json()


def test_the_python_of_its_page_prints_what_the_page_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tarfile.open(KEPT) as packed:
        packed.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    seen = 0
    for code, expected in BLOCKS:
        compiled = compile(code, "python.md", "exec")
        if NEEDS_SPARK in code:
            continue
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(compiled, names)
        if expected:
            seen += 1
            same = doctest.OutputChecker().check_output(expected, printed.getvalue(), doctest.ELLIPSIS)
            assert same, f"{code}\nprints\n{printed.getvalue()}\nand the page says\n{expected}"
    assert seen == 7


@pytest.mark.parametrize("name", ["ClewError", "UserError", "TransientFailure", "EngineBug", "Diagnostic"])
def test_exceptions_are_exported(name: str) -> None:
    assert name in clew.__all__
    assert getattr(clew, name).__name__ == name
