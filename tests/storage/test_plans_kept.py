"""Plans are kept under their digests: once, whole, and also when several first runs of one plan race."""

import json
import multiprocessing
from dataclasses import replace
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from clew.diagnostics import ClewError
from clew.plan import Plan, plan_from_json, plan_to_json
from clew.storage.plans import keep_plan, unchecked_plan
from clew.storage.roots import storage_at
from tests.captures.capture_plans import people_plan

PROCESSES, PLANS = 8, 50


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    return people_plan(tmp_path / "workspace")


def _keep_all(root: Path, document: str, barrier: Barrier, told: "multiprocessing.Queue[list[str]]") -> None:
    plan, problems = plan_from_json(json.loads(document)), list[str]()
    for number in range(PLANS):
        barrier.wait(timeout=60)
        try:
            keep_plan(storage_at(root), replace(plan, digest=f"{number:064}"))
        except (ClewError, OSError) as error:
            problems.append(str(error))
    told.put(problems)


def test_first_runs_of_one_plan_that_race_all_succeed(plan: Plan, tmp_path: Path) -> None:
    root, document = tmp_path / "storage", json.dumps(plan_to_json(plan))
    context = multiprocessing.get_context("spawn")
    barrier, told = context.Barrier(PROCESSES), context.Queue()
    arguments = (root, document, barrier, told)
    started = [context.Process(target=_keep_all, args=arguments) for _ in range(PROCESSES)]
    for process in started:
        process.start()
    problems = [problem for _ in started for problem in told.get(timeout=90)]
    for process in started:
        process.join()
    assert problems == []
    assert [process.exitcode for process in started] == [0] * PROCESSES
    assert sorted(path.name for path in (root / "plans").iterdir()) == [f"{number:064}.json" for number in range(PLANS)]
    assert unchecked_plan(storage_at(root), f"{0:064}").steps == plan.steps
