"""The parts of one run in their roles: which hold its rows, and which say what a step changed.

Also the keys of groups: where summary rows have them, and how their source rows give them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Literal

from clew.deferred import dataclass
from clew.diagnostics import EngineBug, UserError
from clew.diagnostics.codes.trace import INCOMPLETE_TRACE, STEP_OUT_OF_RANGE, TRACE_INTEGRITY_ERROR
from clew.lang.typed import Convert, Expression
from clew.lang.types import BOOLEAN, STRING, Type
from clew.plan.datasets import DatasetUse
from clew.plan.operations import CreatingStep, Step
from clew.plan.plan import Plan
from clew.storage.checked_files import TraceFiles
from clew.storage.parts import Part, PartFile, TracedStep, group_key_column
from clew.storage.row_identity import place_of

STATE_COLUMNS: tuple[tuple[str, Type], ...] = (("_period", STRING), ("_labels", STRING), ("_deleted", BOOLEAN))
"""The system columns that the state of a row has after its data columns."""

NotDone = Literal["skipped", "not reached"]


@dataclass(frozen=True)
class RunParts:
    """What a run has committed, for a plan."""

    plan: Plan
    parts: tuple[Part, ...]
    not_done: Mapping[int, NotDone] = field(default_factory=dict)
    """The steps that the run has skipped or has not come to, where it has not done all."""

    def __post_init__(self) -> None:
        self._refuse_contradictions()

    @cached_property
    def loaded(self) -> Part:
        """The rows that the working dataset began with."""
        return self.pinned(self.plan.input)

    @cached_property
    def created(self) -> tuple[Part, ...]:
        """The rows that steps created, in the order of the steps."""
        return tuple(sorted((part for part in self.parts if part.kind == "created"), key=lambda part: part.seq))

    @cached_property
    def changes(self) -> tuple[Part, ...]:
        """What steps changed, in the order of the steps."""
        return tuple(sorted((part for part in self.parts if part.kind == "changes"), key=lambda part: part.seq))

    def pinned(self, use: DatasetUse) -> Part:
        """The rows of a dataset as the run saw them."""
        found = [part for part in self.parts if part.kind == "input" and part.name in {use.key, use.dataset_id}]
        for part in sorted(found, key=lambda part: part.name != use.key):
            if part.name == use.key or (part.details or {}).get("version") == use.pinned_version:
                return part
        if self.not_done and not self.reached:
            problem = f"the run ended before it had loaded {use.name}"
            raise UserError(INCOMPLETE_TRACE.anywhere(problem=problem, hint="`clew show` says why it ended"))
        raise UserError(INCOMPLETE_TRACE.anywhere(problem=f"the run has pinned no dataset {use.key}"))

    def place(self, ordinal: int) -> tuple[Part, PartFile, int] | None:
        """The part, the file and the position where the row with an ordinal was loaded or created."""
        number, position = place_of(ordinal)
        for part in (self.loaded, *self.created):
            for file in part.files:
                if file.ordinal == number:
                    return (part, file, position) if position < file.rows else None
        return None

    def traced(self, after: int, until: int) -> Iterator[tuple[Part, TracedStep]]:
        """The narrow steps after one step up to another, in order, with the part that has their changes."""
        for part in self.changes:
            for step in sorted(part.steps, key=lambda step: step.seq):
                if after < step.seq <= until:
                    yield part, step

    def step(self, seq: int) -> Step:
        """The step of the plan with a seq."""
        for step in self.plan.steps:
            if step.seq == seq:
                return step
        steps = ", ".join(str(step.seq) for step in self.plan.steps)
        problem = f"the run has no step {seq}; its steps are"
        raise UserError(STEP_OUT_OF_RANGE.anywhere(problem=problem, steps=steps or "none"))

    def reached_step(self, seq: int) -> Step:
        """A step of the plan that the run has come to. UserError StepOutOfRange where there is none."""
        step = self.step(seq)
        if self.not_done.get(seq) == "not reached":
            steps = ", ".join(str(step.seq) for step in self.reached) or "none"
            problem = f"step {seq} was not reached; the run reached the steps"
            hint = f"the run ended before step {seq} was done"
            raise UserError(STEP_OUT_OF_RANGE.anywhere(problem=problem, steps=steps, hint=hint))
        return step

    def checked_step(self, at: int | None) -> int:
        """A step that rows have a state after: one of the plan, 0 for loading, None for the last."""
        if at is None or at == 0:
            return self.last if at is None else 0
        return self.reached_step(at).seq

    @cached_property
    def reached(self) -> tuple[Step, ...]:
        """The steps of the plan that the run has come to, and done or skipped."""
        return tuple(step for step in self.plan.steps if self.not_done.get(step.seq) != "not reached")

    @cached_property
    def last(self) -> int:
        """The last step that the run has come to."""
        return max((step.seq for step in self.reached), default=0)

    def before(self, seq: int) -> int:
        """The step before a step, 0 for loading."""
        return max((step.seq for step in self.plan.steps if step.seq < seq), default=0)

    def columns(self, seq: int) -> tuple[tuple[str, Type], ...]:
        """The columns of a row's state after a step, system columns last."""
        data = tuple((column.name, column.type) for column in self.plan.columns_after(seq))
        return (*data, *STATE_COLUMNS)

    def _refuse_contradictions(self) -> None:
        origins = [part for part in self.parts if part.kind == "created"]
        origins += [part for part in self.parts if part.kind == "input" and part.name == self.plan.input.key]
        numbers = [file.ordinal for part in origins for file in part.files]
        _refuse_repeated("two files have created the same rows, of file ordinal", numbers)
        _refuse_repeated("more than one part has created rows in step", [part.seq for part in origins])
        steps = [step.seq for part in self.parts if part.kind == "changes" for step in part.steps]
        _refuse_repeated("more than one part has the changes of step", steps)


def periods_of(part: Part, use: DatasetUse) -> frozenset[str] | None:
    """The periods whose rows of a pinned dataset the run saw; None if its files hold no others."""
    listed = (part.details or {}).get("periods")
    if use.temporal_mode != "period" or not isinstance(listed, str):
        return None
    return frozenset(listed.split(", "))


def _refuse_repeated(problem: str, numbers: Sequence[int | None]) -> None:
    repeated = sorted({number for number in numbers if number is not None and numbers.count(number) > 1})
    if repeated or None in numbers:
        shown = ", ".join(map(str, repeated)) or "none"
        raise EngineBug(TRACE_INTEGRITY_ERROR.anywhere(problem=f"{problem} {shown}"))


@dataclass(frozen=True, slots=True)
class GroupKey:
    """One key of the groups of a step."""

    name: str
    """The column of the working dataset that it went to."""
    column: str
    """The column in the files of the summary rows that has it as the groups had it."""
    value: Expression
    """Gives it for a source row of a summary."""


def group_keys(run: RunParts, files: TraceFiles, step: CreatingStep, part: Part) -> tuple[GroupKey, ...]:
    """The keys of a step that sums up, whose rows are in a part; none of a step that does not."""
    before = dict(run.columns(run.before(step.seq)))
    has_own = step.narrowed_keys and part.files
    stored = files.columns(part.files[0]) if has_own else frozenset()
    found = list[GroupKey]()
    for position, (name, value) in enumerate(step.key_values(run.plan.input.table, before).items()):
        own = group_key_column(position)
        if own in stored and isinstance(value, Convert):
            found.append(GroupKey(name, own, value.operand))
        else:
            found.append(GroupKey(name, name, value))
    return tuple(found)
