"""The event of OpenLineage that ends a run tells what its checks have found."""

import json
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from clew.bus.buses import checks_until
from clew.bus.openlineage import FileTarget, OpenLineageBus
from clew.events import RunCompleted, RunFailed, StepCompleted, StepFailed, StoredEvent
from clew.events.bodies import EventBody
from clew.events.snapshot import RunStatus
from clew.events.values import CheckResult
from clew.plan import Plan
from clew.runs.request import RunRecord
from clew.runs.stores import OutboxEntry
from tests.cli.test_cli_openlineage import accepted_by_the_client
from tests.plan.plan_workspaces import BASE, TinyWorkspace, project_text
from tests.runs.runs_histories import FAILURE, START, History, request

ORDERS = (
    BASE["datasets/orders.yaml"]
    + """
        checks:
          - {name: known, in_set: {column: region, values: [EMEA]}, severity: quarantine}
          - {name: given, not_null: [region, status], description: Orders have both.}
"""
)
CHECKS = """
checks:
  - {name: some, total: COUNT_ALL() > 0, at: load}
  - {name: priced, expression: amount > 0, severity: warn}
"""
DELETE = "- {seq: 10, name: closed, type: delete, selector: amount = 0}"


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    workspace = TinyWorkspace(tmp_path)
    project = project_text(DELETE, more=CHECKS)
    workspace.write({**BASE, "datasets/orders.yaml": ORDERS, "projects/p.yaml": project})
    return workspace.check().plan


class Kept:
    """The events of one run, as a state store gives them."""

    def __init__(self, events: Sequence[StoredEvent]) -> None:
        self._events = tuple(events)

    def events(self, run_id: str, *, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
        assert run_id == "run-1"
        return tuple(event for event in self._events if event.run_seq > after)[:limit]

    def now(self) -> datetime:
        return START


def told(plan: Plan, events: Sequence[StoredEvent], tmp_path: Path) -> dict[str, Any]:
    """The last event of a run, as a receiver gets it."""
    bus = OpenLineageBus(
        "catalog",
        FileTarget(tmp_path / "lineage.jsonl"),
        namespace="shop",
        plan_of=lambda _run: plan,
        checks_until=lambda event: checks_until(Kept(events), event),
    )
    run = RunRecord(
        run_id="run-1",
        request=request(),
        status=RunStatus.COMPLETED,
        approval_pending=False,
        last_seq=len(events),
        created_at=START,
    )
    for event in events:
        bus.deliver(OutboxEntry(event.run_seq, "catalog", 0, run, event))
    lines = (tmp_path / "lineage.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    assert not any("test" in each["run"]["facets"] for each in documents[:-1])
    accepted_by_the_client(documents[-1])
    document: dict[str, Any] = documents[-1]
    return document


def a_run(last: EventBody, *, failed: tuple[CheckResult, ...] = ()) -> History:
    loaded = (
        CheckResult("orders: given", "not_null", "fail", 0, passed=True, failed_rows=0, checked_rows=9),
        CheckResult("some", "total", "fail", 0, passed=True, message="9 > 0"),
    )
    quarantined = CheckResult("orders: known", "in_set", "quarantine", 1, False, 2, 9, "2 rows: APAC and a value")
    history = History().started(())
    history.add(StepCompleted(checks=loaded), step_id="load", engine_attempt_id=1)
    history.add(StepCompleted(checks=(quarantined,)), step_id="1", engine_attempt_id=1)
    if failed:
        history.add(StepFailed(FAILURE, failed), step_id="10", engine_attempt_id=1)
    return history.add(last)


def test_the_last_event_has_the_checks_of_what_was_loaded_and_all_tests(plan: Plan, tmp_path: Path) -> None:
    document = told(plan, a_run(RunCompleted()).stored(), tmp_path)
    assert document["eventType"] == "COMPLETE"
    [orders] = document["inputs"]
    assertions = orders["inputFacets"]["dataQualityAssertions"]["assertions"]
    found = [(each["name"], each["assertion"], each.get("column"), each["success"]) for each in assertions]
    assert found == [
        ("orders: known", "in_set", "region", False),
        ("orders: given", "not_null", None, True),
        ("some", "total", None, True),
    ]
    known, given, some = assertions
    assert (known["severity"], known["expected"], known["actual"]) == ("warn", "0", "2")
    assert (given["severity"], given["description"]) == ("error", "Orders have both.")
    assert (some["content"], some["contentType"]) == ("COUNT_ALL() > 0", "expression")
    tests = {each["name"]: (each["status"], each["severity"]) for each in document["run"]["facets"]["test"]["tests"]}
    assert tests == {
        "orders: known": ("fail", "warn"),
        "orders: given": ("pass", "error"),
        "some": ("pass", "error"),
        "priced": ("skip", "warn"),
    }
    assert "APAC" not in json.dumps(document), "messages stay where roles decide who sees them"


def test_a_check_that_ended_the_run_is_among_those_of_its_failure(plan: Plan, tmp_path: Path) -> None:
    failed = CheckResult("priced", "expression", "warn", 10, passed=False, failed_rows=3, checked_rows=7)
    document = told(plan, a_run(RunFailed(FAILURE), failed=(failed,)).stored(), tmp_path)
    assert document["eventType"] == "FAIL"
    [priced] = [each for each in document["run"]["facets"]["test"]["tests"] if each["name"] == "priced"]
    assert (priced["status"], priced["actual"], priced["content"]) == ("fail", "3", "amount > 0")


def test_a_run_without_checks_has_no_such_facets(tmp_path: Path) -> None:
    workspace = TinyWorkspace(tmp_path)
    workspace.write({**BASE, "projects/p.yaml": project_text(DELETE)})
    document = told(workspace.check().plan, History().started(()).add(RunCompleted()).stored(), tmp_path)
    assert "test" not in document["run"]["facets"]
    assert not any(each.get("inputFacets") for each in document["inputs"])
