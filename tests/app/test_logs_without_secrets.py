"""What Clew logs shows no secret that was looked up, whoever handles the records and whoever logs."""

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import clew
from clew.app.running.state import open_state
from clew.runs.secrets import SecretRef, SecretScope

VALUE = "s3cret-of-the-ledger"
LOGGING = """
import logging, pathlib, sys
import clew
from clew.app.running.state import open_state
from clew.runs.secrets import SecretRef, SecretScope

environment = clew.open(sys.argv[1]).run_environment
value = pathlib.Path(sys.argv[1], ".clew/secrets/db").read_text()
with open_state(environment) as state, open_state(environment):
    state.secrets.resolve([SecretRef.parse("secret://file/db")], SecretScope("default", "dev"))
    logging.getLogger("clew.runs.driver").warning("no access with %s", value)
    logging.getLogger("clew.runs.driver").info("not worth a line")
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "clew.yaml").write_text("name: w\nenvironments: {dev: {mode: dev}}\n")
    (tmp_path / ".clew" / "secrets").mkdir(parents=True)
    (tmp_path / ".clew" / "secrets" / "db").write_text(VALUE)
    return tmp_path


def test_handlers_of_the_process_get_records_without_secrets(root: Path, caplog: pytest.LogCaptureFixture) -> None:
    environment = clew.open(root).run_environment
    log = logging.getLogger("clew.runs.driver")
    with open_state(environment) as state:
        state.secrets.resolve([SecretRef.parse("secret://file/db")], SecretScope("default", "dev"))
        try:
            int(f"login failed for {VALUE}")
        except ValueError:
            log.exception("cannot connect with %s", VALUE)
    assert "cannot connect with [secret]" in caplog.text
    assert "login failed for [secret]" in caplog.text
    assert VALUE not in caplog.text
    assert logging.getLogger("clew").handlers == []


def test_where_nobody_handles_records_a_warning_is_printed_once_and_without_secrets(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOGGING, str(root)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "no access with [secret]\n")
