"""Runs over HTTP: listed, asked for, told something; the same documents as commands give."""

import json
import threading
from typing import Any

import pytest

from clew.cli.main import run as command
from clew.diagnostics import UserError
from clew.diagnostics.codes.engine import SCHEMA_MISMATCH
from clew.events.snapshot import RunStatus
from tests.server.server_fixtures import MONTH, OpenSite, Served

NEW_RUN = {"project": "group-report", "period": MONTH, "request_id": "r-1"}


def test_runs_come_in_pages_the_newest_first(on_each_database: Served) -> None:
    served = on_each_database
    client = served.client("operator")
    made = [client.post("/api/v1/runs", json={**NEW_RUN, "request_id": f"r-{n}"}).json()["run_id"] for n in range(4)]
    seen, cursor = list[str](), None
    while True:
        page = client.get("/api/v1/runs", params={"limit": 2} | ({"cursor": cursor} if cursor else {})).json()
        seen += [run["run_id"] for run in page["runs"]]
        cursor = page["next_cursor"]
        assert page["has_more"] is (cursor is not None)
        if cursor is None:
            break
    assert seen == [*reversed(made), served.run_id]


@pytest.mark.parametrize(
    ("which", "found"),
    [
        ({"project": "gl-close"}, 1),
        ({"project": "group-report"}, 0),
        ({"period": MONTH}, 1),
        ({"period": "2026-02"}, 0),
        ({"status": "COMPLETED"}, 1),
        ({"status": "FAILED"}, 0),
    ],
)
def test_runs_are_listed_by_what_is_asked_for(shared: Served, which: dict[str, str], found: int) -> None:
    assert len(shared.client("viewer").get("/api/v1/runs", params=which).json()["runs"]) == found


def test_a_run_that_is_asked_for_is_accepted_and_the_same_request_gives_the_same_run(on_each_database: Served) -> None:
    client = on_each_database.client("operator")
    first = client.post("/api/v1/runs", json=NEW_RUN)
    assert first.status_code == 202
    assert first.headers["location"] == f"/api/v1/runs/{first.json()['run_id']}"
    assert first.json()["status"] == "PENDING"
    assert first.json()["requested_by"] == "the operator"
    again = client.post("/api/v1/runs", json=NEW_RUN)
    assert (again.status_code, again.json()["run_id"]) == (202, first.json()["run_id"])
    other = client.post("/api/v1/runs", json={**NEW_RUN, "request_id": "r-2"})
    assert other.json()["run_id"] != first.json()["run_id"]


def test_a_busy_environment_that_rejects_answers_429_and_takes_the_same_request_later(serve_with: OpenSite) -> None:
    served = serve_with(queue="{policy: REJECT, max_running: 1, retry_after_seconds: 17}")
    client = served.client("operator")
    taken = client.post("/api/v1/runs", json=NEW_RUN).json()["run_id"]
    wish = {**NEW_RUN, "project": "gl-close", "request_id": "r-2"}
    refused = client.post("/api/v1/runs", json=wish)
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "17"
    assert refused.json()["error"]["code"] == "Overloaded"
    served.finish(taken)
    accepted = client.post("/api/v1/runs", json=wish)
    assert accepted.status_code == 202
    rejected = client.get("/api/v1/runs", params={"project": "gl-close"}).json()["runs"][0]
    assert rejected["run_id"] == accepted.json()["run_id"]


