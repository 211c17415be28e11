"""The engine without Spark, for runs that repeat others: it takes over what it may, and computes the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clew.engine.taking_over import TakingOver
from clew.events.snapshot import RunSnapshot
from clew.events.values import PlannedStep, Reuse
from clew.runs.executor import StepAttempt, StepContext, StepOutput
from clew.runs.request import RunRecord
from clew.runs.reuse import EarlierRun
from clew.storage.committed import publish_part
from clew.storage.drafts import draft
from clew.storage.layout import part_folder
from clew.storage.parts import Part
from clew.storage.plans import kept_plan
from tests.trace.interpreting_engine import FIRST_DAY, InterpretingEngine, InterpretingExecutor

VERSION = "interpreter"


@dataclass
class RepeatingEngine(InterpretingEngine):
    """Opens executors that take over what they may."""

    earlier: Callable[[str], EarlierRun] = field(kw_only=True)
    version: str = field(kw_only=True)

    def open(self, run: RunRecord, snapshot: RunSnapshot) -> InterpretingExecutor:
        plan = kept_plan(self.storage_root, run.request.plan.digest or "")
        reference = {"version": VERSION}
        rerun = run.request.rerun
        if rerun is None:
            return InterpretingExecutor(self, run, plan, reference)
        taking = TakingOver(
            self.earlier(rerun.of),
            plan,
            run.run_id,
            self.storage_root,
            looks_again=rerun.changed_inputs,
            version=self.version,
            spark=VERSION,
        )
        return RepeatingExecutor(self, run, plan, reference, taking=taking)


@dataclass
class RepeatingExecutor(InterpretingExecutor):
    """Computes everything, for the rows and the counts, and keeps only what it may not take over."""

    taking: TakingOver = field(kw_only=True)
    parts: list[Part] = field(default_factory=list)

    def group_size(self, remaining: Sequence[PlannedStep]) -> int:
        taken = self.taking.taken(remaining[0].seq) if remaining[0].seq else None
        return len(taken.seqs) if taken is not None else 1

    def execute(self, attempts: Sequence[StepAttempt], context: StepContext) -> list[StepOutput]:
        first = attempts[0].step
        if first.step_id == "load":
            return [self._load()]
        taken = self.taking.taken(first.seq)
        if taken is None:
            return [self._computed(attempts[0], context)]
        assert taken.seqs == tuple(each.step.seq for each in attempts)
        described = self.taking.take(taken, 0)
        self.parts.append(described.part)
        outputs = [StepOutput.success(**self.taking.counts(each.step.seq)) for each in attempts]
        outputs[-1] = replace(outputs[-1], artifacts=(described.artifact,))
        return [replace(each, reuse=Reuse(self.taking.earlier.run_id)) for each in outputs]

    def _computed(self, attempt: StepAttempt, context: StepContext) -> StepOutput:
        """A part of its own for each narrow step: those beside it may have been taken over."""
        assert self.writer is not None
        seq, kept = attempt.step.seq, list[Part]()
        for part in self.writer.parts:
            mine = tuple(each for each in part.steps if each.seq == seq)
            if mine:
                kept.append(replace(part, name=f"{seq}-{seq}", seq=seq, steps=mine, columns=()))
            elif part.kind == "created" and part.seq == seq:
                kept.append(part)
        self.parts += kept
        self.writer.parts = [part for part in self.writer.parts if part.seq != seq or part not in kept]
        [done] = super().execute([attempt], context) if attempt.step.type == "output" else [StepOutput.success()]
        artifacts = (*done.artifacts, *(self._described(part) for part in kept))
        return replace(done, artifacts=artifacts, reuse=Reuse(reason=self.taking.reason(seq)))

    def _load(self) -> StepOutput:
        self.writer = self._interpreted()
        artifacts, reasons = list[Any](), list[str]()
        for part in [each for each in self.writer.parts if each.kind == "input"]:
            use = next(each for each in self.plan.datasets_read if each.key == part.name)
            reason = self.taking.differs(use)
            looks_again = self.taking.looks_again and self.run.request.as_of is None
            if reason is None and looks_again and not self.taking.is_same(use, [part]):
                reason = "its rows were changed"
            if reason is None:
                [described] = self.taking.take_input(use)
            else:
                reasons.append(f"{use.name}: {reason}")
                folder = part_folder(self.run.run_id, part.kind, part.name)
                described = publish_part(draft(self.engine.storage_root, folder), part)
            self.parts.append(described.part)
            artifacts.append(described.artifact)
        self.taking.decide(self.parts, (), FIRST_DAY)
        done = StepOutput.success(*artifacts, loaded=len(self.writer.recorded.states[0]))
        return replace(done, reuse=Reuse(self.taking.earlier.run_id, "; ".join(reasons) or None))
