"""Questions to a run from Python: what happened to its rows, and why. Spark is not needed."""

# ruff: noqa: PLC0415 - what reads traces is imported when somebody asks

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.app.running.environment import RunEnvironment
from clew.app.running.reading import RunReader, RunView

if TYPE_CHECKING:
    from clew.app.running.state import State
    from clew.explain.tree import Explanation
    from clew.explain.why_not import WhyNot
    from clew.trace.reader import RunTrace


def trace_of(view: RunView, environment: RunEnvironment) -> "RunTrace":
    """The trace of a run, to be asked anything."""
    from clew.app.running.tracing import open_trace

    return open_trace(view, environment)


def explained(
    view: RunView, environment: RunEnvironment, row: str, column: str, at: int | None, top: int | None
) -> "Explanation":
    """Why a value is what it is, through every project the data passed."""
    from clew.app.running.explaining import upstream_runs
    from clew.explain.explaining import explain

    with _state(environment) as state:
        upstream = upstream_runs(state, environment)
        return explain(trace_of(view, environment), row, column, at, upstream=upstream, top=top)


def why_not_of(view: RunView, environment: RunEnvironment, where: str, output: int | None) -> "WhyNot":
    """Why rows are not in an output."""
    from clew.app.running.elsewhere import why_not_in
    from clew.app.workspace import open_workspace

    with _state(environment) as state:
        return why_not_in(
            view,
            trace_of(view, environment),
            where,
            output,
            environment=environment,
            reader=RunReader(state, environment),
            workspace=open_workspace(environment.root, environment.name),
        )


@contextmanager
def _state(environment: RunEnvironment) -> "Iterator[State]":
    from clew.app.running.state import open_state

    with open_state(environment) as state:
        yield state
