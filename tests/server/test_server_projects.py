"""Projects over HTTP: which version runs is decided by those who may, and stays on record."""

import pytest

from tests.server.server_fixtures import Served


def _state(served: Served) -> tuple[str, int]:
    project = served.client("viewer").get("/api/v1/projects/gl-close").json()
    return project["state"], project["version"]


def test_an_engineer_activates_what_the_file_says_and_takes_it_out_of_use(on_each_database: Served) -> None:
    served = on_each_database
    engineer = served.client("engineer")
    assert _state(served) == ("active", 1)
    file = served.workspace.root / "projects" / "gl-close.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('"5290"', '"5291"'), encoding="utf-8")

    activated = engineer.post("/api/v1/projects/gl-close/activate")
    assert activated.status_code == 200
    version = activated.json()
    assert (version["version"], version["status"], version["activated_by"]) == (2, "active", "the engineer")
    assert engineer.post("/api/v1/projects/gl-close/activate").json() == version
    assert _state(served) == ("active", 2)

    gone = served.client("admin").post("/api/v1/projects/gl-close/deactivate").json()
    assert (gone["version"], gone["status"]) == (2, "inactive")
    assert (gone["activated_by"], gone["activated_at"]) == (version["activated_by"], version["activated_at"])
    assert (version["deactivated_by"], gone["deactivated_by"]) == (None, "the admin")
    first = engineer.get("/api/v1/projects/gl-close").json()["versions"][-1]
    assert (first["version"], first["deactivated_by"]) == (1, "the engineer")
    page = engineer.get("/projects/gl-close", headers={"Accept": "text/html"}).text
    assert "the engineer, ended by the admin" in page
    assert _state(served) == ("inactive", 2)
    again = engineer.post("/api/v1/projects/gl-close/deactivate")
    assert (again.status_code, again.json()["error"]["code"]) == (409, "ProjectNotActive")
    wish = {"project": "gl-close", "period": "2026-01"}
    assert engineer.post("/api/v1/runs", json=wish).json()["error"]["code"] == "ProjectNotActive"

    log = served.client("auditor").get("/api/v1/audit", params={"subject_id": "gl-close"}).json()["records"]
    assert [(each["actor"], each["role"], each["subject"], each["detail"]) for each in log] == [
        ("the admin", "admin", "project", "deactivated version 2"),
        ("the engineer", "engineer", "project", "activated version 2"),
        ("the engineer", "engineer", "project", "activated version 2"),
    ]


@pytest.mark.parametrize("role", ["viewer", "auditor", "operator"])
@pytest.mark.parametrize("change", ["activate", "deactivate"])
def test_others_may_not_decide_what_runs(shared: Served, role: str, change: str) -> None:
    answer = shared.client(role).post(f"/api/v1/projects/gl-close/{change}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "Forbidden")
    assert answer.json()["error"]["message"] == f"the role {role} may not activate projects"
    assert _state(shared) == ("active", 1)


def test_what_does_not_compile_is_not_activated_and_nothing_is_on_record(served: Served) -> None:
    file = served.workspace.root / "projects" / "gl-close.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("type: update", "type: updat", 1), encoding="utf-8")
    admin = served.client("admin")
    answer = admin.post("/api/v1/projects/gl-close/activate")
    assert answer.status_code == 422
    assert "updat" in answer.text
    assert admin.post("/api/v1/projects/nope/activate").status_code == 404
    assert admin.get("/api/v1/audit", params={"subject": "project"}).json()["records"] == []


def test_a_browser_needs_the_form_token_to_change_what_runs(served: Served) -> None:
    answer = served.browser().post("/api/v1/projects/gl-close/deactivate")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "ForgedRequest")
    assert _state(served) == ("active", 1)
