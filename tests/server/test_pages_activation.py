"""The buttons that decide which version of a project runs: who has them, what they say first, what they do."""

import re

from fastapi.testclient import TestClient
from httpx2 import Response

from tests.server.pages_requests import as_page
from tests.server.server_fixtures import Served

_PAGE = "/projects/gl-close"
_OWN = {"Origin": "http://127.0.0.1:8765", "Accept": "text/html"}


def _edit(served: Served, old: str, new: str) -> None:
    file = served.workspace.root / "projects" / "gl-close.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    served.read_files()


def _form(page: str, name: str) -> dict[str, str]:
    """The fields of the form behind a button."""
    form = page.partition(f'action="{_PAGE}/{name}"')[2].partition("</form>")[0]
    return dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]+)"', form))


def _send(client: TestClient, name: str, **fields: str) -> Response:
    form = _form(as_page(client, _PAGE).text, name)
    return client.post(f"{_PAGE}/{name}", data={**form, **fields}, headers=_OWN)


def test_a_file_that_has_changed_is_activated_from_the_page_of_its_project(served: Served) -> None:
    client = served.browser()
    assert _form(as_page(client, _PAGE).text, "activate") == {}
    _edit(served, '"5290"', '"5291"')
    page = as_page(client, _PAGE).text
    assert "freezes it as version 2. New runs use it instead of version 1." in page
    answer = _send(client, "activate")
    assert (answer.status_code, answer.headers["location"]) == (303, _PAGE)
    assert "active, version 2" in as_page(client, _PAGE).text
    [record] = served.client("auditor").get("/api/v1/audit", params={"subject_id": "gl-close"}).json()["records"]
    assert (record["subject"], record["detail"]) == ("project", "activated version 2")


def test_a_version_is_taken_out_of_use_and_put_back(served: Served) -> None:
    client = served.browser()
    assert "no run of this project can be requested until a version is activated again" in as_page(client, _PAGE).text
    assert _send(client, "deactivate").status_code == 303
    page = as_page(client, _PAGE).text
    assert "inactive, version 1" in page
    assert _form(page, "deactivate") == {}
    assert "Run for period" not in page
    assert _send(client, "activate").status_code == 303
    page = as_page(client, _PAGE).text
    assert "active, version 2" in page
    assert "Run for period" in page


def test_a_draft_runs_as_a_draft_again_when_its_version_is_taken_out_of_use(served: Served) -> None:
    _edit(served, "status: active", "status: draft")
    client = served.browser()
    assert "new runs use the file as a draft" in as_page(client, _PAGE).text
    assert _send(client, "deactivate").status_code == 303
    assert "Run for period" in as_page(client, _PAGE).text


def test_what_was_decided_on_another_file_or_version_is_not_done(served: Served) -> None:
    client = served.browser()
    _edit(served, '"5290"', '"5291"')
    seen = _form(as_page(client, _PAGE).text, "activate")
    _edit(served, '"5291"', '"5292"')
    late = client.post(f"{_PAGE}/activate", data=seen, headers=_OWN)
    assert late.status_code == 409
    assert "ProjectChanged" in late.text
    assert _send(client, "deactivate", seen="7").status_code == 409
    assert "modified, version 1" in as_page(client, _PAGE).text
    assert served.client("auditor").get("/api/v1/audit", params={"subject": "project"}).json()["records"] == []


def test_only_pages_of_those_who_may_decide_have_the_buttons(served: Served) -> None:
    client = served.browser()
    assert _send(client, "deactivate", csrf_token="x").status_code == 403
    for role in ("viewer", "auditor", "operator", "engineer"):
        anybody = served.client(role)
        assert "popovertarget" not in as_page(anybody, _PAGE).text
    refused = served.client("operator").post(f"{_PAGE}/deactivate", data={"seen": "1"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "Forbidden")
    assert served.client("viewer").get("/api/v1/projects/gl-close").json()["state"] == "active"


def test_a_file_that_does_not_compile_cannot_be_activated(served: Served) -> None:
    _edit(served, "type: update", "type: updat")
    page = as_page(served.browser(), _PAGE).text
    assert _form(page, "activate") == {}
