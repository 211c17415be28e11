"""What is known about rows that a run never loaded: the rules that decided what it read, what other runs have read, and
what is in files that none has read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from itertools import islice

from clew.deferred import dataclass
from clew.definitions import WorkspaceDefinitions
from clew.diagnostics import UserError
from clew.explain.run_lineage import DatasetWriters
from clew.explain.unread_files import UnreadFiles
from clew.explain.why_not import Elsewhere, RuleOutcome, WhyNot, why_not
from clew.plan.frozen_resolvers import resolver_of_run
from clew.plan.plan import Plan
from clew.plan.resolution import rules_considered
from clew.runs.environment import RunEnvironment
from clew.runs.request import RunFilter
from clew.runs.view import RunFacts, RunFactsReader
from clew.storage.committed import input_part
from clew.trace.reader import RunTrace
from clew.trace.run_parts import periods_of
from clew.trace.run_trace import open_trace

_MOST_RUNS = 200
_MOST_PERIODS = 24
_MOST_WRITERS = 24
"""How many runs that registered rows of one input are asked."""

AskUpstream = Callable[[str, int], WhyNot | None]
"""Asks the run that wrote a file of a registered dataset, by its id and the step that registered it. None where it is
gone, may not be asked, or does not have what the question names."""


def nobody(_run_id: str, _seq: int) -> None:
    """Asks no other run."""


def why_not_in(
    view: RunFacts,
    trace: RunTrace,
    where: str,
    output: int | None,
    *,
    environment: RunEnvironment,
    reader: RunFactsReader,
    workspace: WorkspaceDefinitions | None,
    writers: DatasetWriters | None = None,
    ask: AskUpstream = nobody,
) -> WhyNot:
    """Why rows are not in an output of a run, including what is known outside the run.

    The reader decides which other runs are looked at. Without the workspace neither rules nor files are shown: not
    everyone who may ask about a run may see it.
    """
    others = OtherRuns(workspace, environment, reader, view, writers, ask)
    return why_not(trace, where, output, others=others)


def _tells(answer: WhyNot) -> bool:
    """Whether a run has had such rows, or knows where they are."""
    lost = answer.never_loaded
    return bool(answer.rows or (lost is not None and (lost.upstream or lost.elsewhere)))


@dataclass(slots=True)
class OtherRuns:
    """Looks at the workspace as it is now, and at the newest run for each other period that read the same dataset."""

    workspace: WorkspaceDefinitions | None
    environment: RunEnvironment
    reader: RunFactsReader
    view: RunFacts
    writers: DatasetWriters | None = None
    ask: AskUpstream = nobody
    _files: UnreadFiles | None = field(init=False)

    def __post_init__(self) -> None:
        self._files = self._unread_files()

    def rules(self) -> Sequence[RuleOutcome]:
        """The rules of the resolver of the run's input, for the period of the run."""
        files = self._files
        if files is None:
            return ()
        periods = files.definitions.periods
        considered = rules_considered(files.use, files.resolver, files.period, periods, today=files.today)
        try:
            return [RuleOutcome(rule, reason) for rule, reason in considered]
        except UserError:
            return ()

    def elsewhere(self, where: str, limit: int) -> Sequence[Elsewhere]:
        """Rows that other runs have loaded from the same dataset for other periods, and rows in files."""
        found = list(islice(self._rows(where, limit), max(0, limit)))
        if self._files is not None and len(found) < limit:
            known = {(each.source.file, each.source.line) for each in found if each.source}
            unread = (
                each
                for each in self._files.rows(where)
                if each.source is None or (each.source.file, each.source.line) not in known
            )
            found += islice(unread, limit - len(found))
        return found

    def not_looked_into(self) -> int:
        """Files that might hold such a row and were not looked into."""
        return 0 if self._files is None else self._files.not_looked_into

    def upstream(self, trace: RunTrace) -> Sequence[WhyNot]:
        """The answers of those that have had such rows; where none has, that of one of them."""
        found = [answer for run_id, seq in self._authors(trace) if (answer := self.ask(run_id, seq)) is not None]
        return list(filter(_tells, found)) or found[:1]

    def _authors(self, trace: RunTrace) -> Sequence[tuple[str, int]]:
        """The runs that wrote the files of the run's input, each with the step that registered them."""
        periods = periods_of(trace.run.loaded, trace.plan.input)
        authors = dict[tuple[str, int], None]()
        for file in trace.run.loaded.files:
            if file.view is not None and file.view.run_id is not None and file.view.seq is not None:
                authors[file.view.run_id, file.view.seq] = None
            elif file.view is None and self.writers is not None:
                written = self.writers.file_of(file.path)
                if written is not None and (periods is None or written.period in periods):
                    authors[written.run_id, written.seq] = None
        return [each for each in list(authors)[:_MOST_WRITERS] if each[0] != trace.run_id]

    def _unread_files(self) -> UnreadFiles | None:
        if self.workspace is None:
            return None
        plan, definitions = self.view.plan, self.workspace
        found = resolver_of_run(plan, definitions, self._resolver_id(plan) or "") if plan is not None else None
        resolver = found.resolver if found is not None else None
        period = definitions.periods.period(self.view.record.request.period)
        if plan is None or resolver is None or period is None:
            return None
        started = self.view.snapshot.started_at or self.view.record.created_at
        return UnreadFiles(
            definitions,
            self.workspace.root,
            self.environment.storage_of,
            plan.input,
            resolver,
            period,
            self.view.record.request.today(started),
        )

    def _resolver_id(self, plan: Plan) -> str | None:
        """The resolver that the run used; for runs that did not record it, the one that the plan names."""
        part = input_part(self.environment.storage_root, self.view.snapshot.artifacts, plan.input.key)
        details = (part.details if part is not None else None) or {}
        if details.get("format") == "managed":
            return None
        recorded = details.get("resolver")
        return plan.input.resolver_id if recorded is None else str(recorded)

    def _rows(self, where: str, limit: int) -> Iterator[Elsewhere]:
        for trace in self._traces():
            try:
                found = trace.search(where, at=0, limit=max(1, limit))
                for row in found.rows:
                    source = trace.history(row.row_id).entries[0].source
                    label = trace.name(row.row_id, row.state)
                    yield Elsewhere(trace.period, label, source, trace.run_id)
            except UserError:
                continue
            finally:
                trace.close()

    def _traces(self) -> Iterator[RunTrace]:
        """The newest run for each other period."""
        seen = {self.view.record.request.period}
        for run in self.reader.runs(RunFilter(environment_id=self.environment.name), _MOST_RUNS):
            period = run.request.period
            if period in seen or not run.status.is_terminal or len(seen) > _MOST_PERIODS:
                continue
            try:
                trace = open_trace(self.reader.facts(run.run_id), self.environment)
            except UserError:
                continue
            if self.view.plan is not None and trace.plan.input.dataset_id == self.view.plan.input.dataset_id:
                seen.add(period)
                yield trace
