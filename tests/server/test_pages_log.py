"""The log of a run's driver: what it says, who may read it, and what it never shows."""

import logging
import threading
from pathlib import Path

import pytest

from clew.events.snapshot import RunStatus
from clew.runs.run_log import MOST_LINES, RunLogs, lines_of, note
from clew.runs.secrets import Redactor
from clew.storage.roots import storage_at
from tests.server.pages_requests import as_page
from tests.server.server_fixtures import OpenSite, Served

SECRET = "s3cr3t-of-the-warehouse"


class _Broken(Exception):
    """What an engine raises that is not Clew's."""


def _failed(served: Served) -> str:
    """A run whose step 40 fails in the engine with an error that quotes a secret."""
    run_id = served.starter.submit("gl-close", "2026-02").run_id
    served.state.secrets.redactor.learn([SECRET])

    def break_down(_context: object) -> None:
        raise _Broken(f"connection refused: password={SECRET} host=db")

    served.engine.during["40"] = break_down
    assert served.starter.drive(run_id, threading.Event()) is RunStatus.FAILED
    return run_id


def test_the_log_of_a_failed_run_has_its_traceback_and_no_secret(served: Served) -> None:
    run_id = _failed(served)
    document = served.client("operator").get(f"/runs/{run_id}/log.json").json()
    assert document["run_id"] == run_id
    texts = [line["text"] for line in document["lines"]]
    assert texts[0].startswith("driven by ")
    assert "step 10 Convert to USD: success, rows_updated 34" in texts
    [problem] = [line for line in document["lines"] if line["level"] == "error"]
    assert problem["text"].startswith("step 40 Totals by type: failed\nTraceback")
    assert "in break_down" in problem["text"]
    assert "connection refused: password=[secret] host=db" in problem["text"]
    assert texts[-1] == "the run is FAILED"
    page = as_page(served.client("operator"), f"/runs/{run_id}/log").text
    assert "Totals by type: failed" in page
    for text in (page, str(document)):
        assert SECRET not in text
    for file in (served.environment.storage_root.folder / "runs" / run_id / "log").rglob("*"):  # type: ignore[attr-defined]
        assert SECRET not in file.read_text(encoding="utf-8")


def test_a_second_driver_goes_on_in_the_same_log(served: Served) -> None:
    run_id = served.starter.submit("gl-close", "2026-02").run_id
    stop = threading.Event()
    served.engine.during["10"] = lambda _context: stop.set()
    served.starter.drive(run_id, stop)
    served.engine.during.clear()
    served.finish(run_id)
    texts = [line.text for line in served.workspace.get_run(run_id).driver_log()]
    assert sum(text.startswith("driven by ") for text in texts) == 2
    assert texts[-1] == "the run is COMPLETED"


def test_logs_are_for_those_who_operate_runs(served: Served) -> None:
    run_id = _failed(served)
    for role, status in {"viewer": 403, "auditor": 403, "operator": 200, "engineer": 200, "admin": 200}.items():
        assert served.client(role).get(f"/runs/{run_id}/log.json").status_code == status, role
        offered = f'href="/runs/{run_id}/log"' in as_page(served.client(role), f"/runs/{run_id}").text
        assert offered is (status == 200), role


def test_a_role_that_sees_no_values_gets_no_messages_that_may_quote_some(serve_with: OpenSite) -> None:
    hidden = "    privacy: {roles: {operator: {public: hidden, personal: hidden, secret: hidden}}}\n"
    served = serve_with(extra=hidden)
    run_id = _failed(served)
    assert "connection refused" in served.client("admin").get(f"/runs/{run_id}/log.json").text
    lines = served.client("operator").get(f"/runs/{run_id}/log.json").json()["lines"]
    [problem] = [line["text"] for line in lines if line["level"] == "error"]
    assert problem == "not shown to your role, as it may quote values of rows"
    assert lines[-1]["text"] == "the run is FAILED"


def test_a_log_is_bounded_and_says_so(tmp_path: Path) -> None:
    root, logs = storage_at(tmp_path), RunLogs(storage_at(tmp_path), Redactor())
    with logs.of("r"):
        for number in range(MOST_LINES + 7):
            note(f"line {number}")
        note("cut", "x" * 100_000)
    with logs.of("r") as log:
        log.add("y" * 100_000)
    found = lines_of(root, "r")
    assert len(found) == MOST_LINES
    assert "8 more lines are left out" in [line.text for line in found]
    assert len(found[-1].text) < 21_000
    assert "characters are left out" in found[-1].text


def test_a_log_that_cannot_be_written_harms_no_run(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise OSError("disk full")

    root = type(served.environment.storage_root)
    monkeypatch.setattr(root, "add_line", refuse)
    run_id = served.starter.submit("gl-close", "2026-02").run_id
    served.finish(run_id)
    assert served.workspace.get_run(run_id).driver_log() == []


def test_what_happens_in_another_run_is_not_in_the_log(tmp_path: Path) -> None:
    root, logs = storage_at(tmp_path), RunLogs(storage_at(tmp_path), Redactor())

    def drive(run_id: str, *, barrier: threading.Barrier) -> None:
        with logs.of(run_id):
            barrier.wait()
            note(f"said by {run_id}")
            barrier.wait()

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=drive, args=(each,), kwargs={"barrier": barrier}) for each in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [line.text for line in lines_of(root, "one")] == ["said by one"]
    assert [line.text for line in lines_of(root, "two")] == ["said by two"]


def test_warnings_are_printed_once_while_a_run_is_driven(
    served: Served, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = served.starter.submit("gl-close", "2026-02").run_id
    served.engine.during["10"] = lambda _context: logging.getLogger("clew.engine").warning("the disk is nearly full")
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # as in a process that has set up no logging
    served.finish(run_id)
    assert capsys.readouterr().err.count("the disk is nearly full") == 1
    [line] = [line for line in served.workspace.get_run(run_id).driver_log() if line.level == "warning"]
    assert line.text == "the disk is nearly full"
