"""The collector of an environment, with everything that gets old there."""

from clew.app.captures.removal import ExpiredCaptures
from clew.app.running.collecting.collector import Collector
from clew.app.running.environment import RunEnvironment
from clew.app.running.state import State
from clew.app.workspace import Workspace


def collector_of(workspace: Workspace, environment: RunEnvironment, state: State) -> Collector:
    """The collector that `clew gc` and `Workspace.gc` use. Things beside runs come in as `others`."""
    return Collector(workspace, environment, state, others=(ExpiredCaptures(environment, state),))
