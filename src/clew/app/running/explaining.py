"""Explanations across projects: from a row of a registered dataset to the run that registered it."""

from dataclasses import dataclass

from clew.app.running.environment import RunEnvironment
from clew.app.running.reading import RunReader
from clew.app.running.state import State
from clew.app.running.tracing import open_trace
from clew.diagnostics import UserError
from clew.explain.upstream import UpstreamByOrigin
from clew.trace.reader import RunTrace


@dataclass(frozen=True, slots=True)
class DatasetWriters:
    """Finds the run behind a file of a registered dataset. Traces are opened once."""

    state: State
    environment: RunEnvironment
    opened: dict[str, RunTrace]

    def writer_of(self, path: str) -> tuple[RunTrace, int] | None:
        """The trace of the run that wrote a file, and the output step; None where that run is gone."""
        _, _, below = path.partition("datasets/")
        dataset = below.partition("/")[0]
        for version in self.state.datasets.versions(dataset):
            for file in version.files:
                if file.path == path:
                    trace = self._trace(file.run_id)
                    return None if trace is None else (trace, file.seq)
        return None

    def _trace(self, run_id: str) -> RunTrace | None:
        if run_id not in self.opened:
            try:
                view = RunReader(self.state, self.environment).view(run_id)
                self.opened[run_id] = open_trace(view, self.environment)
            except UserError:
                return None
        return self.opened[run_id]


def upstream_runs(state: State, environment: RunEnvironment) -> UpstreamByOrigin:
    """The way to the runs that registered what a run reads."""
    return UpstreamByOrigin(DatasetWriters(state, environment, {}).writer_of)
