"""After a definition was corrected: what a version keeps, and the ways to run what is in the files now."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from clew.api.opened_environment import Principal
from clew.api.workspace import Workspace
from clew.auth.roles import AccessRole
from clew.cli.main import run
from clew.diagnostics import UserError
from clew.events.bodies import RunQueued, SignalAccepted
from clew.runs.signals import SignalType
from tests.engine.engine_workspaces import SHOP, Shop, make_shop


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


@pytest.fixture
def clew(
    shop: Shop, spark: SparkSession, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Answer]:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.chdir(shop.root)

    def call(*arguments: str) -> Answer:
        code = run(list(arguments))
        captured = capsys.readouterr()
        return Answer(code, captured.out, captured.err)

    return call


def doubled(expression: str) -> dict[str, Any]:
    assignments = [{"column": "twice", "expression": expression}]
    return {"seq": 10, "name": "Twice", "type": "update", "arguments": {"assignments": assignments}}


OUTPUT = {
    "seq": 20,
    "name": "Write",
    "type": "output",
    "arguments": {"destination": {"datasource_id": "reports", "path": "out"}},
}


def resolver_of(path: str, **more: Any) -> dict[str, Any]:
    [rule] = SHOP["resolvers/r.yaml"]["rules"]
    return {**SHOP["resolvers/r.yaml"], "rules": [{**rule, "strategy": {**rule["strategy"], "path": path}}], **more}


def written(shop: Shop) -> list[Any]:
    return sorted(ds.dataset(shop.root / "reports" / "out").to_table().column("twice").to_pylist())


def test_a_retry_with_current_definitions_runs_what_was_corrected(shop: Shop, clew: Callable[..., Answer]) -> None:
    shop.project("p", doubled("TO_INTEGER(currency)"), OUTPUT)
    failed = clew("run", "p", "--period", "2026-01", "--json").json
    assert (failed["status"], failed["project_version"]) == ("FAILED", "1")
    shop.project("p", doubled("amount * 2"), OUTPUT)
    assert clew("signal", failed["run_id"], "RETRY_STEP", "--step", "10", "--json").json["status"] == "FAILED"
    assert clew("signal", failed["run_id"], "RETRY_RUN", "--json").json["status"] == "FAILED"

    asked = ("signal", failed["run_id"], "RETRY_RUN", "--with-current-definitions", "--signal-id", "s1", "--json")
    again = clew(*asked).json
    assert (again["status"], again["project_version"], again["retry_of"]) == ("COMPLETED", "2", failed["run_id"])
    assert [float(value) for value in written(shop)] == [20.0, 40.0]
    events = [event.body for event in Workspace(shop.root).find_run(failed["run_id"]).events()]
    [told] = [body for body in events if isinstance(body, SignalAccepted) and body.signal_id == "s1"]
    [queued] = [
        event.body
        for event in Workspace(shop.root).find_run(again["run_id"]).events()
        if isinstance(event.body, RunQueued)
    ]
    renewed = told.payload["current_definitions"]
    assert isinstance(renewed, dict)
    assert renewed["project_version"] == queued.project_version == "2"
    assert renewed["plan"]["digest"] == queued.plan.digest

    shop.project("p", doubled("amount * 3"), OUTPUT)
    repeated = clew(*asked).json
    assert repeated["run_id"] == again["run_id"]
    assert [each.version for each in Workspace(shop.root).projects.versions("p")] == [2, 1]


def test_a_run_with_current_definitions_activates_what_has_changed_and_nothing_else(
    shop: Shop, clew: Callable[..., Answer]
) -> None:
    shop.project("p", doubled("amount * 2"), OUTPUT)
    anew = ("run", "p", "--period", "2026-01", "--with-current-definitions", "--json")
    assert [clew(*anew).json["project_version"] for _ in range(2)] == ["1", "1"]
    shop.project("p", doubled("amount * 3"), OUTPUT)
    assert clew("run", "p", "--period", "2026-01", "--json").json["project_version"] == "1"
    assert clew(*anew).json["project_version"] == "2"
    assert [float(value) for value in written(shop)] == [30.0, 60.0]


def test_a_version_keeps_the_resolvers_that_it_was_activated_with(shop: Shop, clew: Callable[..., Answer]) -> None:
    shop.write({"data/other.csv": "id,currency,amount,_period\n9,EUR,500.00,2026-01\n"})
    shop.project("p", doubled("amount * 2"), OUTPUT)
    assert clew("run", "p", "--period", "2026-01").code == 0
    shop.write({"resolvers/r.yaml": resolver_of("other.csv")})
    assert clew("projects", "--json").json["projects"][0]["state"] == "modified"
    kept = clew("run", "p", "--period", "2026-01")
    assert (kept.code, written(shop)) == (0, [20, 40])
    assert "the project or a resolver of it has changed since version 1" in kept.out
    assert clew("activate", "p", "--json").json["version"] == 2
    assert clew("projects", "--json").json["projects"][0]["state"] == "active"
    assert (clew("run", "p", "--period", "2026-01").code, written(shop)) == (0, [1000])
    (shop.root / "resolvers" / "r.yaml").unlink()
    shop.write({"resolvers/s.yaml": resolver_of("orders.csv", id="s")})
    shop.write({"datasets/orders.yaml": {**SHOP["datasets/orders.yaml"], "resolver_id": "s"}})
    assert (clew("run", "p", "--period", "2026-01").code, written(shop)) == (0, [20, 40])


def test_who_may_not_activate_projects_cannot_run_changed_definitions(shop: Shop, spark: SparkSession) -> None:
    shop.project("p", doubled("TO_INTEGER(currency)"), OUTPUT)
    failed = Workspace(shop.root).run("p", "2026-01")
    shop.project("p", doubled("amount * 2"), OUTPUT)
    operator = Workspace(shop.root).acting_as(Principal(name="olga", role=AccessRole.OPERATOR))
    for act in (
        lambda: operator.find_run(failed.id).signal(SignalType.RETRY_RUN, with_current_definitions=True),
        lambda: operator.submit("p", "2026-01", with_current_definitions=True),
    ):
        with pytest.raises(UserError) as refused:
            act()
        assert refused.value.code == "Forbidden"
    with pytest.raises(UserError, match="only RETRY_RUN can take the current definitions"):
        operator.find_run(failed.id).signal(SignalType.RETRY_STEP, step="10", with_current_definitions=True)
    assert [each.version for each in Workspace(shop.root).projects.versions("p")] == [1]
    assert len(Workspace(shop.root).runs()) == 1
