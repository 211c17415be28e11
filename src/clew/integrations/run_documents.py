"""What an orchestrator makes of the JSON of a run: whether it has ended, why it failed, which facts it passes on."""

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from clew.diagnostics import ClewError
from clew.events.snapshot import RunStatus

RunData = Mapping[str, Any]
"""A run as `clew run --json` and the HTTP API give it."""

_PASSED_ON = ("run_id", "status", "project", "project_version", "period", "environment", "rows_loaded", "outputs")


def request_ids(base: str) -> Iterator[str]:
    """Ids for the requests of one task, in the order in which they are tried: the next one if a run has failed.

    A task that an orchestrator repeats after it has lost sight of it finds the run that is under way or has completed,
    instead of starting it twice.
    """
    yield base
    for number in count(2):
        yield f"{base}/{number}"


def status_of(run: RunData) -> RunStatus:
    """The status of a run."""
    return RunStatus(run["status"])


def has_failed(run: RunData) -> bool:
    """Whether a run has ended without a result."""
    return status_of(run) in {RunStatus.FAILED, RunStatus.CANCELLED}


def failure_text(run: RunData) -> str:
    """Why a run has no result, in one line and in Clew's words."""
    named = f"run {run['run_id']} of {run['project']} for {run['period']} is {run['status']}"
    error = run.get("error")
    return f"{named}: {_problem_text(error)}" if error else named


def error_text(error: ClewError) -> str:
    """What is wrong, in one line with place and remedy."""
    return "; ".join(_problem_text(diagnostic.to_json()) for diagnostic in error.diagnostics)


def _problem_text(problem: Mapping[str, Any]) -> str:
    place = ":".join(str(problem[key]) for key in ("file", "line", "column") if problem.get(key) is not None)
    told = f"{problem['code']}: {problem['message']}" + (f" ({place})" if place else "")
    return f"{told}; hint: {problem['hint']}" if problem.get("hint") else told


def passed_on(run: RunData) -> dict[str, Any]:
    """What later tasks need of a run. It is small and holds no values of rows."""
    return {name: run[name] for name in _PASSED_ON if name in run}
