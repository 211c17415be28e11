"""Takes new screenshots of the web pages for the documents, light and dark, from runs of the sample.

    python -m tools.screenshots [WORKSPACE]

Without a workspace the sample is written to a temporary folder and run on Spark, which takes a few minutes. With one,
its newest run of `gl-close` is shown, and compared with the one before it for the same period. Needs Playwright and a
Chromium: the one that CHROMIUM names, or one on the path.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import urlencode

from playwright.sync_api import Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
LARGEST = 150_000
_ROOM: ViewportSize = {"width": 1120, "height": 700}
_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_CLEW = str(Path(sys.executable).with_name("clew"))
_ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


def main() -> None:
    """Take all pictures."""
    if len(sys.argv) > 1:
        take(Path(sys.argv[1]))
        return
    with tempfile.TemporaryDirectory(prefix="clew-pictures-") as folder:
        workspace = Path(folder) / "ledger"
        clew(Path(folder), "init", "ledger")
        close_three_months(workspace)
        take(workspace)


def close_three_months(workspace: Path) -> None:
    """Three closes and a report; January is closed again after one of its rates was restated."""
    rates = workspace / "data" / "fx_rates.csv"
    restated = rates.read_text(encoding="utf-8")
    rates.write_text(restated.replace("EUR,USD,closing,1.092000", "EUR,USD,closing,1.085000"), encoding="utf-8")
    for period in ("2026-01", "2026-02", "2026-03"):
        clew(workspace, "run", "gl-close", "--period", period)
    clew(workspace, "run", "group-report", "--period", "2026-01")
    rates.write_text(restated, encoding="utf-8")
    clew(workspace, "run", "gl-close", "--period", "2026-01")


def take(workspace: Path) -> None:
    """Serve a workspace and photograph its pages."""
    pages = addresses(workspace)
    with serving(workspace) as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        page = browser.new_page(viewport=_ROOM)
        page.goto(link)
        site = link.partition("/login")[0]
        for name, address in pages.items():
            page.goto(f"{site}{address}")
            for scheme in _SCHEMES:
                page.emulate_media(color_scheme=scheme)
                photograph(page, f"{name}.png" if scheme == "light" else f"{name}-dark.png")
        browser.close()


def addresses(workspace: Path) -> dict[str, str]:
    """The pages that tell most, by the name of their picture."""
    january = json.loads(clew(workspace, "runs", "--project", "gl-close", "--period", "2026-01", "--json"))["runs"]
    newest, before = january[0]["run_id"], january[1]["run_id"]
    line = row_of(workspace, newest, 'journal_id = "JE-00231" AND line_number = 2')
    expense = 'row_kind = "total" AND account_type = "expense"'
    total = row_of(workspace, newest, expense)
    run, why = f"/runs/{newest}", urlencode({"row": total, "column": "total_usd"})
    changed = urlencode({"other": newest, "column": "total_usd", "where": expense})
    rate = urlencode({"set": 'fx-rates where from_currency = "EUR": rate = 1.2'})
    return {
        "overview": "/",
        "run": run,
        "rows": f"{run}/rows?at=20&changed=1",
        "row": f"{run}/rows/{line}?at=20",
        "explanation": f"{run}/explain?{why}",
        "why-changed": f"/runs/{before}/why-changed?{changed}",
        "what-if": f"{run}/what-if?{rate}",
        "reconciliation": f"{run}/reconciliation",
        "lineage": "/lineage",
        "project": "/projects/gl-close",
    }


def photograph(page: Page, name: str) -> None:
    """One picture of the page as it is."""
    page.wait_for_load_state("networkidle")
    path = IMAGES / name
    page.screenshot(path=path)
    size = path.stat().st_size
    if size > LARGEST:
        sys.exit(f"{name} has {size:,} bytes; {LARGEST:,} are the most")
    sys.stdout.write(f"{path.name}: {size:,} bytes\n")


def row_of(workspace: Path, run_id: str, where: str) -> str:
    """The id of the one row that a condition names."""
    found = json.loads(clew(workspace, "trace", run_id, "--where", where, "--json"))
    return str(found["row_id"])


def clew(folder: Path, *arguments: str) -> str:
    """What a command prints."""
    done = subprocess.run([_CLEW, *arguments], cwd=folder, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603
    return done.stdout


def chromium() -> str:
    """The browser."""
    for name in (os.environ.get("CHROMIUM", ""), "chromium", "google-chrome"):
        found = shutil.which(name) if name else None
        if found:
            return found
    sys.exit("no Chromium found: set CHROMIUM, or install it")


@contextmanager
def serving(workspace: Path) -> Iterator[str]:
    """The link of a server on a workspace."""
    command = [_CLEW, "serve", "--port", "0", "--no-worker"]
    with subprocess.Popen(command, cwd=workspace, stdout=subprocess.PIPE, text=True) as process:  # noqa: S603
        try:
            printed = process.stdout or ()
            yield next(found[1] for line in printed if (found := re.search(r"open: (\S+)", line)))
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
