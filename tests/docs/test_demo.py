"""`make demo`: what it shows is what happens."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demonstration_runs_to_its_end() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "demo" / "run.py"], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("$ clew")] == [
        "$ clew init ledger",
        "$ clew check",
        "$ clew plan gl-close",
        "$ clew plan gl-close --breakpoints",
        "$ clew check gl-close",
        "$ clew check gl-close",
    ]
    assert "Decimal('1310.40')" in lines
    assert any(line.endswith('^^^^^^^^^^^^ did you mean "amount_local"?') for line in lines)
