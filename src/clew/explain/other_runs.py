"""Explanations across projects: from a row of a registered dataset to the run that registered it."""

from collections.abc import Callable
from dataclasses import dataclass

from clew.diagnostics import UserError
from clew.explain.pinned import UpstreamByOrigin
from clew.runs.stores import RunState
from clew.trace.reader import RunTrace


@dataclass(frozen=True, slots=True)
class DatasetWriters:
    """Finds the run behind a file of a registered dataset."""

    state: RunState
    trace_of: Callable[[str], RunTrace]
    """Opens the trace of a run by its id. UserError where it is gone, or not for the eyes of who asks."""

    def writer_of(self, path: str) -> tuple[RunTrace, int] | None:
        """The trace of the run that wrote a file, and the output step; None where that run is gone."""
        _, _, below = path.partition("datasets/")
        dataset = below.partition("/")[0]
        for version in self.state.datasets.versions(dataset):
            for file in version.files:
                if file.path == path:
                    try:
                        return self.trace_of(file.run_id), file.seq
                    except UserError:
                        return None
        return None


def upstream_runs(state: RunState, trace_of: Callable[[str], RunTrace]) -> UpstreamByOrigin:
    """The way to the runs that registered what a run reads. `trace_of` opens the trace of a run by its id."""
    return UpstreamByOrigin(DatasetWriters(state, trace_of).writer_of)
