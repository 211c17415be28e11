"""The walks in docs/architecture.md: the code is followed while it runs, and passes the named files in the named order.

A file counts when one of its functions is called. Constructors do not count, because parts are put together before they
are used. Each walk also says how many files run in all, so that a detour is noticed.
"""

import inspect
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

import clew
from tests.server.server_engine import TracingEngine
from tests.server.server_fixtures import serving, write_ledger
from tests.server.test_server_captures import capture

ROOT = Path(__file__).parents[2]
SOURCE = f"{ROOT / 'src' / 'clew'}/"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
WALKS = dict(re.findall(r"^### (.+?)\n(.*?)(?=^##)", PAGE, re.DOTALL | re.MULTILINE))
WRITTEN, EXPLAINED = "A row is written", "A row is explained"
EVENT, CAPTURED, READ = "An event reaches a page", "A capture is written", "A capture is read"


@contextmanager
def followed() -> Iterator[list[str]]:
    """Fills a list with the files of Clew whose functions are called, in this thread and new ones, by first call."""
    seen = dict[str, None]()
    files = list[str]()

    def called(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)  # modules and class bodies run when they are imported
        if is_function and code.co_filename.startswith(SOURCE) and not code.co_name.startswith("__"):
            seen.setdefault(code.co_filename.removeprefix(SOURCE))

    before = sys.gettrace()
    threading.settrace(called)
    sys.settrace(called)
    try:
        yield files
    finally:
        sys.settrace(before)
        threading.settrace(before)
        files.extend(name for name in seen if name.endswith(".py"))


def stations(walk: str) -> list[str]:
    """The files that a walk names, in order."""
    return re.findall(r"^\d+\. `([\w/]+\.py)`", WALKS[walk], re.MULTILINE)


def bound(walk: str) -> int:
    [number] = re.findall(r"at most (\d+) files", WALKS[walk])
    return int(number)


def assert_passed(walk: str, files: list[str]) -> None:
    """The files passed are those of the walk, in its order, and no more in all than it says."""
    named = stations(walk)
    passed = [file for file in files if file in named]
    assert passed == named
    assert len(files) <= bound(walk), f"{len(files)} files run: {', '.join(files)}"


def test_five_walks_name_files_that_exist() -> None:
    assert list(WALKS) == [WRITTEN, EXPLAINED, EVENT, CAPTURED, READ]
    for walk in WALKS:
        named = stations(walk)
        assert 5 <= len(named) == len(set(named))
        assert [file for file in named if not Path(SOURCE, file).is_file()] == []


@pytest.mark.slow
def test_explaining_a_value_passes_these_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A total of the sample is explained down to the lines of the journal, without Spark."""
    folder = write_ledger(tmp_path / "ledger")
    with serving(folder, monkeypatch) as served:
        run = clew.open(folder).get_run(served.run_id)
        total = run.row_where('row_kind = "total" AND account_type = "expense"')
        run.explain(total, "total_usd")  # what is imported or remembered once does not count
        with followed() as files:
            explained = run.explain(total, "total_usd")
    assert "JE-00017" in explained.to_text()
    assert_passed(EXPLAINED, files)


@pytest.mark.slow
def test_an_event_passes_these_files_from_the_driver_to_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run is driven by a fake engine, and its page is opened in a browser's session."""
    folder = write_ledger(tmp_path / "ledger")
    with serving(folder, monkeypatch) as served:
        browser = served.browser()
        page = {"Accept": "text/html"}
        assert browser.get(f"/runs/{served.run_id}", headers=page).status_code == 200
        run = served.starter.submit("gl-close", "2026-02")
        with followed() as files:
            served.finish(run.run_id)
            answer = browser.get(f"/runs/{run.run_id}", headers=page)
    assert "Look up account types" in answer.text
    assert_passed(EVENT, files)


@pytest.mark.slow
def test_reading_a_capture_passes_these_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_ledger(tmp_path / "ledger")
    with serving(folder, monkeypatch) as served:
        capture_id = capture(served, 10, 20)
        workspace = clew.open(folder)
        workspace.capture(capture_id).to_arrow()
        with followed() as files:
            rows = workspace.capture(capture_id).to_arrow()
    assert rows.num_rows == 2
    assert_passed(READ, files)


@pytest.mark.slow
def test_a_row_and_a_capture_pass_these_files_until_spark_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fake engine runs the steps, and there is no session: what Spark does is left out of the walks here.

    The files of `engine` are called in other tests; that they exist is checked above.
    """
    folder = write_ledger(tmp_path / "ledger")
    engine = TracingEngine(folder / ".clew" / "storage")
    monkeypatch.setattr("clew.api.starting.SparkExecutors", lambda *_arguments: engine)
    monkeypatch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
    with followed() as files:
        run = clew.open(folder).run("gl-close", period="2026-01", captures=["cleaned"])
    assert run.status == "COMPLETED"
    row = [file for file in stations(WRITTEN) if not file.startswith("engine/")]
    assert [file for file in files if file in row] == row
    captured = stations(CAPTURED)[: stations(CAPTURED).index("captures/writing.py") + 1]
    assert [file for file in files if file in captured] == captured
