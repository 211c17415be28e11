"""The collector of an environment, with everything that gets old there."""

from datetime import timedelta

from clew.app.captures.removal import ExpiredCaptures
from clew.app.lineage.removal import OldLineage
from clew.app.running.collecting.collectable import Collectable
from clew.app.running.collecting.collector import Collector
from clew.app.running.environment import RunEnvironment
from clew.app.running.state import State
from clew.app.workspace import Workspace
from clew.runs.clock import utc_now


def collector_of(
    workspace: Workspace, environment: RunEnvironment, state: State, keep_lineage_days: int | None = None
) -> Collector:
    """The collector that `clew gc` and `Workspace.gc` use. Things beside runs come in as `others`.

    Lineage that programs have sent is kept for so many days, else for those of the environment, else for ever.
    """
    others: list[Collectable] = [ExpiredCaptures(environment, state)]
    days = environment.settings.retention.keep_lineage_days if keep_lineage_days is None else keep_lineage_days
    if days is not None:
        others.append(OldLineage(state.tracelink.pruner, utc_now() - timedelta(days=days)))
    return Collector(workspace, environment, state, others=others)
