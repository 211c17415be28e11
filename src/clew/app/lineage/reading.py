"""Everything that an environment knows about lineage, as one reader."""

from collections.abc import Callable

from clew.app.running.environment import RunEnvironment
from clew.app.running.lineage import run_lineage
from clew.app.running.state import State
from clew.trace.reader import RunTrace
from clew.tracelink import LineageReader, UnitedLineage


def lineage_reader(
    state: State, environment: RunEnvironment, trace_of: Callable[[str], RunTrace] | None = None
) -> LineageReader:
    """The rows of runs from their files, and what was collected from the state store.

    `trace_of` opens the trace of a run; UserError where it is gone, or not for the eyes of who asks.
    """
    return UnitedLineage([run_lineage(state, environment, trace_of), state.tracelink.reader])
