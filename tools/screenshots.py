"""Takes new screenshots of the web pages for the README, from a run of the sample.

    python -m tools.screenshots [WORKSPACE]

Without a workspace the sample is written to a temporary folder and run on Spark, which takes a minute or two. With one,
its newest run of `gl-close` is shown. Needs Playwright and a Chromium: the one that CHROMIUM names, or one on the path.
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
from urllib.parse import urlencode

from playwright.sync_api import Page, sync_playwright

IMAGES = Path(__file__).parent.parent / "docs" / "images"
LARGEST = 150_000
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
        clew(workspace, "run", "gl-close", "--period", "2026-01")
        take(workspace)


def take(workspace: Path) -> None:
    """Serve a workspace and photograph its pages."""
    run = json.loads(clew(workspace, "runs", "--project", "gl-close", "--period", "2026-01", "--json"))
    run_id = run["runs"][0]["run_id"]
    line = row_of(workspace, run_id, 'journal_id = "JE-00231" AND line_number = 2')
    total = row_of(workspace, run_id, 'row_kind = "total" AND account_type = "expense"')
    why = urlencode({"row": total, "column": "total_usd"})
    with serving(workspace) as link, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=_ARGUMENTS)
        page = browser.new_page(viewport={"width": 1120, "height": 700}, color_scheme="light")
        page.goto(link)
        address = link.partition("/login")[0]
        photograph(page, f"{address}/runs/{run_id}", "run.png")
        photograph(page, f"{address}/runs/{run_id}/rows/{line}?at=20", "row.png")
        photograph(page, f"{address}/runs/{run_id}/explain?{why}", "explanation.png")
        browser.close()


def photograph(page: Page, address: str, name: str) -> None:
    """One picture."""
    page.goto(address)
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
