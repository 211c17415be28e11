"""Which runs are old by the rules of an environment, and which runs and versions are still needed."""

from datetime import UTC, datetime, timedelta

import pytest

from clew.cli.commands.gc import keep_rules
from clew.diagnostics import UserError
from clew.events.snapshot import RunStatus
from clew.events.values import PlanRef
from clew.gc.garbage import Retention
from clew.gc.survey import needs_of
from clew.runs.registry import DatasetFile, DatasetVersion
from clew.runs.request import RunRecord, RunRequest

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)


def ended(run_id: str, days_ago: int, project: str = "p", status: RunStatus = RunStatus.COMPLETED) -> RunRecord:
    request = RunRequest(project_id=project, plan=PlanRef("p", "1"), period="2026-01", request_id=run_id)
    moment = NOW - timedelta(days=days_ago)
    return RunRecord(
        run_id=run_id,
        request=request,
        status=status,
        approval_pending=False,
        last_seq=1,
        created_at=moment,
        completed_at=moment if status.is_terminal else None,
    )


RUNS = [
    ended("p1", 1),
    ended("running", 2, status=RunStatus.RUNNING),
    ended("p10", 10, status=RunStatus.FAILED),
    ended("q20", 20, "q"),
    ended("p30", 30),
    ended("p40", 40, status=RunStatus.CANCELLED),
    ended("paused", 90, status=RunStatus.PAUSED),
]


@pytest.mark.parametrize(
    ("rules", "expired"),
    [
        ([], []),
        (["30d"], ["p40"]),
        (["9d"], ["p10", "q20", "p30", "p40"]),
        (["2"], ["p30", "p40"]),
        (["0"], ["p1", "p10", "q20", "p30", "p40"]),
        (["1", "15d"], ["p30", "p40"]),
        (["3d", "30d"], ["p40"]),
    ],
)
def test_a_run_is_kept_by_any_rule_and_one_that_goes_on_by_itself(rules: list[str], expired: list[str]) -> None:
    typed = keep_rules(rules)
    retention = Retention(days=typed.days, runs=typed.runs)
    assert [run.run_id for run in retention.expired(RUNS, NOW)] == expired


@pytest.mark.parametrize("rule", ["", "d", "-1", "30 days", "1.5", "30h", "9999999"])
def test_a_rule_that_makes_no_sense_is_refused(rule: str) -> None:
    with pytest.raises(UserError, match="30d") as refused:
        keep_rules([rule])
    assert refused.value.code == "WrongUsage"


def version(dataset: str, number: int, *writers: str) -> DatasetVersion:
    files = tuple(DatasetFile(f"datasets/{dataset}/{run}-1/x", 1, 1, "", "2026-01", run, 1) for run in writers)
    return DatasetVersion(dataset, number, "t", (), files, writers[-1], 1, NOW)


def test_the_newest_version_needs_every_run_whose_rows_it_has() -> None:
    needs = needs_of([version("a", 1, "r1"), version("a", 2, "r1", "r2")], set(), {}, [])
    assert set(needs.versions) == {("a", 2)}
    assert set(needs.runs) == {"r1", "r2"}


def test_needs_go_on_through_every_project_that_data_has_passed() -> None:
    """r3 stays and has read b v1, which has rows of r2, which has read a v1, which has rows of r1."""
    versions = [
        version("a", 1, "r1"),
        version("a", 2, "r9"),
        version("b", 1, "r2"),
        version("b", 2, "r8"),
    ]
    needs = needs_of(versions, set(), {"r3": {("b", 1)}, "r2": {("a", 1)}}, ["r3"])
    assert set(needs.versions) == {("a", 1), ("a", 2), ("b", 1), ("b", 2)}
    assert set(needs.runs) == {"r1", "r2", "r8", "r9"}
    without = needs_of(versions, set(), {"r3": {("b", 1)}, "r2": {("a", 1)}}, [])
    assert set(without.versions) == {("a", 2), ("b", 2)}


def test_a_version_that_a_project_asks_for_is_needed() -> None:
    needs = needs_of([version("a", 1, "r1"), version("a", 2, "r2")], {("a", 1), ("gone", 7)}, {}, [])
    assert set(needs.versions) == {("a", 1), ("a", 2)}
    assert set(needs.runs) == {"r1", "r2"}
