"""A run asked for over HTTP, driven by the worker of the server on Spark, and explained over HTTP."""

from pathlib import Path

from fastapi.testclient import TestClient
from pyspark.sql import SparkSession

from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.server.application import create_app
from clew.server.serving import HostedWorker
from clew.server.settings import ServerSettings
from tests.engine.engine_workspaces import make_shop

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
        worker = HostedWorker(workspace)
        worker.start()
        try:
            wish = {"project": "orders-in-cents", "period": "2026-01", "captures": []}
            started = client.post("/api/v1/runs", json=wish)
            run = f"/api/v1/runs/{started.json()['run_id']}"
            told = client.get(f"{run}/events/stream").text
        finally:
            worker.stop()
        assert started.status_code == 202
        assert 'event: end\ndata: {"status": "COMPLETED"' in told
        assert client.get(run).json()["steps"][0]["rows_updated"] == 2
        asked = {"where": "id = 1", "column": "cents"}
        explained = client.get(f"{run}/explain", params=asked).json()
        assert (explained["value"], explained["cause"]["step"]["name"]) == ("1000.00", "Convert")
        assert client.get("/api/v1/me").json()["name"] == "Ada"