@pytest.mark.parametrize(
    ("wish", "status", "code"),
    [
        ({"project": "nope", "period": MONTH}, 404, "UnknownProject"),
        ({"project": "gl-close", "period": "2099-01"}, 404, "UnknownPeriod"),
        ({"project": "gl-close"}, 422, "InvalidRequest"),
        ({"project": "gl-close", "period": MONTH, "tenant": "other"}, 422, "InvalidRequest"),
        ({"project": "gl-close", "period": 7}, 422, "InvalidRequest"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused_with_its_reason(
    shared: Served, wish: dict[str, object], status: int, code: str
) -> None:
    answer = shared.client("operator").post("/api/v1/runs", json=wish)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    assert set(answer.json()["error"]) >= {"code", "message", "hint"}


def test_signals_are_decided_by_the_role_and_by_the_state_of_the_run(served: Served) -> None:
    run_id = served.client("operator").post("/api/v1/runs", json=NEW_RUN).json()["run_id"]
    path = f"/api/v1/runs/{run_id}/signals"
    skip = {"signal": "SKIP_STEP", "step": 10}
    refused = served.client("operator").post(path, json=skip)
    assert (refused.status_code, refused.json()["refusal"]) == (409, "NOT_AUTHORIZED")
    pause = served.client("operator").post(path, json={"signal": "PAUSE"})
    assert (pause.status_code, pause.json()["refusal"]) == (409, "RUN_NOT_RUNNING")
    cancel = served.client("operator").post(path, json={"signal": "CANCEL", "reason": "not today"})
    assert (cancel.status_code, cancel.json()["accepted"], cancel.json()["status"]) == (200, True, "CANCELLED")
    events = served.client("viewer").get(f"/api/v1/runs/{run_id}/events").json()["events"]
    [accepted] = [event["event_data"] for event in events if event["event_type"] == "SignalAccepted"]
    assert (accepted["actor"], accepted["role"], accepted["reason"]) == ("the operator", "operator", "not today")


def test_what_is_loaded_cannot_be_skipped(served: Served) -> None:
    served.engine.failing["load"] = UserError(SCHEMA_MISMATCH.anywhere(problem="two rows have one key"))
    run_id = served.starter.submit("gl-close", "2026-02").run_id
    assert served.starter.drive(run_id, threading.Event()) is RunStatus.FAILED
    skip = {"signal": "SKIP_STEP", "step": 0}
    refused = served.client("engineer").post(f"/api/v1/runs/{run_id}/signals", json=skip)
    assert (refused.status_code, refused.json()["refusal"]) == (409, "STEP_NEEDED")
    page = served.browser().get(f"/runs/{run_id}", headers={"Accept": "text/html"}).text
    assert "Retry step load" in page
    assert "Skip step" not in page


def test_a_request_id_stands_for_one_request(served: Served) -> None:
    client = served.client("operator")
    first = client.post("/api/v1/runs", json={**NEW_RUN, "request_id": "one"}).json()
    other = client.post("/api/v1/runs", json={**NEW_RUN, "period": "2026-03", "request_id": "one"})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "RequestIdTaken")
    assert first["run_id"] in other.json()["error"]["message"]


def test_the_same_signal_again_is_the_same_signal(served: Served) -> None:
    client = served.client("operator")
    wish = {"signal": "RETRY_RUN", "signal_id": "once"}
    first, again = (client.post(f"/api/v1/runs/{served.run_id}/signals", json=wish).json() for _ in range(2))
    assert first["new_run_id"] == again["new_run_id"] is not None


def test_an_unknown_signal_is_refused_with_the_nearest_name(shared: Served) -> None:
    answer = shared.client("operator").post(f"/api/v1/runs/{shared.run_id}/signals", json={"signal": "PAUSED"})
    assert answer.status_code == 422
    assert 'did you mean "PAUSE"?' in answer.json()["error"]["hint"]


def _first_row(served: Served) -> str:
    found = served.client("auditor").get(f"/api/v1/runs/{served.run_id}/trace/rows", params={"limit": 1}).json()
    row: str = found["rows"][0]["row_id"]
    return row


@pytest.mark.parametrize(
    ("arguments", "path", "parameters"),
    [
        (["show", "RUN"], "runs/RUN", {}),
        (["trace", "RUN"], "runs/RUN/trace", {}),
        (["trace", "RUN", "ROW"], "runs/RUN/trace/rows/ROW", {}),
        (["trace", "RUN", "ROW", "--at", "10"], "runs/RUN/trace/rows/ROW/at/10", {}),
        (["trace", "RUN", "--step", "10", "--limit", "3"], "runs/RUN/trace/steps/10", {"limit": "3"}),
        (
            ["trace", "RUN", "--where", "amount_usd > 10", "--limit", "3"],
            "runs/RUN/trace/rows",
            {"where": "amount_usd > 10", "limit": "3"},
        ),
        (["explain", "RUN", "ROW", "amount_usd"], "runs/RUN/explain", {"row": "ROW", "column": "amount_usd"}),
        (
            ["explain", "RUN", "--why-not", 'CONTAINS(description, "TEST")'],
            "runs/RUN/why-not",
            {"where": 'CONTAINS(description, "TEST")'},
        ),
        (
            ["explain", "RUN", "--why-not", 'journal_id = "JE-01171"'],
            "runs/RUN/why-not",
            {"where": 'journal_id = "JE-01171"'},
        ),
        (["projects"], "projects", {}),
        (["plan", "gl-close"], "projects/gl-close/plan", {}),
        (["plan", "gl-close", "--breakpoints"], "projects/gl-close/breakpoints", {}),
        (["datasets"], "datasets", {}),
        (["datasets", "accounts"], "datasets/accounts", {}),
        (["dlq"], "dead-letters", {}),
        (["events", "RUN", "--verify"], "runs/RUN/events/verification", {}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_api_gives_the_documents_of_the_commands(
    shared: Served,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    path: str,
    parameters: dict[str, str],
) -> None:
    names = {"RUN": shared.run_id, "ROW": _first_row(shared)}
    root = str(shared.workspace.root)
    command([*(names.get(argument, argument) for argument in arguments), "--json", "--workspace", root])
    printed = json.loads(capsys.readouterr().out)
    for name, value in names.items():
        path = path.replace(name, value)
        parameters = {key: value if given == name else given for key, given in parameters.items()}
    answer = shared.client("admin").get(f"/api/v1/{path}", params=parameters)
    assert answer.status_code == 200, answer.text
    assert answer.json() == printed


def test_the_list_of_runs_and_the_history_hold_what_commands_print(
    shared: Served, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*arguments: str) -> Any:
        command([*arguments, "--json", "--workspace", str(shared.workspace.root)])
        return json.loads(capsys.readouterr().out)

    client = shared.client("viewer")
    assert client.get("/api/v1/runs").json()["runs"] == printed("runs")["runs"]
    assert (
        client.get(f"/api/v1/runs/{shared.run_id}/events").json()["events"]
        == printed("events", shared.run_id)["events"]
    )


@pytest.mark.parametrize("path", ["trace", "trace/rows", "trace/rows/ROW", "trace/steps/10", "plan"])
def test_what_never_changes_is_not_sent_twice(shared: Served, path: str) -> None:
    client = shared.client("auditor")
    address = f"/api/v1/runs/{shared.run_id}/{path}".replace("ROW", _first_row(shared))
    first = client.get(address)
    assert first.headers["cache-control"] == "private, no-cache"
    again = client.get(address, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(address, headers={"If-None-Match": '"other"'}).status_code == 200
    other = client.get(address, params={"x": "1"})
    assert other.headers["etag"] != first.headers["etag"]


def test_the_trace_of_a_run_that_goes_on_is_refused(served: Served) -> None:
    client = served.client("operator")
    run_id = client.post("/api/v1/runs", json=NEW_RUN).json()["run_id"]
    answer = client.get(f"/api/v1/runs/{run_id}/trace")
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "RunNotFinished")


def test_a_plan_is_found_by_its_digest_and_a_version_by_its_number(shared: Served) -> None:
    client = shared.client("viewer")
    plan = client.get(f"/api/v1/runs/{shared.run_id}/plan").json()
    assert client.get(f"/api/v1/plans/{plan['digest']}").json() == plan
    assert client.get(f"/api/v1/plans/{'0' * 64}").status_code == 404
    version = client.get("/api/v1/projects/gl-close/versions/1").json()
    assert version["plan"] == plan
    assert "id: gl-close" in version["definition"]
    missing = client.get("/api/v1/projects/gl-close/versions/7")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "NoSuchVersion")


def test_an_edited_file_shows_without_a_restart(served: Served) -> None:
    client = served.client("viewer")
    assert client.get("/api/v1/projects/gl-close").json()["state"] == "active"
    file = served.workspace.root / "projects" / "gl-close.yaml"
    file.write_text(file.read_text(encoding="utf-8").replace("Reclassify travel", "Move travel"), encoding="utf-8")
    served.read_files()
    assert client.get("/api/v1/projects/gl-close").json()["state"] == "modified"


@pytest.mark.parametrize("role", ["viewer", "auditor"])
def test_a_signal_that_a_role_may_not_send_is_refused_and_recorded(served: Served, role: str) -> None:
    path = f"/api/v1/runs/{served.run_id}/signals"
    answer = served.client(role).post(path, json={"signal": "RETRY_RUN", "signal_id": f"by {role}"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "Forbidden")
    events = served.client("viewer").get(f"/api/v1/runs/{served.run_id}/events").json()["events"]
    assert events[-1]["event_type"] == "SignalRejected"
    recorded = events[-1]["event_data"]
    assert (recorded["actor"], recorded["refusal"]) == (f"the {role}", "NOT_AUTHORIZED")


def test_a_signal_id_that_was_used_for_another_signal_is_refused(served: Served) -> None:
    path = f"/api/v1/runs/{served.run_id}/signals"
    client = served.client("operator")
    assert client.post(path, json={"signal": "PAUSE", "signal_id": "x"}).status_code == 409
    again = client.post(path, json={"signal": "RETRY_RUN", "signal_id": "x"})
    assert (again.status_code, again.json()["refusal"]) == (409, "SIGNAL_ID_TAKEN")
    assert again.json()["new_run_id"] is None
