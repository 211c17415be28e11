"""Everything that an environment knows about lineage, as one reader."""

from clew.app.running.environment import RunEnvironment
from clew.app.running.lineage import run_lineage
from clew.app.running.state import State
from clew.tracelink import LineageReader, UnitedLineage


def lineage_reader(state: State, environment: RunEnvironment) -> LineageReader:
    """The rows of runs from their files, and what was collected from the state store."""
    return UnitedLineage([run_lineage(state, environment), state.tracelink.reader])
