"""What is known about rows that a run never loaded: the rules that decided what it read, and what other runs read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from clew.app.running.environment import RunEnvironment
from clew.app.running.reading import RunReader, RunView
from clew.app.running.state import State
from clew.app.running.tracing import open_trace
from clew.app.workspace import Workspace
from clew.diagnostics import UserError
from clew.explain.labels import row_label
from clew.explain.why_not import Elsewhere, RuleOutcome
from clew.plan.resolution import rules_considered
from clew.runs.request import RunFilter
from clew.trace.reader import RunTrace

_MOST_RUNS = 200
_MOST_PERIODS = 24


@dataclass(frozen=True, slots=True)
class OtherRuns:
    """Looks at the workspace as it is now, and at the newest run for each other period that read the same dataset."""

    workspace: Workspace
    environment: RunEnvironment
    state: State
    view: RunView

    def rules(self) -> Sequence[RuleOutcome]:
        """The rules of the resolver of the run's input, for the period of the run."""
        plan, definitions = self.view.plan, self.workspace.loaded.workspace
        resolver = definitions.resolver(plan.input.resolver_id) if plan and plan.input.resolver_id else None
        period = definitions.periods.period(self.view.record.request.period)
        if plan is None or resolver is None or period is None:
            return ()
        started = self.view.snapshot.started_at or self.view.record.created_at
        considered = rules_considered(plan.input, resolver, period, definitions.periods, today=started.date())
        try:
            return [RuleOutcome(rule, reason) for rule, reason in considered]
        except UserError:
            return ()

    def elsewhere(self, where: str, limit: int) -> Sequence[Elsewhere]:
        """Rows that other runs have loaded from the same dataset for other periods."""
        return list(islice(self._rows(where, limit), max(0, limit)))

    def _rows(self, where: str, limit: int) -> Iterator[Elsewhere]:
        for trace in self._traces():
            try:
                found = trace.search(where, at=0, limit=max(1, limit))
                for row in found.rows:
                    source = trace.history(row.row_id).entries[0].source
                    label = row_label(row.state, trace.plan.input.natural_key, None)
                    yield Elsewhere(trace.period, label, source, trace.run_id)
            except UserError:
                continue
            finally:
                trace.close()

    def _traces(self) -> Iterator[RunTrace]:
        """The newest run for each other period."""
        reader = RunReader(self.state, self.environment)
        seen = {self.view.record.request.period}
        for run in reader.runs(RunFilter(environment_id=self.environment.name), _MOST_RUNS):
            period = run.request.period
            if period in seen or not run.status.is_terminal or len(seen) > _MOST_PERIODS:
                continue
            try:
                trace = open_trace(reader.view(run.run_id), self.environment)
            except UserError:
                continue
            if self.view.plan is not None and trace.plan.input.dataset_id == self.view.plan.input.dataset_id:
                seen.add(period)
                yield trace
