"""What the server keeps from one request to the next: only what cannot change, and never in place of what is there."""

from dataclasses import replace
from pathlib import Path

import pytest

from clew.plan import json_form, plan_from_json
from clew.storage import plans
from clew.trace.trace_database import TraceDatabase
from tests.server.server_fixtures import Served


def _stored_plan(served: Served) -> str:
    return str(served.client("viewer").get(f"/api/v1/runs/{served.run_id}/plan").json()["digest"])


def test_the_plan_of_a_run_is_put_together_once(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[object]()

    def counting(document: object) -> object:
        read.append(document)
        return plan_from_json(document)

    monkeypatch.setattr(json_form, "plan_from_json", counting)
    client = served.client("viewer")
    documents = [client.get(f"/api/v1/runs/{served.run_id}").json() for _ in range(3)]
    assert documents[0] == documents[1] == documents[2]
    assert len(read) <= 1


def test_a_plan_that_is_gone_or_damaged_is_not_covered_up(served: Served) -> None:
    client = served.client("viewer")
    digest = _stored_plan(served)
    [file] = Path(served.environment.storage_root.address).glob(f"plans/{digest}.json")
    text = file.read_text(encoding="utf-8")
    assert client.get(f"/api/v1/runs/{served.run_id}/plan").status_code == 200
    file.write_text("{", encoding="utf-8")
    assert client.get(f"/api/v1/runs/{served.run_id}/plan").status_code == 404
    file.unlink()
    assert client.get(f"/api/v1/runs/{served.run_id}/plan").status_code == 404
    file.write_text(text, encoding="utf-8")
    assert _stored_plan(served) == digest


def test_many_plans_do_not_pile_up(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "_MOST_ON_THE_SHELF", 2)
    root = served.environment.storage_root
    digest = _stored_plan(served)
    shelf, names = plans.PlanShelf(), [digest]
    for count in (1, 2, 3):
        shorter = replace(plans.kept_plan(root, digest), steps=plans.kept_plan(root, digest).steps[:count])
        shorter = replace(shorter, digest=json_form.digest_of(shorter))
        plans.keep_plan(root, shorter)
        names.append(shorter.digest)
    first = shelf.plan(root, digest)
    assert shelf.plan(root, digest) is first
    for name in names[1:]:
        shelf.plan(root, name)
    assert shelf.plan(root, digest) is not first


def test_a_project_is_compiled_once_while_its_files_stand(served: Served) -> None:
    files = served.workspace.files
    assert served.workspace.plan("gl-close") is served.workspace.plan("gl-close")
    assert files.plan("gl-close") is files.plan("gl-close")
    file = files.root / "projects" / "gl-close.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace('"5290"', '"5291"'), encoding="utf-8")
    edited = served.read_files().plan("gl-close")
    assert edited.digest != files.plan("gl-close").digest


def test_a_value_from_a_file_is_explained_without_a_query(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    client = served.client("auditor")
    rows = client.get(f"/api/v1/runs/{served.run_id}/trace/rows", params={"where": 'journal_id = "JE-00001"'}).json()
    asked = {"row": rows["rows"][0]["row_id"], "column": "amount_local"}
    address = f"/api/v1/runs/{served.run_id}/explain"
    explained = client.get(address, params=asked).json()

    def refused(*_arguments: object) -> None:
        raise AssertionError("a value that was loaded from a file needs no query")

    monkeypatch.setattr(TraceDatabase, "query", refused)
    assert client.get(address, params=asked).json() == explained
