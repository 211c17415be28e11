"""Keeps a workspace that today's code has written, for the versions that come: `make history`.

Runs the two projects of the sample for January, with captures that last for a century, asks what tests/history asks,
and packs it all as tests/history/layout-N. The answers of then are what later versions are held to, so a folder is
never written twice; `python -m tools.history NAME` writes one of another name, for what has a layout of its own.
"""

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from clew.storage.parts import LAYOUT_VERSION
from clew.store.migrations import MIGRATIONS

HISTORY = Path(__file__).parents[1] / "tests" / "history"
CLEW = (sys.executable, "-W", "ignore", "-m", "clew.cli")
CAPTURES = ("cleaned=full_raw", "after_totals=sample_raw")
A_CENTURY = "    captures: {ttl_days: 36500}\n"
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
        ["events", close],
        *captured(folder),
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


def captured(folder: Path) -> Iterator[list[str]]:
    """What is asked about the captures of a workspace that were asked for; those of jobs expire within days."""
    for capture in answered(folder, ["captures"])["captures"]:
        if capture["job_id"] is None:
            yield ["capture", "show", capture["capture_id"]]
            yield ["capture", "view", capture["capture_id"], "--limit", "20"]


def keep(folder: Path, place: Path) -> None:
    """Pack a workspace and what is known of it."""
    place.mkdir(parents=True)
    with tarfile.open(place / "workspace.tar.gz", "w:gz") as packed:
        packed.add(folder, ".")
    text = json.dumps(expected_of(folder), indent=1)
    (place / "expected.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Write the folder of today's layout."""
    place = HISTORY / (sys.argv[1] if len(sys.argv) > 1 else f"layout-{LAYOUT_VERSION}")
    if place.exists():
        raise SystemExit(f"{place} is there already: what was written is not written again")
    with tempfile.TemporaryDirectory(prefix="clew-history-") as made:
        answered(Path(made), ["init", "ledger"])
        ledger = Path(made) / "ledger"
        settings = ledger / "clew.yaml"
        text = settings.read_text(encoding="utf-8")
        settings.write_text(text.replace("    mode: dev\n", "    mode: dev\n" + A_CENTURY), encoding="utf-8")
        kept = [word for capture in CAPTURES for word in ("--capture", capture)]
        answered(ledger, ["run", "gl-close", "--period", "2026-01", *kept])
        answered(ledger, ["run", "group-report", "--period", "2026-01"])
        keep(ledger, place)


if __name__ == "__main__":
    main()
