"""What Clew logs shows no secret that was looked up, whoever handles the records and whoever logs."""

import logging
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest

import clew
from clew.api.state import open_state
from clew.runs.secrets import SecretRef, SecretScope

VALUE = "s3cret-of-the-ledger"
LOGGING = """
import logging, pathlib, sys
import clew
from clew.api.state import open_state
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


@pytest.fixture
def written() -> Iterator[StringIO]:
    """What a handler of the process writes, of the kind that logging.basicConfig makes."""
    text = StringIO()
    handler = logging.StreamHandler(text)
    logging.getLogger().addHandler(handler)
    yield text
    logging.getLogger().removeHandler(handler)


def test_each_of_two_environments_that_are_open_removes_its_secrets(
    root: Path, written: StringIO, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "clew.yaml").write_text("name: o\nenvironments: {dev: {mode: dev}}\n")
    with (
        open_state(clew.open(other).run_environment),
        open_state(clew.open(root).run_environment) as state,
        open_state(clew.open(other).run_environment),
    ):
        state.secrets.resolve([SecretRef.parse("secret://file/db")], SecretScope("default", "dev"))
        try:
            int(f"login failed for {VALUE}")
        except ValueError:
            logging.getLogger("clew.runs.driver").exception("cannot connect with %s", VALUE)
    assert "login failed for [secret]" in written.getvalue()
    assert VALUE not in written.getvalue()


def test_handlers_of_the_process_get_records_without_secrets(root: Path, written: StringIO) -> None:
    environment = clew.open(root).run_environment
    log = logging.getLogger("clew.runs.driver")
    with open_state(environment) as state:
        state.secrets.resolve([SecretRef.parse("secret://file/db")], SecretScope("default", "dev"))
        try:
            int(f"login failed for {VALUE}")
        except ValueError:
            log.exception("cannot connect with %s", VALUE)
    assert "cannot connect with [secret]" in written.getvalue()
    assert "login failed for [secret]" in written.getvalue()
    assert VALUE not in written.getvalue()
    assert logging.getLogger("clew").handlers == []


def test_where_nobody_handles_records_a_warning_is_printed_once_and_without_secrets(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOGGING, str(root)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "no access with [secret]\n")
