"""Four eyes: who requests a run cannot approve it, by whatever name or token."""

import json
import os
import pwd
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from clew.api.opened_environment import Principal
from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.auth.roles import AccessRole
from clew.cli.main import run as command
from clew.runs.signals import SignalType
from tests.trace.interpreted_shop import interpreted_shop

ME = pwd.getpwuid(os.getuid()).pw_name
OTHER = Principal(name="another", role=AccessRole.ADMIN)


def environment(folder: Path, **settings: object) -> None:
    """Change the settings of the only environment."""
    path = folder / "clew.yaml"
    document = json.loads(path.read_text(encoding="utf-8"))
    document["environments"]["dev"] |= settings
    path.write_text(json.dumps(document), encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shop = interpreted_shop(tmp_path, monkeypatch)
    environment(shop.root, approval={"required": True, "by": "another_person", "roles": ["admin", "engineer"]})
    return shop.root


def requested(workspace: Workspace) -> Run:
    return workspace.submit("close", "2026-01")


def approve(workspace: Workspace, run: Run) -> str:
    outcome = workspace.get_run(run.id).signal(SignalType.APPROVE)
    return "accepted" if outcome.refused is None else outcome.refused.refusal.value


def test_the_requester_cannot_approve_and_another_person_can(folder: Path) -> None:
    workspace = Workspace(folder)
    run = requested(workspace)
    assert run.record.request.requested_by == ME
    assert approve(workspace, run) == "SAME_PERSON"
    assert approve(workspace.acting_as(OTHER), run) == "accepted"
    assert workspace.get_run(run.id).status == "APPROVED"


def test_the_command_line_says_who_the_requester_is_whatever_the_environment_variables_say(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = requested(Workspace(folder))
    for name in ("USER", "LOGNAME", "LNAME", "USERNAME"):
        monkeypatch.setenv(name, "another")
    assert command(["signal", run.id, "APPROVE", "--json", "-w", str(folder)]) != 0
    assert json.loads(capsys.readouterr().out)["refusal"] == "SAME_PERSON"


def test_a_token_that_the_requester_made_is_the_requester(folder: Path) -> None:
    workspace = Workspace(folder)
    run = requested(workspace)
    minted = workspace.tokens.create("sock puppet", role=AccessRole.ADMIN).token
    puppet = Principal(name=minted.name, role=minted.role, tenant_id=minted.tenant_id, token_id=minted.token_id)
    assert approve(workspace.acting_as(puppet), run) == "SAME_PERSON"
    requested_by_puppet = workspace.acting_as(puppet).submit("close", "2026-02")
    assert approve(workspace, requested_by_puppet) == "SAME_PERSON"
    assert approve(workspace.acting_as(OTHER), requested_by_puppet) == "accepted"


def test_who_repeats_a_run_has_requested_it(folder: Path) -> None:
    workspace = Workspace(folder)
    first = requested(workspace)
    other = workspace.acting_as(OTHER)
    assert other.get_run(first.id).signal(SignalType.CANCEL).is_accepted
    again = workspace.get_run(first.id).signal(SignalType.RETRY_RUN, signal_id="again")
    repeated = next(run for run in workspace.runs() if run.id != first.id)
    assert again.is_accepted
    assert approve(workspace, repeated) == "SAME_PERSON"
    assert approve(other, repeated) == "accepted"


def test_roles_say_who_may_approve_and_buttons_offer_it_only_to_them(folder: Path) -> None:
    workspace = Workspace(folder)
    run = requested(workspace)
    engineer = workspace.acting_as(Principal(name="eve", role=AccessRole.ENGINEER))
    operator = workspace.acting_as(Principal(name="oto", role=AccessRole.OPERATOR))
    offered = [
        any(each.signal is SignalType.APPROVE for each in seen.get_run(run.id).possible_signals())
        for seen in (workspace, operator, engineer)
    ]
    assert offered == [False, False, True]
    assert approve(operator, run) == "NOT_AUTHORIZED"
    assert approve(engineer, run) == "accepted"


@pytest.mark.parametrize(
    ("approval", "decision"),
    [
        ({"by": "anyone", "roles": ["admin"]}, "accepted"),
        ("required", "accepted"),
        ({"required": False}, "APPROVAL_NOT_PENDING"),
    ],
)
def test_other_policies_let_the_requester_approve(folder: Path, approval: object, decision: str) -> None:
    environment(folder, approval=approval)
    workspace = Workspace(folder)
    assert approve(workspace, requested(workspace)) == decision


def test_users_of_the_operating_system_have_the_role_that_the_environment_gives_them(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    environment(folder, approval="none", users={ME: "operator"})
    assert Workspace(folder).principal.role is AccessRole.OPERATOR
    environment(folder, users={"someone": "admin"})
    monkeypatch.setenv("USER", "someone")
    monkeypatch.setenv("LOGNAME", "someone")
    assert Workspace(folder).principal.role is AccessRole.VIEWER
    assert command(["run", "close", "--period", "2026-01", "--json", "-w", str(folder)]) != 0
    assert json.loads(capsys.readouterr().out)["error"]["code"] == "Forbidden"
    environment(folder, users={})
    assert Workspace(folder).principal.role is AccessRole.ADMIN


@pytest.mark.parametrize(
    ("role", "code"),
    [("viewer", "Forbidden"), ("operator", "Forbidden"), ("engineer", "Forbidden"), ("admin", None)],
)
@pytest.mark.parametrize(
    "arguments",
    [
        ["rm", "no-such-run"],
        ["gc", "--keep", "1"],
        ["token"],
        ["token", "create", "ci", "--role", "viewer"],
        ["token", "revoke", "no-such-token"],
        ["sessions"],
    ],
    ids=" ".join,
)
def test_deleting_and_tokens_are_for_admins(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], role: str, code: str | None
) -> None:
    run = requested(Workspace(folder))
    environment(folder, approval="none", users={ME: role})
    command([*(run.id if each == "no-such-run" else each for each in arguments), "--json", "-w", str(folder)])
    told = json.loads(capsys.readouterr().out).get("error", {}).get("code")
    assert told in ({code} if code is not None else {None, "NoSuchToken", "RunNotDeletable"})
    assert Workspace(folder).get_run(run.id).id == run.id


def test_what_would_be_deleted_is_shown_to_all(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    environment(folder, users={ME: "viewer"})
    assert command(["gc", "--dry-run", "--json", "-w", str(folder)]) == 0
    assert command(["gc", "--history", "--json", "-w", str(folder)]) == 0


FORGED_APPROVALS = {
    "the record of the run": ["UPDATE runs SET approval_pending = 0, wants_worker = 1"],
    "the record of the run and an event": [
        "UPDATE runs SET approval_pending = 0, wants_worker = 1, status = 'APPROVED', last_seq = last_seq + 1",
        (
            "INSERT INTO run_events SELECT run_id, run_seq + 1, 'e', step_id, logical_attempt_id, engine_attempt_id,"
            " 'RunApproved', 1, '{\"approved_by\": \"another\"}', 'k', emitted_at, persisted_at, adapter_version,"
            " engine_run_ref, caused_by_signal_id, parent_event_id, hash, hash FROM run_events"
            " WHERE run_seq = (SELECT max(run_seq) FROM run_events)"
        ),
    ],
    "what the run was asked for": [
        "UPDATE runs SET approval_pending = 0, wants_worker = 1, requested_by = 'another', status = 'APPROVED'"
    ],
}


@pytest.mark.parametrize("forged", FORGED_APPROVALS)
def test_an_approval_that_was_written_into_the_database_starts_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forged: str
) -> None:
    shop = interpreted_shop(tmp_path, monkeypatch)
    environment(shop.root, approval={"required": True})
    run_id = shop.submit("close")
    with closing(sqlite3.connect(shop.root / ".clew" / "state.db")) as database:
        for statement in FORGED_APPROVALS[forged]:
            assert database.execute(statement).rowcount == 1
        database.commit()
    view = shop.drive(run_id)
    assert view.snapshot.status == "FAILED"
    assert view.snapshot.error is not None
    assert view.snapshot.error.code == "ForgedHistory"
    assert not (shop.root / "out").exists()
