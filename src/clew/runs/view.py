"""Reads runs: their state, their history and what they wrote, without Spark."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from clew.deferred import dataclass
from clew.diagnostics import Diagnostic, Span, UserError
from clew.diagnostics.codes import CATALOGUE
from clew.diagnostics.codes.runs import AMBIGUOUS_RUN, RUN_NOT_FOUND
from clew.events.artifacts import output_among, version_among
from clew.events.envelope import StoredEvent
from clew.events.snapshot import RunSnapshot, StepSnapshot
from clew.events.values import LOAD_STEP, ArtifactRef
from clew.runs.environment import RunEnvironment
from clew.runs.projector import Projected, look_at
from clew.runs.request import RunFilter, RunRecord
from clew.runs.stores import RunState
from clew.storage.committed import committed_parts
from clew.storage.parts import Part
from clew.storage.plans import PlanReader, kept_plan

if TYPE_CHECKING:
    from clew.plan import Plan

_SHORT_ID = 8
_MOST_LISTED = 5


@dataclass(frozen=True, slots=True)
class RunFacts:
    """A run with its state."""

    record: RunRecord
    snapshot: RunSnapshot
    plan: "Plan | None"
    plan_problem: Diagnostic | None = None
    """Why the stored plan cannot be read, if it cannot. The history of the run does not need it."""

    def outputs(self) -> list[dict[str, object]]:
        """What the output steps have published."""
        found = list[dict[str, object]]()
        for step in self.snapshot.steps:
            place = output_among(step.artifacts)
            if place is not None:
                rows = step.counts.get("rows_written", 0)
                output: dict[str, object] = {"seq": step.seq, place[0]: place[1], "rows": rows}
                found.append(output | _dataset_of(step.artifacts))
        return found

    @property
    def failure(self) -> Diagnostic | None:
        """Why the run failed, at the place of the operation that did."""
        error = self.snapshot.error
        if error is None:
            return None
        code = CATALOGUE.get(error.code)
        hint = error.hint or (code.remedy if code else None)
        return Diagnostic(error.code, error.message, {}, self._failed_place(), hint)

    @property
    def failed_step(self) -> StepSnapshot | None:
        """The step at which the run failed; None if it failed before its first one."""
        return self.snapshot.step(self.snapshot.failed_step) if self.snapshot.failed_step else None

    def _failed_place(self) -> Span | None:
        failed = self.failed_step
        if failed is None or self.plan is None:
            return None
        return next((step.place for step in self.plan.steps if step.seq == failed.seq), None)

    def rows_loaded(self) -> int | None:
        """How many rows the loading step has loaded; None before it is done."""
        load = self.snapshot.step(LOAD_STEP)
        return load.counts.get("loaded") if load else None


class RunFactsReader:
    """Reads the runs of an environment, or those of one tenant in it: the others do not exist for this reader."""

    def __init__(
        self,
        state: RunState,
        environment: RunEnvironment,
        *,
        tenant_id: str | None = None,
        plans: PlanReader = kept_plan,
    ) -> None:
        self._plans = plans
        self._state = state
        self._environment = environment
        self._tenant = tenant_id

    def find(self, name: str) -> RunRecord:
        """A run by its id, or by the beginning of it. UserError RunNotFound, or AmbiguousRun where several fit."""
        exact = self._exactly(name)
        if exact is not None:
            return exact
        mine = RunFilter(environment_id=self._environment.name, tenant_id=self._tenant, id_prefix=name)
        found = self._state.reading.listing.runs(mine, limit=_MOST_LISTED)
        if not found or not name:
            raise UserError(RUN_NOT_FOUND.anywhere(run_id=name))
        if len(found) > 1 and found[0].run_id != name:
            candidates = ", ".join(run.run_id[:_SHORT_ID] for run in found)
            raise UserError(AMBIGUOUS_RUN.anywhere(run_id=name, candidates=candidates))
        return found[0]

    def _exactly(self, name: str) -> RunRecord | None:
        try:
            run = self._state.reading.listing.run(name)
        except UserError:
            return None
        is_mine = run.request.environment_id == self._environment.name
        return run if is_mine and self._tenant in {None, run.request.tenant_id} else None

    def runs(self, which: RunFilter, limit: int, before: RunRecord | None = None) -> tuple[RunRecord, ...]:
        """Runs, newest first; `before` is the last one of the page before."""
        scoped = which if self._tenant is None else replace(which, tenant_id=self._tenant)
        return self._state.reading.listing.runs(scoped, limit=limit, before=before)

    def facts(self, name: str) -> RunFacts:
        """A run with its current state."""
        record = self.find(name)
        snapshot = self.projected(record.run_id).snapshot
        digest = record.request.plan.digest
        try:
            plan = self._plans(self._environment.storage_root, digest) if digest else None
        except UserError as error:
            return RunFacts(record, snapshot, None, error.diagnostic)
        return RunFacts(record, snapshot, plan)

    def projected(self, run_id: str) -> Projected:
        """The state of a run by its events so far, and whether one of them is missing."""
        reading = self._state.reading
        return look_at(run_id, reading.history, reading.snapshots)

    def events(self, name: str, after: int = 0, limit: int | None = None) -> tuple[StoredEvent, ...]:
        """The history of a run."""
        return self._state.reading.history.events(self.find(name).run_id, after=after, limit=limit)

    def parts(self, snapshot: RunSnapshot) -> tuple[Part, ...]:
        """What the steps of a run have written and committed."""
        return committed_parts(self._environment.storage_root, snapshot)


def _dataset_of(artifacts: Sequence[ArtifactRef]) -> dict[str, object]:
    found = version_among(artifacts)
    return {} if found is None else {"dataset": found[0], "dataset_version": found[1]}


def operation_of(step_id: str | None) -> int | None:
    """The seq of the operation that a step id stands for; None for loading."""
    return int(step_id) if step_id is not None and step_id.isdigit() else None


def iso(moment: object) -> str | None:
    """A moment as JSON has it."""
    return moment.isoformat() if hasattr(moment, "isoformat") else None
