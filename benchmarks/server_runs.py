"""Runs that a server shows: one with the trace of a benchmark, one with many steps, one that goes on."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.trace_data import RUN, Bench

from clew.api.state import State, open_state
from clew.api.workspace_files import WorkspaceFiles
from clew.events.bodies import EventBody, RunCompleted, RunStarted, StepCompleted, StepStarted
from clew.events.envelope import NewEvent
from clew.events.values import ArtifactRef, PlannedStep, PlanRef
from clew.plan import Plan
from clew.runs.clock import utc_now
from clew.runs.environment import RunEnvironment
from clew.runs.limits import QueuePolicy
from clew.runs.projector import Projector
from clew.runs.request import RunRequest
from clew.runs.submission import RunQueue
from clew.storage.plans import keep_plan


@dataclass(frozen=True)
class Site:
    """A workspace with its state store, both open."""

    workspace: WorkspaceFiles
    environment: RunEnvironment
    state: State


@contextmanager
def open_site(root: Path) -> Iterator[Site]:
    """Open the default environment of a workspace."""
    files = WorkspaceFiles(root)
    with open_state(files.run_environment) as state:
        yield Site(files, files.run_environment, state)


LONG = "long"
"""The project and the run of many steps."""
_LOAD = PlannedStep("load", 0, "Load", "load")


def begin(site: Site, plan: Plan, run_id: str) -> str:
    """A run that waits for a worker."""
    keep_plan(site.environment.storage_root, plan)
    request = RunRequest(
        project_id=plan.name,
        plan=PlanRef(plan.name, plan.digest[:16], plan.digest),
        period="2026-01",
        request_id=run_id,
        project_version="1",
    )
    RunQueue(site.state.stores.intake, lambda _environment: QueuePolicy(), new_id=lambda: run_id).submit(request)
    return run_id


def finish(site: Site, bench: Bench) -> None:
    """A completed run whose trace is what the benchmark has written."""
    begin(site, bench.trace.plan, RUN)
    references = list[ArtifactRef]()
    for index, document in enumerate(json.loads((bench.root / "parts.json").read_text())):
        (bench.root / f"part-{index}.json").write_text(json.dumps(document))
        references.append(ArtifactRef(f"storage:part-{index}.json", "trace-part"))
    steps = [(step, StepCompleted()) for step in _planned(bench.trace.plan)]
    _complete(site, RUN, [(_LOAD, StepCompleted(tuple(references))), *steps])


def write_long_project(root: Path, steps: int) -> None:
    """A project of so many steps, in the workspace of the trace."""
    lines = [
        f"  - {{seq: {number}, name: Step {number}, type: update, selector: 'MOD(account, {number + 1}) = 1', "
        f"arguments: {{assignments: [{{column: category, expression: 'CONCAT(note, \"{number}\")'}}]}}}}"
        for number in range(1, steps + 1)
    ]
    text = "\n".join([f"id: {LONG}", "status: active", "input_dataset: lines", "operations:", *lines, ""])
    (root / "projects" / f"{LONG}.yaml").write_text(text, encoding="utf-8")


def finish_long(site: Site) -> None:
    """A completed run of the project of many steps, with the events of a real one and without its rows."""
    plan = site.workspace.plan(LONG)
    begin(site, plan, LONG)
    steps = [_LOAD, *_planned(plan)]
    _complete(site, LONG, [(step, StepCompleted((), {"rows_updated": 1000 + step.seq})) for step in steps])


def _planned(plan: Plan) -> list[PlannedStep]:
    return [PlannedStep(str(step.seq), step.seq, step.name, step.type) for step in plan.steps]


def _complete(site: Site, run_id: str, steps: Sequence[tuple[PlannedStep, StepCompleted]]) -> None:
    claim = site.state.stores.leases.acquire(run_id, owner="bench", ttl_s=60)
    assert claim is not None
    bodies: list[tuple[EventBody, str]] = [(RunStarted(tuple(step for step, _ in steps)), "RUN")]
    for step, completed in steps:
        bodies += [(StepStarted(step.seq, step.name), step.step_id), (completed, step.step_id)]
    bodies.append((RunCompleted(), "RUN"))
    events = [NewEvent(body, emitted_at=utc_now(), step_id=step) for body, step in bodies]
    stores = site.state.stores
    stores.writer.append(run_id, events, token=claim.lease.token)
    Projector(stores.reader, stores.writer, stores.snapshots).catch_up(run_id)
