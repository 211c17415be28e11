"""Clew in a real Airflow and a real Dagster, which `make integrations` installs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from clew.sample import write_sample

pytestmark = [pytest.mark.slow, pytest.mark.spark]

HERE = Path(__file__).parent
CLEW = [sys.executable, "-m", "clew.cli"]
PERIOD = "2026-01"


def interpreter(variable: str) -> str:
    """The one that has an orchestrator."""
    if variable not in os.environ:
        pytest.skip("`make integrations` installs the orchestrators and runs this")
    return os.environ[variable]


def last_line(command: list[str], environment: Mapping[str, str]) -> tuple[Any, str]:
    """What a program says at its end, as JSON, and all that it said."""
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith(("[{", '{"'))]
    return json.loads(lines[-1]), done.stdout + done.stderr


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    folder = tmp_path / "ledger"
    folder.mkdir()
    write_sample(folder)
    return folder


@pytest.fixture
def server(ledger: Path) -> Iterator[tuple[str, str]]:
    """The address of a server with a worker, and a token."""
    create = [*CLEW, "token", "create", "airflow", "--role", "operator", "--json", "-w", str(ledger)]
    token = json.loads(subprocess.run(create, check=True, capture_output=True, text=True).stdout)["token"]
    with subprocess.Popen(
        [*CLEW, "serve", "--port", "0", "--json", "-w", str(ledger)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            started = ""
            while not started.endswith("\n}\n"):
                started += process.stdout.readline()
            yield json.loads(started)["url"], token
        finally:
            process.terminate()


def test_tasks_of_airflow_run_projects(ledger: Path, server: tuple[str, str], tmp_path: Path) -> None:
    python = interpreter("CLEW_AIRFLOW")
    address, token = server
    here = {"project": "gl-close", "period": PERIOD, "workspace": str(ledger), "command": CLEW}
    there = {"project": "gl-close", "period": PERIOD, "clew_conn_id": "clew_default", "poll_interval": 1}
    without_java = ["env", f"JAVA_HOME={tmp_path}", *CLEW]
    tasks: list[dict[str, Any]] = [
        here,
        {**here, "project": "gl-clos"},
        {**here, "command": without_java},
        {**here, "command": without_java, "how": "twice"},
        {**there, "deferrable": True},
        {**there, "how": "twice"},
        {**there, "how": "killed"},
        {**there, "period": "1999-01"},
    ]
    home, sent = tmp_path / "airflow", tmp_path / "openlineage.jsonl"
    (home / "dags").mkdir(parents=True)
    shutil.copy(HERE / "airflow_tasks.py", home / "dags")
    environment = {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "300",
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "file", "log_file_path": str(sent), "append": True}),
        "AIRFLOW_CONN_CLEW_DEFAULT": json.dumps({"conn_type": "clew", "host": address, "password": token}),
        "TASKS": json.dumps(tasks),
    }
    migrate = [python, "-m", "airflow", "db", "migrate"]
    subprocess.run(migrate, env={**os.environ, **environment}, check=True, capture_output=True)
    told, said = last_line([python, str(home / "dags" / "airflow_tasks.py")], environment)
    assert told["connection"] == "Clew"
    done, unknown, failed, failing, deferred, twice, killed, wrong = told["tasks"]

    rows = {"rows_loaded": 1455, "outputs": [1455, 1569]}
    for task in (done, deferred):
        assert task["state"] == "success"
        assert task["returned"]["run_id"] == task["run_id"]
        found = {"rows_loaded": task["returned"]["rows_loaded"]}
        assert {**found, "outputs": [each["rows"] for each in task["returned"]["outputs"]]} == rows
    assert deferred["link"] == f"{address}/runs/{deferred['run_id']}"

    # A run that completed is found again; after one that failed there is another.
    assert len(set(twice["returned"]["runs"])) == 1
    assert len(set(failing["returned"]["runs"])) == 2
    assert "none" not in twice["returned"]["runs"] + failing["returned"]["runs"]

    assert [task["state"] for task in (unknown, failed, killed, wrong)] == ["failed"] * 4
    assert 'AirflowFailException: UnknownProject: no project "gl-clos"; hint: did you mean "gl-close"?' in said
    assert f"AirflowException: run {failed['run_id']} of gl-close for {PERIOD} is FAILED: JavaMissing: " in said
    assert f"AirflowFailException: run {killed['run_id']} of gl-close for {PERIOD} is CANCELLED" in said
    assert 'AirflowFailException: UnknownPeriod: no period "1999-01"' in said
    assert token not in said

    ended = {
        event["job"]["name"]: event
        for event in map(json.loads, sent.read_text(encoding="utf-8").splitlines())
        if event["eventType"] == "COMPLETE"
    }
    for name in ("dag0.close", "dag4.close"):
        event = ended[name]
        assert {each["name"] for each in event["inputs"]} == {"journal-lines", "accounts", "fx-rates", "budgets"}
        counted = {each["name"]: each["outputFacets"]["outputStatistics"]["rowCount"] for each in event["outputs"]}
        assert counted == {"reports/review/{period}": 1455, "gl-closed": 1569}
        assert all(each["namespace"] == "clew://default/dev" for each in event["outputs"])
        assert all("columnLineage" in each["facets"] for each in event["outputs"])


def test_assets_of_dagster_are_materialized(ledger: Path) -> None:
    python = interpreter("CLEW_DAGSTER")
    environment = {"COMMAND": sys.executable, "LEDGER": str(ledger)}
    [done, unknown, nowhere], _ = last_line([python, str(HERE / "dagster_assets.py")], environment)
    assert done["success"]
    made = done["materialized"]
    rows = {name: facts["dagster/row_count"] for name, facts in made.items()}
    assert rows == {"ledger/review": 1455, "ledger/gl_closed": 1569}
    assert len({facts["clew/run_id"] for facts in made.values()}) == 1
    assert made["ledger/gl_closed"]["clew/dataset"] == "gl-closed"
    assert all(len(facts["data_version"]) == 64 for facts in made.values())
    assert done["checks"] == {name: ["clew_verify", True] for name in made}
    assert "StepCompleted 60 rows_written 1,569" in done["log"]
    assert [unknown["success"], nowhere["success"]] == [False, False]
    assert any(line.startswith('UnknownPeriod: no period "1999-01"; hint: ') for line in unknown["log"])
    assert any('the asset "nowhere" is no output of gl-close' in line for line in nowhere["log"])
