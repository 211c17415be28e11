"""What Dagster hears of a run that it starts through Pipes, without Dagster and without Spark."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dagster_pipes
import pytest

from clew.api.workspace import Workspace
from clew.diagnostics import UserError
from clew.integrations.dagster import assets_of
from clew.plan import Plan
from clew.sample import write_sample

CONTEXT = {
    "run_id": "dagster-run",
    "job_name": "nightly",
    "retry_number": 0,
    "asset_keys": None,
    "code_version_by_asset_key": None,
    "provenance_by_asset_key": None,
    "partition_key": None,
    "partition_key_range": None,
    "partition_time_window": None,
    "extras": {},
}


def partition(first: str, last: str) -> dict[str, Any]:
    return {"partition_key": first if first == last else None, "partition_key_range": {"start": first, "end": last}}


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger")
    write_sample(folder)
    return folder


@pytest.fixture(scope="module")
def close(ledger: Path) -> Plan:
    return Workspace(ledger).plan("gl-close")


def started(folder: Path, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "clew.integrations.dagster", *words]
    environment = {**os.environ, **variables}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def heard(folder: Path, tmp_path: Path, *words: str, context: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    """The exit code, and the messages that Dagster would read."""
    messages = tmp_path / "messages"
    variables = {
        dagster_pipes.DAGSTER_PIPES_CONTEXT_ENV_VAR: dagster_pipes.encode_param({"data": {**CONTEXT, **context}}),
        dagster_pipes.DAGSTER_PIPES_MESSAGES_ENV_VAR: dagster_pipes.encode_param({"path": str(messages)}),
    }
    done = started(folder, *words, **variables, JAVA_HOME=str(tmp_path))
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in messages.read_text(encoding="utf-8").splitlines()]


def logged(messages: list[dict[str, Any]]) -> list[str]:
    return [message["params"]["message"] for message in messages if message["method"] == "log"]


def test_by_hand_it_says_what_to_use(ledger: Path) -> None:
    done = started(ledger, "gl-close", "--period", "2026-01")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "this is started by Dagster Pipes; `clew run` runs a project by hand\n"


def test_an_unknown_period_is_one_message_in_the_log_of_dagster(ledger: Path, tmp_path: Path) -> None:
    code, messages = heard(ledger, tmp_path, "gl-close", "--period", "1999-01", context={})
    assert code == 1
    [message] = logged(messages)
    assert message.startswith('UnknownPeriod: no period "1999-01"; hint: ')
    assert messages[-1]["method"] == "closed"


def test_without_a_period_or_a_partition_there_is_no_run(ledger: Path, tmp_path: Path) -> None:
    code, messages = heard(ledger, tmp_path, "gl-close", context={})
    assert (code, logged(messages)) == (
        1,
        ["WrongUsage: there is no period; hint: give --period, or a partition to the asset"],
    )


def test_several_partitions_at_once_are_refused(ledger: Path, tmp_path: Path) -> None:
    code, messages = heard(ledger, tmp_path, "gl-close", context=partition("2026-01", "2026-03"))
    [message] = logged(messages)
    problem = "a run is for one period, and Dagster asks for the partitions 2026-01 to 2026-03 at once"
    assert (code, message) == (1, f"WrongUsage: {problem}; hint: give the asset BackfillPolicy.multi_run()")


def test_a_run_that_fails_is_told_with_its_reason(ledger: Path, tmp_path: Path) -> None:
    """The partition is the period. There is no Java at JAVA_HOME, so the run fails when it starts."""
    code, messages = heard(ledger, tmp_path, "gl-close", context=partition("2026-01", "2026-01"))
    assert code == 1
    assert "is FAILED: JavaMissing: " in logged(messages)[-1]
    [told] = [message["params"]["payload"] for message in messages if message["method"] == "report_custom_message"]
    assert (told["project"], told["period"], told["status"]) == ("gl-close", "2026-01", "FAILED")
    assert not [message for message in messages if message["method"] == "report_asset_materialization"]


def test_an_attempt_after_a_failure_is_another_run(ledger: Path, tmp_path: Path) -> None:
    def run(name: str) -> str:
        (tmp_path / name).mkdir()
        context = {**partition("2026-02", "2026-02"), "run_id": "x"}
        _, messages = heard(ledger, tmp_path / name, "gl-close", context=context)
        [told] = [message["params"]["payload"] for message in messages if message["method"] == "report_custom_message"]
        return str(told["run_id"])

    assert run("first") != run("second")


def test_an_asset_is_the_output_that_has_its_name(close: Plan) -> None:
    keys = ["ledger/gl_closed", "ledger/Write_review_file"]
    assert assets_of(close, keys, {}) == {60: keys[0], 35: keys[1]}


def test_an_output_can_be_chosen_for_an_asset(close: Plan) -> None:
    chosen = {"Write review file": "review", "gl-closed": "published"}
    assert assets_of(close, ["published", "review"], chosen) == {60: "published", 35: "review"}


def test_an_asset_that_is_no_output_is_refused_before_the_run(close: Plan) -> None:
    with pytest.raises(UserError, match='the asset "other" is no output of gl-close') as raised:
        assets_of(close, ["gl_closed", "other"], {})
    assert "its outputs are Write review file, gl-closed" in str(raised.value.diagnostic.hint)
