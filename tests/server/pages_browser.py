"""A real Chromium in front of a real server process."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, sync_playwright

_QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
_LINK = re.compile(r"open: (http\S+)")
PATIENCE_MS = 30_000
WIDE: ViewportSize = {"width": 1280, "height": 860}


UNFIT = """() => {
  const found = [];
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (!field.labels?.length && !field.getAttribute("aria-label")) found.push(`no label: ${field.outerHTML}`);
  for (const control of document.querySelectorAll("button, a, summary"))
    if (!(control.textContent.trim() || control.getAttribute("aria-label"))) found.push(control.outerHTML);
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  found.push(...ids.filter((id, index) => ids.indexOf(id) !== index).map((id) => `twice: ${id}`));
  const levels = [...document.querySelectorAll("h1, h2, h3")].map((each) => Number(each.tagName[1]));
  levels.forEach((level, index) => { if (level > (levels[index - 1] ?? 0) + 1) found.push(`heading ${level}`); });
  const room = document.documentElement;
  if (room.scrollWidth > room.clientWidth) found.push(`${room.scrollWidth} wide`);
  return found;
}"""
"""What would be a problem for a screen reader, or on a narrow screen."""


def find_chromium() -> str | None:
    """A browser of the machine: the one that CHROMIUM names, or what usually lies on the path."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


@dataclass(frozen=True)
class Visitor:
    """A signed-in user with a browser."""

    page: Page
    address: str
    complaints: list[str]
    """What the browser complained about: broken scripts, and what the content security policy has stopped."""

    def open(self, path: str) -> Page:
        self.page.goto(self.address + path)
        return self.page


@contextmanager
def server_process(workspace: Path) -> Iterator[str]:
    """`clew serve` on a workspace; gives the link that it prints."""
    command = [sys.executable, "-m", "clew.cli", "serve", "--port", "0", "--no-worker"]
    with subprocess.Popen(
        command, cwd=workspace, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            printed = list[str]()
            for line in process.stdout:
                printed.append(line)
                found = _LINK.search(line)
                if found:
                    yield found.group(1)
                    break
            else:
                raise AssertionError(f"the server did not start: {''.join(printed)}")
        finally:
            process.terminate()
            process.wait(timeout=20)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium found: set CHROMIUM, or install it (Debian and Ubuntu: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(_QUIET))
        yield browser
        browser.close()


Enter = Callable[[Path], Visitor]


def visitor_of(context: BrowserContext, link: str) -> Visitor:
    """A user who has opened the link that the server printed."""
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    complaints = list[str]()
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.goto(link)
    return Visitor(page, link.partition("/login")[0], complaints)


@pytest.fixture
def enter(chromium: Browser) -> Iterator[Enter]:
    """Opens a server on a workspace and signs in by the link that it prints."""
    with ExitStack() as stack:

        def entered(workspace: Path) -> Visitor:
            link = stack.enter_context(server_process(workspace))
            return visitor_of(stack.enter_context(closing(chromium.new_context(viewport=WIDE))), link)

        yield entered


@pytest.fixture(scope="module")
def auditor(
    chromium: Browser, finished_ledger: tuple[Path, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Visitor]:
    """A user who looks at a workspace with a completed run."""
    folder = Path(shutil.copytree(finished_ledger[0], tmp_path_factory.mktemp("audited") / "ledger"))
    with server_process(folder) as link, closing(chromium.new_context(viewport=WIDE)) as context:
        yield visitor_of(context, link)
