"""A server whose files lie in an object store that refuses: it says so, and asks to come back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from clew.api.workspace import open_workspace
from clew.auth.roles import AccessRole
from clew.server.application import create_app
from tests.server.server_fixtures import ADDRESS
from tests.storage.moved_to_s3 import moved_to_s3
from tests.storage.s3_proxy import EXPIRED, Answer, Proxy
from tests.storage.s3_server import KEYS, S3Server
from tests.trace.interpreted_shop import interpreted_shop


@pytest.fixture
def site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3: S3Server, proxy: Proxy
) -> Iterator[tuple[TestClient, str]]:
    """A client of a server with one run, whose files are in a bucket behind the proxy."""
    monkeypatch.setenv("LEDGER_KEYS", KEYS)
    shop = interpreted_shop(tmp_path / "shop", monkeypatch)
    run_id = shop.run("close").record.run_id
    moved_to_s3(shop, s3, proxy.endpoint)
    with open_workspace(shop.root).following_files() as workspace:
        client = TestClient(create_app(workspace), base_url=ADDRESS, raise_server_exceptions=False)
        token = workspace.tokens.create("the admin", role=AccessRole.ADMIN, days=1).text
        client.headers["Authorization"] = f"Bearer {token}"
        yield client, run_id


@pytest.mark.parametrize(
    ("fault", "says"), [(EXPIRED, "have expired"), (Answer(404, "NoSuchBucket"), "does not exist")], ids=lambda _: ""
)
def test_a_store_that_refuses_is_no_fault_of_the_caller(
    site: tuple[TestClient, str], proxy: Proxy, fault: Answer, says: str
) -> None:
    client, run_id = site
    trace = f"/api/v1/runs/{run_id}/trace"
    with proxy.failing(lambda _: fault):
        for answer in (client.get(trace), client.get(f"{trace}/rows"), client.get(f"{trace}/steps/10")):
            assert (answer.status_code, answer.json()["error"]["code"]) == (503, "StorageUnavailable"), answer.text
            assert says in answer.json()["error"]["message"]
            assert int(answer.headers["Retry-After"]) > 0
            assert not any(part in answer.text for part in KEYS.split(":"))
        page = client.get(f"/runs/{run_id}/rows", headers={"Accept": "text/html"})
        assert page.status_code == 503
        assert says in page.text
    assert client.get(trace).status_code == 200
