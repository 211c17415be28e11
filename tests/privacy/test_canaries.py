"""No byte of any route, page, stream, command, object or log shows a value to a role that may not see it."""

import io
import json
import logging
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from httpx2 import Response

import clew
from clew.cli.main import run as run_command
from clew.definitions.privacy import RoleName, Sight
from clew.definitions.settings import Environment
from clew.diagnostics import UserError
from tests.privacy.addresses import api_routes, page_routes, requests, values_of
from tests.privacy.clinic import CANARIES, PERSONAL, PIN, PUBLIC, SECRET, Clinic, copied, leaked

pytestmark = pytest.mark.slow

ROLES = [role.value for role in RoleName]
WHOLE = {"viewer", "operator", "admin"}
"""Roles that differ in what they see. The others see what operators see, and are asked about fewer rows."""


def text_of(answer: Response) -> str:
    """All that an answer says, unpacked."""
    if answer.headers.get("content-type") != "application/zip":
        return answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        return "\n".join(archive.read(name).decode() for name in archive.namelist())


def unseen_by(role: str) -> list[str]:
    """The classes that a role does not see as they are."""
    return [name for name, sight in Environment().privacy.sights(role).items() if sight is not Sight.CLEAR]


def test_the_defaults_are_safe() -> None:
    assert {role: unseen_by(role) for role in ROLES} == {
        "viewer": ["public", "personal", "secret"],
        "operator": ["personal", "secret"],
        "auditor": ["personal", "secret"],
        "engineer": ["personal", "secret"],
        "admin": ["secret"],
    }


@pytest.mark.parametrize("role", ROLES)
def test_no_byte_of_the_server_shows_what_a_role_may_not_see(
    clinic: Clinic, role: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "clew")
    client, hidden = clinic.served.client(role), unseen_by(role)
    values = values_of(clinic)
    few = {**values, "row": [values["row"][2], *values["row"][-4:][:: 3 if role in WHOLE else 4]]}
    found, asked, seen = dict[str, list[str]](), 0, ""
    routes = [each for each in (*api_routes(clinic), *page_routes(clinic)) if each.method == "GET"]
    for request in requests(clinic, routes, few):
        answer = request.send(client)
        asked += 1
        assert answer.status_code < 500, (request, answer.text)
        content = text_of(answer) + str(dict(answer.headers))
        leaks = leaked(content, *hidden)
        if leaks:
            found[f"{request.path} {dict(request.query)}"] = leaks
        if answer.status_code == 200 and "rows" in request.path:
            seen += content
    assert found == {}
    logged = [record.getMessage() for record in caplog.records if record.name.startswith("clew")]
    assert leaked("\n".join(logged), *hidden) == []
    assert asked > 100
    # The canaries are there for those who may see them: the search would find them.
    if role != "viewer":
        assert [name for name in CANARIES if name not in hidden and not leaked(seen, name)] == []
        assert "[masked]" in seen or "secret" in hidden


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_pages_of_a_browser_show_no_more_than_the_api(clinic: Clinic, role: str) -> None:
    """Sessions take the role of the token that began them."""
    client = clinic.served.client()
    assert client.post("/login", data={"token": clinic.served.token(role)}).status_code == 303
    for path in (f"/runs/{clinic.care}", f"/runs/{clinic.failed}", f"/runs/{clinic.care}/rows"):
        answer = client.get(path)
        assert answer.status_code in {200, 403}
        assert leaked(answer.text, *unseen_by(role)) == [], path


