"""`make demo`: what it shows is what happens."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.spark
@pytest.mark.slow
def test_the_demonstration_runs_both_projects_and_follows_numbers_back_to_the_file() -> None:
    command, without_wrapping = [sys.executable, str(ROOT / "demo" / "run.py")], {**os.environ, "COLUMNS": "400"}
    done = subprocess.run(command, env=without_wrapping, capture_output=True, text=True, timeout=900, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    text = done.stdout
    assert 'did you mean "amount_local"?' in text
    assert "1,569 rows -> dataset gl-closed v1" in text
    assert "NULL -> 1310.40" in text
    assert "total_usd = 737,127.41" in text
    assert "over 484 rows" in text
    assert "recomputed: equal" in text
    assert "differs" not in text
    assert "TEST posting Q1" in text
    assert "journal/journal_2026-01.csv line" in text.rpartition("$ clew explain")[2]
    answers = _answers_in_the_readme()
    assert len(answers) > 20
    assert [line for line in answers if line not in text.splitlines()] == []


def _answers_in_the_readme() -> list[str]:
    """What the README shows below a command that the demonstration gives too, except what differs from run to run."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    \$ clew (?:run|trace|explain) .*\n((?:    [^$\n].*\n)+)", readme, re.MULTILINE)
    lines = [line.removeprefix("    ") for block in shown for line in block.splitlines()]
    return [line for line in lines if not re.match(r"row |\.\.\.|gl-close v1", line)]
