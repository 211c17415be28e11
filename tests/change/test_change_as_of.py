"""Runs on what was known at a time, without Spark: which version, which inputs, and every door."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from clew.api.run import Run
from clew.api.workspace import Workspace
from clew.cli.main import run as command
from clew.diagnostics import UserError
from clew.engine.opening import Inputs, SparkExecutors
from clew.runs.clock import utc_now
from clew.runs.named_periods import period_of
from clew.runs.request import AsOf
from clew.store.table_transfer import PostgresqlTables
from tests.change.repeating_engine import RepeatingEngine
from tests.change.rerun_shops import answers, completed, taken
from tests.engine.engine_workspaces import Shop, make_shop
from tests.trace.interpreted_shop import CLOSE, ORDERS, RATES, interpreted_shop


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    data: dict[str, list[dict[str, Any]]] = {"orders": list(ORDERS), "rates": list(RATES), "targets": []}

    def engine(_workspace: object, environment: Any, datasets: Any, *others: Any, **_more: object) -> RepeatingEngine:
        earlier, version = others[-2:]
        return RepeatingEngine(environment.storage_root, datasets, data, earlier=earlier, version=version)

    monkeypatch.setattr("clew.api.starting.SparkExecutors", engine)
    for opener in ("session_of", "brief_session_of"):
        monkeypatch.setattr(f"clew.api.starting.{opener}", lambda *_arguments: None)
    return make_shop(tmp_path)


def ran(shop: Shop, **how: Any) -> Run:
    return completed(Workspace(shop.root).run("close", "2026-01", **how))


def restated(shop: Shop) -> tuple[Run, datetime, Run]:
    """A run, a moment after it, and a run of the next version."""
    shop.project("close", *CLOSE)
    first, between = ran(shop), utc_now()
    shop.project("close", *json.loads(json.dumps(CLOSE).replace("amount * r.rate", "amount * r.rate + 1")))
    Workspace(shop.root).projects.activate("close")
    return first, between, ran(shop)


def test_the_version_and_the_inputs_are_those_of_then(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    first, between, second = restated(shop)
    assert [each.record.request.project_version for each in (first, second)] == ["1", "2"]
    then = ran(shop, as_of=between)
    request = then.record.request
    assert (request.as_of, request.project_version) == (AsOf(between, 1), "draft")
    assert request.plan == first.record.request.plan
    assert request.rerun is not None
    assert (request.rerun.of, taken(then)) == (first.id, [10, 20])
    assert answers(then)["state 30"] == answers(first)["state 30"] != answers(second)["state 30"]
    now = ran(shop, as_of=utc_now())
    assert now.record.request.rerun is not None
    assert now.record.request.rerun.of == second.id  # not the run that went back to a time
    assert command(["show", then.id, "-w", str(shop.root)]) == 0
    assert f"close v1 as of {between:%Y-%m-%d %H:%M} UTC" in capsys.readouterr().out
    assert command(["show", then.id, "--json", "-w", str(shop.root)]) == 0
    told = {"at": between.isoformat(), "version": 1}
    assert json.loads(capsys.readouterr().out)["as_of"] == told
    assert then.record.to_json()["as_of"] == told


def test_the_command_goes_back_and_today_is_the_day_of_then(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    first, between, _ = restated(shop)
    at = ["-w", str(shop.root)]
    assert command(["run", "close", "-p", "2026-01", "--as-of", between.isoformat(), *at]) == 0
    [newest, *_] = Workspace(shop.root).runs(project="close")
    assert newest.record.request.as_of == AsOf(between, 1)
    assert newest.record.request.today(datetime(2031, 1, 1, tzinfo=UTC)) == between.date()
    capsys.readouterr()
    for more in (["--dry-run"], ["--with-current-definitions"]):
        assert command(["run", "close", "-p", "2026-01", "--as-of", "2026-01-01", *more, *at]) == 2
        assert "cannot be combined" in capsys.readouterr().err
    again = Workspace(shop.root).submit("close", "2026-01", request_id="once", as_of=between)
    assert Workspace(shop.root).submit("close", "2026-01", request_id="once", as_of=between).id == again.id
    with pytest.raises(UserError) as refused:
        Workspace(shop.root).submit("close", "2026-01", request_id="once", as_of=first.record.created_at)
    assert refused.value.code in {"RequestIdTaken", "NotKnownThen"}


def test_what_was_not_known_is_refused_with_the_reason(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    before = utc_now()
    restated(shop)
    shop.project("idea", *CLOSE, status="draft")
    at = ["-w", str(shop.root)]
    assert command(["run", "close", "-p", "2026-01", "--as-of", before.isoformat(), *at]) == 1
    told = capsys.readouterr().err
    assert "NotKnownThen" in told
    assert "its first version was activated at" in told
    assert command(["run", "idea", "-p", "2026-01", "--as-of", before.isoformat(), *at]) == 1
    assert "a draft has no versions" in capsys.readouterr().err
    for time, problem in (("soon", "is not a time"), ("2999-01-01", "is still to come")):
        assert command(["run", "close", "-p", "2026-01", "--as-of", time, *at]) == 2
        assert problem in capsys.readouterr().err


@pytest.fixture
def registering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Shop, datetime]:
    """A dataset that a project has registered twice, and a moment in between."""
    shop = interpreted_shop(tmp_path, monkeypatch)
    shop.run("close")
    between = utc_now()
    shop.run("close")
    return shop, between


def test_registered_datasets_are_read_in_their_version_of_then(registering: tuple[Shop, datetime]) -> None:
    shop, between = registering
    with shop.starter() as starter:
        workspace = starter.files.loaded.workspace
        executors = SparkExecutors(
            workspace,
            starter.environment,
            starter.state.datasets,
            starter.state.secrets,
            lambda: pytest.fail("Spark is not needed"),
            PostgresqlTables(),
        )
        plan, period = starter.files.plan("report"), period_of(workspace, "2026-01")
        spark: Any = None
        then = Inputs(executors, spark, "then", plan, period, AsOf(between, 1))
        now = Inputs(executors, spark, "now", plan, period)
        versions = [(each.pin(plan.input, 0).part.details or {})["version"] for each in (then, now)]
        assert versions == [1, 2]
        part = now.pin(plan.input, 0).part
        assert then.changed(plan.input, part) == "it was version 1 then"
        early = Inputs(executors, spark, "early", plan, period, AsOf(datetime(2026, 1, 1, tzinfo=UTC), 1))
        with pytest.raises(UserError, match="no version of the dataset") as refused:
            early.pin(plan.input, 0)
        assert refused.value.code == "NotKnownThen"
        files = starter.files.plan("close")
        unread = Inputs(executors, spark, "unread", files, period, AsOf(between, 1))
        with pytest.raises(UserError, match="sources keep no versions") as refused:
            unread.pin(files.input, 0)
        assert refused.value.code == "NotKnownThen"
        assert unread.changed(files.input, part) is None  # what was read before then is taken
