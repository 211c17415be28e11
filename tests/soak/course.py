"""A soak: load and accidents for a time, then rest, then everything is looked at."""

import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx
import psutil

from tests.soak.deployment import Deployment, deployed
from tests.soak.gauges import Gauges
from tests.soak.people import ENDED, People

PATIENCE_S = 900.0
"""How long everything may take to come to rest."""


@dataclass(frozen=True)
class Soaked:
    """What came of it."""

    minutes: float
    counts: Mapping[str, int]
    ends: Mapping[str, int]
    """How runs that are still there have ended."""
    events: int
    received: int
    refused: int
    """Requests to the webhook that failed on purpose."""
    seen: Mapping[str, Sequence[float]]
    problems: Sequence[str]


def soak(minutes: float, seed: int) -> Soaked:
    """Start a deployment, use it for some minutes, and look whether everything is right afterwards."""
    before = set(psutil.pids())
    with deployed(random.Random(seed)) as deployment:
        people, gauges = People(deployment, seed), Gauges(deployment)
        people.begin()
        gauges.begin()
        threading.Event().wait(60 * minutes)
        people.end()
        problems = [*people.problems, *_come_to_rest(deployment)]
        gauges.end()
        with deployment.client() as client:
            details = [_run(client, each["run_id"]) for each in _all_runs(client)]
        problems += _stopped(deployment)
        problems += _looked_at(deployment, details, people)
        events = [str(row[0]) for row in deployment.rows("SELECT event_id FROM run_events")]
        received = Counter(deployment.hook.received)
        lost = [event for event in events if not received[event]]
        if lost:
            problems.append(f"{len(lost)} of {len(events)} events never reached the webhook")
        ends = Counter(str(each["status"]) for each in details)
        counts, struck = dict(people.counts), deployment.moody.struck
    problems += [f"{each} is left" for each in _left(before)]
    return Soaked(minutes, counts, ends, len(events), received.total(), struck, gauges.seen, problems)


def _all_runs(client: httpx.Client) -> Sequence[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = client.get("/api/v1/runs", params={"limit": 100}).raise_for_status().json()["runs"]
    return found


def _run(client: httpx.Client, run_id: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = client.get(f"/api/v1/runs/{run_id}").raise_for_status().json()
    return found


def _come_to_rest(deployment: Deployment) -> Iterator[str]:
    """Runs that wait for a person go on; then nothing may be under way any more."""
    started = time.monotonic()
    with deployment.client() as client:
        while time.monotonic() - started < PATIENCE_S:
            runs = _all_runs(client)
            for run in runs:
                if run["status"] == "PAUSED":
                    client.post(f"/api/v1/runs/{run['run_id']}/signals", json={"signal": "RESUME"})
            if not (waiting := list(_under_way(deployment, runs))):
                return
            threading.Event().wait(1)
    yield from (f"after {PATIENCE_S:.0f} s, {each}" for each in waiting)


def _under_way(deployment: Deployment, runs: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from (f"run {run['run_id']} is {run['status']}" for run in runs if run["status"] not in ENDED)
    [[events]] = deployment.rows("SELECT count(*) FROM outbox WHERE dead_since IS NULL")
    if events:
        yield f"{events} events wait in the outbox"
    [[captures]] = deployment.rows("SELECT count(*) FROM captures WHERE status IN ('queued', 'running')")
    if captures:
        yield f"{captures} captures are not done"


def _stopped(deployment: Deployment) -> Iterator[str]:
    for name, program in deployment.programs.items():
        code = program.stopped()
        if code != 0:
            yield f"{name} ended with {code}: {program.log.read_text()[-2000:]}"
        if "Traceback" in program.log.read_text():
            yield f"{name} showed a stack trace: {program.log.read_text()[-3000:]}"


def _looked_at(deployment: Deployment, runs: Sequence[Mapping[str, Any]], people: People) -> Iterator[str]:
    """Everything verifies, nothing is dead, and runs of the same rows have come to the same."""
    code, told = deployment.told("verify", "--all")
    if code or told.get("findings"):
        yield f"clew verify: {told}"
    [[dead]] = deployment.rows("SELECT count(*) FROM outbox WHERE dead_since IS NOT NULL")
    if dead:
        yield f"{dead} events are dead letters"
    results = defaultdict[tuple[str, str], set[str]](set)
    for run in runs:
        if run["status"] == "COMPLETED":
            counted = [(step["seq"], *(step[f"rows_{each}"] for each in _DONE_TO_ROWS)) for step in run["steps"]]
            results[run["project"], run["period"]].add(str(counted))
        if run["status"] == "FAILED" and not _may_fail(run):
            yield f"run {run['run_id']} of {run['project']} {run['period']} failed: {run['error']}"
        if run["status"] == "CANCELLED" and "CANCEL" not in people.done_to.get(run["run_id"], ()):
            yield f"run {run['run_id']} was cancelled by nobody"
    yield from (f"{which}: {len(found)} results: {found}" for which, found in results.items() if len(found) > 1)


_DONE_TO_ROWS = ("updated", "created", "deleted")


def _may_fail(run: Mapping[str, Any]) -> bool:
    """A report fails where its month was not closed yet."""
    return bool(run["project"] == "group-report" and run["error"] and run["error"].get("code") == "SourceUnavailable")


def _left(before: set[int]) -> Iterator[str]:
    """Processes that somebody has started and nobody has ended."""
    for process in psutil.Process().children(recursive=True):
        if process.pid not in before:
            yield f"process {process.pid} {process.name()}"
