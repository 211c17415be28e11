"""Keeps a workspace that today's code has written, for the versions that come: `make history`.

Runs the two projects of the sample for January, asks what tests/history asks, and packs it all as
tests/history/layout-N. The answers of then are what later versions are held to, so a folder is never written twice.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clew.storage.parts import LAYOUT_VERSION
from clew.store.migrations import MIGRATIONS

HISTORY = Path(__file__).parents[1] / "tests" / "history"
CLEW = (sys.executable, "-W", "ignore", "-m", "clew.cli")
STEP = ("seq", "name", "type", "status", "rows_updated", "rows_created", "rows_deleted")


def answered(folder: Path, command: Sequence[str]) -> Any:  # noqa: ANN401 - documents of commands
    """What a command says, as the document that it is."""
    told = subprocess.run([*CLEW, *command, "--json"], cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603
    return json.loads(told.stdout)


def expected_of(folder: Path) -> dict[str, Any]:
    """What is known of the runs of a workspace."""
    runs = {each["project"]: answered(folder, ["show", each["run_id"]]) for each in answered(folder, ["runs"])["runs"]}
    close, report = runs["gl-close"]["run_id"], runs["group-report"]["run_id"]
    commands = [
        ["explain", close, "--where", 'row_kind = "total" AND account_type = "expense"', "total_usd"],
        [
            *("explain", report, "--where"),
            *('row_kind = "report" AND cost_center = "C110" AND account_type = "expense"', "actual_usd"),
        ],
        ["trace", close, "--where", 'journal_id = "JE-00231" AND line_number = 2'],
    ]
    return {
        "layout": LAYOUT_VERSION,
        "schema": MIGRATIONS[-1].version,
        "runs": [
            {
                **{name: run[name] for name in ("run_id", "status", "rows_loaded")},
                "steps": [{name: step[name] for name in STEP} for step in run["steps"]],
            }
            for run in (runs["gl-close"], runs["group-report"])
        ],
        "answers": [{"command": command, "answer": answered(folder, command)} for command in commands],
    }


def keep(folder: Path, place: Path) -> None:
    """Pack a workspace and what is known of it."""
    place.mkdir(parents=True)
    with tarfile.open(place / "workspace.tar.gz", "w:gz") as packed:
        packed.add(folder, ".")
    text = json.dumps(expected_of(folder), indent=1)
    (place / "expected.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Write the folder of today's layout."""
    place = HISTORY / f"layout-{LAYOUT_VERSION}"
    if place.exists():
        raise SystemExit(f"{place} is there already: what was written is not written again")
    with tempfile.TemporaryDirectory(prefix="clew-history-") as made:
        answered(Path(made), ["init", "ledger"])
        ledger = Path(made) / "ledger"
        for project in ("gl-close", "group-report"):
            answered(ledger, ["run", project, "--period", "2026-01"])
        keep(ledger, place)


if __name__ == "__main__":
    main()
