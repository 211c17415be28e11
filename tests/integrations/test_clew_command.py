"""The command `clew` as orchestrators call it: a real process each time, and no Spark."""

import os
import sys
import threading
from pathlib import Path

import pytest

from clew.diagnostics import TransientFailure, UserError
from clew.integrations.clew_command import ClewCommand
from clew.integrations.run_documents import failure_text, has_failed
from clew.sample import write_sample

CLEW = (sys.executable, "-m", "clew.cli")


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("ledger")
    write_sample(folder)
    return str(folder)


def test_a_mistake_is_the_error_that_the_command_reports(ledger: str) -> None:
    with pytest.raises(UserError, match='no project "gl-clos"') as raised:
        ClewCommand(CLEW, ledger).run("gl-clos", "2026-01", "r")
    assert (raised.value.code, raised.value.diagnostic.hint) == ("UnknownProject", 'did you mean "gl-close"?')


def test_a_run_that_fails_is_a_run_with_its_error_and_its_request(ledger: str, tmp_path: Path) -> None:
    without_java = ("env", f"JAVA_HOME={tmp_path}", *CLEW)
    command = ClewCommand(without_java, ledger, "dev")
    run = command.run("gl-close", "2026-01", "first")
    assert has_failed(run)
    assert "is FAILED: JavaMissing: " in failure_text(run)
    assert command.run("gl-close", "2026-01", "first")["run_id"] == run["run_id"]
    request = command.request_of(run["run_id"])
    assert (request.request_id, request.tenant_id, request.environment_id) == ("first", "default", "dev")
    assert command.plan("gl-close").digest == request.plan.digest


def test_a_program_that_is_not_there_is_reported(ledger: str) -> None:
    with pytest.raises(UserError, match="cannot start /nowhere/clew: No such file"):
        ClewCommand(("/nowhere/clew",), ledger).plan("gl-close")


def test_a_program_that_is_killed_may_be_tried_again(ledger: str) -> None:
    dying = (sys.executable, "-c", "import os, sys; print('short of memory', file=sys.stderr, flush=True); os.abort()")
    with pytest.raises(TransientFailure, match=r"exit code -6 and without an answer: .*short of memory") as raised:
        ClewCommand(dying, ledger).run("gl-close", "2026-01", "r")
    assert raised.value.code == "CommandLost"


def test_cancelling_interrupts_the_program_as_ctrl_c_does(ledger: str, tmp_path: Path) -> None:
    """The program opens a named pipe when it is ready, and answers only because it is interrupted."""
    ready = tmp_path / "ready"
    os.mkfifo(ready)
    waiting = (
        "import signal, sys, threading\n"
        'def answer(*_): print(\'{"status": "CANCELLED"}\'); sys.exit(130)\n'
        f"signal.signal(signal.SIGINT, answer); open({str(ready)!r}, 'w').close(); threading.Event().wait()"
    )
    command = ClewCommand((sys.executable, "-c", waiting), ledger)

    def cancel() -> None:
        ready.read_text()
        command.cancel()

    thread = threading.Thread(target=cancel)
    thread.start()
    assert command.run("gl-close", "2026-01", "r") == {"status": "CANCELLED"}
    thread.join()
