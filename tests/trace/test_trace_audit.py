"""Every read of rows is on record before it is answered: by commands and Python as well as over HTTP."""

import json
import os
import pwd
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from clew.api.opened_environment import Principal
from clew.api.workspace import Workspace
from clew.auth.roles import AccessRole
from clew.cli.main import run as command
from clew.diagnostics import UserError
from tests.trace.interpreted_shop import Ran, ran_shop

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ran]:
    with ran_shop(tmp_path_factory.mktemp("shop")) as ran:
        yield ran


@pytest.fixture
def records(ran: Ran, capsys: pytest.CaptureFixture[str]) -> Callable[..., list[dict[str, Any]]]:
    """What `clew audit` lists since the test began, oldest first."""

    def listed(*arguments: str) -> list[dict[str, Any]]:
        capsys.readouterr()
        assert command(["audit", "--json", "--limit", "1000", *arguments, "-w", str(ran.shop.root)]) == 0
        found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["records"]
        return list(reversed(found))

    before = len(listed())
    return lambda *arguments: listed(*arguments)[before if not arguments else 0 :]


def row_of(ran: Ran) -> str:
    with Workspace(ran.shop.root) as workspace:
        return str(workspace.get_run(ran.january).open_trace().search("id = 103").rows[0].row_id)


@pytest.mark.parametrize(
    ("arguments", "kind", "asked", "returned"),
    [
        (["trace", "RUN", "--where", "amount > 3"], "trace", "where amount > 3", "4 rows of id, currency, amount, usd"),
        (["trace", "RUN", "--step", "20"], "trace", "step 20", "1 row of _deleted"),
        (["trace", "RUN", "ROW"], "trace", "row ROW", "1 row of id"),
        (["trace", "RUN", "ROW", "--at", "0"], "trace", "row ROW, at 0", "1 row of id, currency, amount"),
        (["trace", "RUN", "--records", "--step", "20"], "trace", "step 20", "1 row"),
        (["explain", "RUN", "--where", "id = 103", "usd"], "explanation", "column usd", "2 rows of usd, "),
        (["explain", "RUN", "--why-not", "id = 101"], "explanation", "why not: id = 101", "1 row"),
        (["reconcile", "RUN"], "trace", "reconciliation", "0 rows"),
    ],
)
def test_commands_record_who_asked_what_and_what_they_got(
    ran: Ran,
    records: Callable[..., list[dict[str, Any]]],
    arguments: list[str],
    kind: str,
    asked: str,
    returned: str,
) -> None:
    row = row_of(ran)
    names = {"RUN": ran.january, "ROW": row}
    before = len(records())
    command([*(names.get(each, each) for each in arguments), "-w", str(ran.shop.root)])
    found = records()[before:]
    assert found
    assert {(each["actor"], each["role"], each["subject_id"]) for each in found} == {(ME, "admin", ran.january)}
    told = [each["detail"] for each in found if each["subject"] == kind]
    assert any(asked.replace("ROW", row) in detail and f"returned {returned}" in detail for detail in told), told


def test_python_records_in_the_name_of_whom_it_acts_for(ran: Ran, records: Callable[..., list[dict[str, Any]]]) -> None:
    with Workspace(ran.shop.root) as workspace:
        ada = workspace.acting_as(Principal(name="ada", role=AccessRole.AUDITOR, tenant_id=workspace.tenant))
        ada.get_run(ran.january).trace(where="amount > 5")
    [record] = records()
    assert (record["actor"], record["role"]) == ("ada", "auditor")
    assert records("--actor", "ada")[-1] == record
    assert all(each["subject"] == "trace" for each in records("--kind", "trace"))


def test_a_condition_is_recorded_whole_and_one_that_is_too_long_is_refused(
    ran: Ran, records: Callable[..., list[dict[str, Any]]]
) -> None:
    padding = " AND id > 0" * 600
    with Workspace(ran.shop.root) as workspace:
        run = workspace.get_run(ran.january)
        run.trace(where=f"id > 0{padding} AND amount > 4711")
        [record] = records()
        assert "amount > 4711" in record["detail"]
        for ask in (
            lambda where: run.trace(where=where),
            run.why_not,
            run.row_where,
        ):
            with pytest.raises(UserError, match="ConditionTooLong"):
                ask(f"id > 0{padding}{padding}")
    assert len(records()) == 1


def test_tokens_are_on_record(ran: Ran, records: Callable[..., list[dict[str, Any]]]) -> None:
    with Workspace(ran.shop.root) as workspace:
        minted = workspace.tokens.create("ci", role=AccessRole.OPERATOR)
        workspace.tokens.revoke(minted.token.token_id)
    made, revoked = records()
    assert (made["subject"], made["detail"]) == ("token", "created for ci, operator")
    assert (revoked["subject_id"], revoked["detail"]) == (minted.token.token_id, "revoked, of ci")
    assert minted.text not in json.dumps(records())


def test_only_auditors_and_admins_read_the_record(ran: Ran) -> None:
    with Workspace(ran.shop.root) as workspace:
        operator = workspace.acting_as(Principal(name="oto", role=AccessRole.OPERATOR))
        with pytest.raises(UserError, match="may not read the access log"):
            operator.operations.access_records()


def test_wrong_usage_is_told(ran: Ran, tmp_path: Path) -> None:
    assert command(["audit", "--kind", "reads", "-w", str(ran.shop.root)]) == 2