COMMANDS = [
    "show {care}",
    "show {failed}",
    "events {care}",
    "events {failed}",
    "runs",
    "captures",
    "capture show {capture}",
    "capture view {capture}",
    "trace {care}",
    "trace {care} {row}",
    "trace {care} {summary}",
    "trace {care} {row} --at 40",
    "trace {care} --at 80 --limit 50",
    "trace {care} --step 30",
    "trace {care} --step 40",
    "trace {care} --step 70",
    "trace {care} --where 'cost > 0' --limit 50",
    "trace {care} --where 'name IS NOT NULL'",
    "trace {care} --where 'pin > 5'",
    "explain {care} {row} greeting",
    "explain {care} {row} head",
    "explain {care} {row} code",
    "explain {care} {row} region",
    "explain {care} {row} cost",
    "explain {care} {summary} cost --all",
    "explain {care} {summary} payroll --all",
    "explain {care} cost --where 'cost > 0'",
    "explain {care} --why-not 'cost > 0'",
    "explain {care} --why-not 'ward = \"nowhere\"'",
    "explain {care} --why-not 'name = \"x\"'",
    "compare {care} {failed} --at 0",
    "compare {care} {failed} --at 10 --sort cost",
    "compare {care} {failed} --at 10 --sort salary",
    "compare {care} {failed} --at 10 --where 'name IS NOT NULL'",
    "compare {care} {failed} --at 10 --key pin",
    "why-changed {care} {failed} cost --at 10",
    "why-changed {care} {failed} salary --at 10",
    "why-changed {care} {failed} cost --at 10 --where 'name IS NOT NULL'",
    "what-if {care} --set 'patients: cost = cost + 1'",
    "what-if {care} --sensitivity cost --at 10",
    "explain {care} {summary} cost --restated",
    "plan care --against {care}",
    "plan care --against {care} --markdown",
    "what-if {care} --sensitivity payroll --at 80",
    "what-if {care} --set 'visitors: spent = spent + 1'",
    "test cut {care} --where 'cost = 102' --at 60",
    "test cut {care} --where 'cost = 102' --at 60 --mask",
    "test cut {care} --where 'name IS NOT NULL AND cost = 103' --at 60",
    "test cut {care} --where 'payroll > 0 AND ward = \"QXPUB-ward-1\"' --at 80 --group",
    "quarantine {care}",
    "adjustments {care}",
    "checks {care} --rows",
    "reconcile {care}",
    "verify {care} --deep",
    "verify --all",
    "audit --limit 500",
    "what-if {care} --set 'patients: cost = salary'",
    "what-if {care} --set 'wards: head = \"x\"' --at 80",
    "what-if {care} --drop 'patients where name IS NOT NULL' --at 80",
    "what-if {care} --drop 'patients where cost > 103' --at 80",
    "lineage {trace}",
    "plan care",
    "datasets",
    "projects",
]


