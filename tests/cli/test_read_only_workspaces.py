"""Workspaces that can be read and not written: what commands still show, and what becomes of the record of a read."""

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import clew as clew_package
from tests.server.server_engine import TracingEngine
from tests.server.server_fixtures import write_ledger

CLEW = Path(sys.executable).with_name("clew")
_PR_CAPBSET_DROP, _OVERRIDES = 24, (1, 2)
"""What lets the superuser write, and read, whatever permissions say."""


def _without_privileges() -> None:
    if os.geteuid() == 0:
        for capability in _OVERRIDES:
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def clew(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [CLEW, *arguments],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
        preexec_fn=_without_privileges,
    )


def permit(root: Path, *, writing: bool) -> None:
    for path in (root, *root.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | 0o200 if writing else mode & ~0o222)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    yield write_ledger(tmp_path / "ledger")
    permit(tmp_path / "ledger", writing=True)


@pytest.fixture
def run_id(root: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run in a workspace that is read-only by now."""
    engine = TracingEngine(root / ".clew" / "storage")
    monkeypatch.setattr("clew.api.starting.SparkExecutors", lambda *_arguments: engine)
    monkeypatch.setattr("clew.api.starting.session_of", lambda *_arguments: None)
    run = clew_package.open(root).run("gl-close", "2026-01")
    permit(root, writing=False)
    return run.id


def test_commands_read_what_nobody_may_write_and_rows_only_where_no_record_is_asked_for(
    root: Path, run_id: str
) -> None:
    def files() -> dict[str, int]:
        return {str(path): path.stat().st_mtime_ns for path in root.rglob("*")}

    before = files()
    for arguments in (["show", run_id], ["projects"], ["check"]):
        answer = clew(root, *arguments, "--json")
        assert (answer.returncode, answer.stderr) == (0, ""), arguments
        assert "not compared" not in answer.stdout
    assert [run["run_id"] for run in json.loads(clew(root, "runs", "--json").stdout)["runs"]] == [run_id]

    rows = ("trace", run_id, "--where", 'account_type = "expense"')
    refused = clew(root, *rows)
    assert refused.returncode != 0
    assert "UnrecordedRead" in refused.stderr
    assert "unrecorded_reads: allow" in refused.stderr
    assert refused.stdout == ""
    changed = clew(root, "deactivate", "gl-close")
    assert changed.returncode != 0
    assert "StoreReadOnly" in changed.stderr
    stopped = clew(root, "signal", run_id, "RETRY_RUN", "--no-drive")
    assert stopped.returncode != 0
    assert "StoreReadOnly" in stopped.stderr
    assert "Traceback" not in refused.stderr + changed.stderr + stopped.stderr

    permit(root, writing=True)
    settings = root / "clew.yaml"
    settings.write_text(
        settings.read_text().replace("    mode: dev\n", "    mode: dev\n    unrecorded_reads: allow\n", 1)
    )
    permit(root, writing=False)
    allowed = clew(root, *rows)
    assert allowed.returncode == 0, allowed.stderr
    assert allowed.stdout.strip()
    assert "not on record" in allowed.stderr
    after = files()
    assert {name for name in after if before.get(name) != after[name]} == {str(root / "clew.yaml")}
