"""Window expansion: computes the links that windows of runs represent, and writes them next to the traces."""

from collections.abc import Iterator

from clew.api.opened_environment import OpenedEnvironment
from clew.deferred import dataclass
from clew.diagnostics import UserError
from clew.engine.opening import SparkExecutors
from clew.engine.session import session_of
from clew.runs.request import RunFilter
from clew.store.table_transfer import PostgresqlTables

_MOST_RUNS = 10_000


@dataclass(frozen=True, slots=True)
class Expanded:
    """A step of a run whose links now exist."""

    run_id: str
    operation_seq: int
    links: int
    """How many links were added; 0 if they already existed."""


def expand_windows(at: OpenedEnvironment, run: str | None = None) -> Iterator[Expanded]:
    """Expand the windows of a run, or of all runs that have ended. Starts Spark. Repeating it adds nothing.

    Raises UserError RunNotFound if there is no such run. With all runs, skips those whose files are gone.
    """
    environment, reader = at.environment, at.runs
    executors = SparkExecutors(
        at.files.loaded.workspace,
        environment,
        at.state.datasets,
        at.state.secrets,
        lambda: session_of(environment, secrets=at.state.secrets),
        PostgresqlTables(),
    )
    which = RunFilter(environment_id=environment.name)
    records = [reader.find(run)] if run is not None else reader.runs(which, _MOST_RUNS)
    for record in records:
        snapshot = reader.facts(record.run_id).snapshot
        if not snapshot.status.is_terminal:
            continue
        try:
            done = executors.open(record, snapshot).expand_windows(snapshot)
        except UserError:
            if run is not None:
                raise
            continue
        yield from (Expanded(record.run_id, step.seq, step.links) for step in done)