def local(folder: Path, role: str) -> Path:
    """The workspace, where commands and programs have a role."""
    settings = json.loads((folder / "clew.yaml").read_text(encoding="utf-8"))
    settings["environments"]["dev"]["local_role"] = role
    (folder / "clew.yaml").write_text(json.dumps(settings), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def workspaces(clinic: Clinic, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A copy of the clinic for each role."""
    folder = tmp_path_factory.mktemp("local")
    return {role: local(copied(clinic.folder, folder / role), role) for role in ROLES}


def names_of(clinic: Clinic) -> dict[str, str]:
    rows = clinic.care_rows
    trace = (clinic.trace_ids or [1])[0]
    return {
        "care": clinic.care,
        "failed": clinic.failed,
        "capture": clinic.capture,
        "row": rows[2],
        "summary": rows[-2],
        "trace": str(trace),
    }


@pytest.mark.parametrize("role", ROLES)
def test_no_command_prints_what_its_user_may_not_see(
    clinic: Clinic, workspaces: dict[str, Path], role: str, capfd: pytest.CaptureFixture[str]
) -> None:
    hidden, names = unseen_by(role), names_of(clinic)
    seen, found = "", dict[str, list[str]]()
    for command in COMMANDS:
        for form in ([], ["--json"]):
            words = [word.replace("\x00", " ") for word in _words(command.format(**names))]
            code = run_command([*words, "-w", str(workspaces[role]), *form])
            printed = capfd.readouterr()
            assert code in {0, 1, 2, 3, 4}, (command, printed.err)
            assert "Traceback" not in printed.err
            leaks = leaked(printed.out + printed.err, *hidden)
            if leaks:
                found[f"{command} {form}"] = leaks
            seen += printed.out
    assert found == {}
    if role != "viewer":
        assert [name for name in CANARIES if name not in hidden and not leaked(seen, name)] == []


def _words(command: str) -> Iterator[str]:
    for quoted, plain in re.findall(r"'([^']*)'|(\S+)", command):
        yield quoted or plain


@pytest.mark.parametrize("role", ROLES)
def test_no_object_in_python_holds_what_its_user_may_not_see(
    clinic: Clinic, workspaces: dict[str, Path], role: str
) -> None:
    hidden, names = unseen_by(role), names_of(clinic)
    asked = 0
    with clew.open(workspaces[role]) as workspace:
        run = workspace.get_run(names["care"])
        questions: list[Callable[[], object]] = [
            lambda: run.trace(names["row"]),
            lambda: run.trace(names["row"], at=40),
            lambda: run.trace(where="cost > 0"),
            lambda: run.trace(where='name = "x"'),
            lambda: run.trace(step=70),
            lambda: run.open_trace().states([names["row"], names["summary"]], 80),
            lambda: run.explain(names["row"], "greeting"),
            lambda: run.explain(names["row"], "head"),
            lambda: run.explain(names["row"], "code"),
            lambda: run.explain(names["summary"], "cost", top=None),
            lambda: run.row_where("cost > 0"),
            lambda: run.compare(names["failed"], at=0),
            lambda: run.why_changed(names["failed"], "cost", at=10),
            lambda: run.what_if(drops=["patients where cost > 103"], at=80),
            lambda: run.what_if(sets=['wards: head = "x"'], at=80),
            lambda: run.compare(names["failed"], at=10, sort="cost").to_csv(),
            lambda: run.why_not("cost > 0"),
            lambda: run.impact("care"),
            lambda: run.sensitivity("payroll", at=80),
            lambda: run.cut_scenario("cost = 102", at=60),
            lambda: run.cut_scenario("payroll > 0", at=80, group=True),
            lambda: run.download("csv", at=60),
            lambda: run.download("csv", at=60, where="name IS NOT NULL"),
            run.reconcile,
            run.checks,
            run.quarantine_csv,
            run.adjustments,
            workspace.overview,
            lambda: workspace.search("103"),
            run.to_json,
            lambda: run.postlude_jobs,
            run.events,
            run.captures[0].to_arrow,
            run.captures[0].report,
            workspace.captures()[0].statistics,
            lambda: workspace.capture(names["capture"]).first_rows(5),
        ]
        for question in questions:
            try:
                answer = question()
            except UserError as error:
                told = str([each.message for each in error.diagnostics])
            else:
                told = "".join(_forms(answer))
            asked += 1
            assert leaked(told, *hidden) == [], asked
    assert asked == len(questions)


@pytest.mark.parametrize("role", ROLES)
def test_a_search_tells_nobody_whether_a_value_that_they_may_not_see_exists(
    workspaces: dict[str, Path], role: str
) -> None:
    hidden = unseen_by(role)
    values = {"personal": (f"{PERSONAL}-name-2", "7340021.02"), "secret": (f"{SECRET}-ssn-2", f"{PIN}2")}
    with clew.open(workspaces[role]) as workspace:
        for name, existing in values.items():
            for value in existing:
                found, control = workspace.search(value), workspace.search(f"{value}9")
                assert bool(found.hits) is (name not in hidden), value
                assert control.hits == ()
                if name in hidden:
                    told = [str(each.to_json()).replace(each.text, "") for each in (found, control)]
                    assert told[0] == told[1]


def test_what_a_search_was_for_is_on_record_without_what_readers_of_the_record_may_not_see(
    workspaces: dict[str, Path],
) -> None:
    name = f"{PERSONAL}-name-2"
    with clew.open(workspaces["admin"]) as workspace:
        assert workspace.search(name).hits
        recorded = [str(each.to_json()) for each in workspace.operations.access_records(limit=50)]
    assert any("_row_id" in each or "ward" in each for each in recorded)
    assert leaked("".join(recorded), *unseen_by("auditor")) == []


def _forms(answer: object) -> Iterator[str]:
    """Everything that an answer can be turned into."""
    yield repr(answer)
    for name in ("to_json", "to_arrow", "to_text", "to_html", "_repr_html_"):
        if hasattr(answer, name):
            told = getattr(answer, name)()
            yield str(told.to_pylist() if hasattr(told, "to_pylist") else told)


def test_the_environment_says_who_sees_what(clinic: Clinic, tmp_path: Path) -> None:
    folder = local(copied(clinic.folder, tmp_path / "own"), "operator")
    settings = json.loads((folder / "clew.yaml").read_text(encoding="utf-8"))
    sight = {"operator": {"personal": "clear", "secret": "masked"}}
    settings["environments"]["dev"] |= {"privacy": {"roles": sight}}
    (folder / "clew.yaml").write_text(json.dumps(settings), encoding="utf-8")
    found = clew.open(folder).get_run(clinic.care).trace(where=f'name = "{PERSONAL}-name-2"')
    [row] = found.rows
    assert (row.state["name"], row.state["ssn"]) == (f"{PERSONAL}-name-2", "[masked]")
    assert row.state["ward"] == f"{PUBLIC}-ward-0"
    assert SECRET not in str(found.to_json())


@pytest.mark.parametrize("role", ["viewer", "auditor"])
def test_a_local_role_holds_for_what_is_done_as_well(
    clinic: Clinic, workspaces: dict[str, Path], role: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whoever may only look starts nothing, and gives nobody rights: not even those that they have."""
    tokens = [["token", "create", "mine", "--role", each] for each in ("admin", role)]
    for command in [["run", "care", "--period", "2026-03"], *tokens, ["activate", "care"]]:
        code = run_command([*command, "--json", "-w", str(workspaces[role])])
        error = json.loads(capfd.readouterr().out)["error"]
        assert (code != 0, error["code"]) == (True, "Forbidden"), command
        assert role in error["message"]
