"""A run asked for over HTTP, driven by the worker of the server on Spark, and explained over HTTP."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest
from fastapi.testclient import TestClient
from pyspark.sql import SparkSession

from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.cli.main import run as command
from clew.server.application import create_app
from clew.server.settings import ServerSettings
from tests.engine.engine_workspaces import make_shop
from tests.server.server_processes import working_in_a_thread

CONVERT = {
    "seq": 10,
    "name": "Convert",
    "type": "update",
    "arguments": {"assignments": [{"column": "cents", "expression": "amount * 100"}]},
}


def test_a_run_over_http_is_driven_by_the_worker_of_the_server(spark: SparkSession, tmp_path: Path) -> None:
    shop = make_shop(tmp_path).project("orders-in-cents", CONVERT)
    with open_workspace(shop.root).following_files() as workspace:
        token = workspace.tokens.create("Ada", role=AccessRole.ENGINEER, days=1).text
        client = TestClient(create_app(workspace, ServerSettings(event_poll_s=0.05)), base_url="http://127.0.0.1")
        client.headers["Authorization"] = f"Bearer {token}"
        with working_in_a_thread(workspace):
            wish = {"project": "orders-in-cents", "period": "2026-01", "captures": []}
            started = client.post("/api/v1/runs", json=wish)
            run = f"/api/v1/runs/{started.json()['run_id']}"
            told = client.get(f"{run}/events/stream").text
        assert started.status_code == 202
        assert 'event: end\ndata: {"status": "COMPLETED"' in told
        assert client.get(run).json()["steps"][0]["rows_updated"] == 2
        asked = {"where": "id = 1", "column": "cents"}
        explained = client.get(f"{run}/explain", params=asked).json()
        assert (explained["value"], explained["cause"]["step"]["name"]) == ("1000.00", "Convert")
        assert client.get("/api/v1/me").json()["name"] == "Ada"


def _children(process: "subprocess.Popen[str]") -> list[psutil.Process]:
    return list(psutil.Process(process.pid).children(recursive=True))


def _until(is_so: Callable[[], bool]) -> None:
    for _ in range(6000):
        if is_so():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen")


@pytest.mark.spark
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL], ids=lambda each: each.name)
def test_the_worker_of_a_server_is_a_process_that_runs_what_is_asked_for_and_ends_with_it(
    tmp_path: Path, end: signal.Signals
) -> None:
    shop = make_shop(tmp_path).project("orders-in-cents", CONVERT)
    token = tmp_path / "token"
    created = open_workspace(shop.root).tokens.create("Ada", role=AccessRole.ENGINEER, days=1)
    token.write_text(created.text, encoding="utf-8")
    command_line = [sys.executable, "-m", "clew.cli", "serve", "--port", "0"]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command_line, cwd=shop.root, stdout=subprocess.PIPE, stderr=log, text=True) as server,
    ):
        try:
            assert server.stdout is not None
            url = server.stdout.readline().partition(" on ")[2].partition(";")[0]
            assert httpx.get(f"{url}/login", timeout=60).status_code == 200
            _until(lambda: any("worker" in each.cmdline() for each in _children(server)))
            arguments = ["run", "orders-in-cents", "--period", "2026-01", "--server", url, "--token-file", str(token)]
            if end is signal.SIGTERM:
                assert command(arguments) == 0
            children = _children(server)
            assert any("java" in each.name() for each in children) or end is not signal.SIGTERM
            server.send_signal(end)
            assert server.wait(120) == (0 if end is not signal.SIGKILL else -signal.SIGKILL)
            gone, alive = psutil.wait_procs(children, timeout=120)
            assert alive == []
            assert len(gone) == len(children)
        finally:
            server.kill()
