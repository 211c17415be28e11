"""What a run can take over from an earlier run of its project, and why it cannot take over the rest.

A part is the same if the same code made it from the same rows. So a step that works on the working dataset can be taken
over if everything before it was: the input, each step, and every dataset that they read. Rows that a step creates from
another dataset alone need only that dataset. What is compared is what decides rows: not names, places or descriptions.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date

from clew.deferred import dataclass
from clew.events.snapshot import RunSnapshot, StepSnapshot, StepStatus
from clew.events.values import CheckResult
from clew.plan.binding import differently_given, given_values, with_values
from clew.plan.datasets import DatasetUse
from clew.plan.json_form import to_plain
from clew.plan.operations import ChangingStep, CreatingStep, OutputStep, Step
from clew.plan.plan import Plan
from clew.plan.planned_checks import PlannedCheck
from clew.storage.parts import LAYOUT_VERSION, Part, PartKind

_NO_MATTER = frozenset({"place", "description", "text", "reads", "row_names", "lineage"})
"""What follows from the rest of a step, or is for people."""
_NAMES = frozenset({"name", "id", "path", "breakpoint"})
"""What a step is called."""
_OF_THE_RUN = "_row_id"


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """The run that another one repeats."""

    run_id: str
    snapshot: RunSnapshot
    plan: Plan
    parts: tuple[Part, ...]
    """What it has committed."""
    versions: frozenset[str]
    """The versions of Clew that have computed its steps."""
    today: date | None = None
    """What TODAY() meant in it; None if it has not started."""

    def part(self, kind: PartKind, name: str) -> Part | None:
        """A part by its kind and name."""
        return next((each for each in self.parts if (each.kind, each.name) == (kind, name)), None)

    def use(self, key: str) -> DatasetUse | None:
        """A dataset as its plan reads it."""
        return next((each for each in self.plan.datasets_read if each.key == key), None)

    def step(self, seq: int) -> StepSnapshot | None:
        """What became of a step."""
        return next((each for each in self.snapshot.steps if each.seq == seq and each.step_id == str(seq)), None)

    @property
    def next_ordinal(self) -> int:
        """The first file ordinal that it does not use."""
        used = [file.ordinal for part in self.parts for file in part.files if file.ordinal is not None]
        return max(used, default=-1) + 1


@dataclass(frozen=True, slots=True)
class TakenPart:
    """Steps that are taken over together, and the part of the earlier run with what they did."""

    seqs: tuple[int, ...]
    part: Part
    is_renumbered: bool = False
    """Whether its rows get the next ordinals of the run, since those before them are not the same."""


@dataclass(frozen=True, slots=True)
class Reusable:
    """What can be taken over."""

    parts: Mapping[int, TakenPart] = field(default_factory=dict)
    """By the seq of the first step of each."""
    reasons: Mapping[int, str] = field(default_factory=dict)
    """Why other steps are computed, by their seq."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What decides about a whole run."""

    inputs: Collection[str]
    """The keys of the datasets that the run has taken over."""
    computed: Collection[int] = ()
    """Steps that the run itself has computed, or skipped."""
    same_day: bool = True
    """Whether TODAY() means the same in both runs."""
    stranger: str | None = None
    """Why nothing that was computed can be taken over."""
    damaged: Mapping[tuple[PartKind, str], str] = field(default_factory=dict)
    """What is wrong with the files of parts, by kind and name."""


def differing_use(earlier: EarlierRun, use: DatasetUse) -> str | None:
    """Why a dataset is not what the earlier run read under its name; None if its rows mean the same."""
    known = earlier.use(use.key)
    if known is None or earlier.part("input", use.key) is None:
        return "that run did not read it"
    if _essence(known, _OF_USES) != _essence(use, _OF_USES):
        return "its columns or its keys were changed"
    return None


_OF_USES = _NO_MATTER | {"resolver_id", "resolver_source", "labels_privacy", "privacy"}


def reusable(earlier: EarlierRun, plan: Plan, given: Circumstances) -> Reusable:
    """The parts that can be taken over, and why the other steps have to be computed."""
    return _Reuse(earlier, plan, given).decided()


class _Reuse:
    """Goes through the steps of a plan, as long as everything before them is the same."""

    def __init__(self, earlier: EarlierRun, plan: Plan, given: Circumstances) -> None:
        self._earlier, self._plan, self._given = earlier, plan, given
        self._before = [step for step in earlier.plan.steps if not isinstance(step, OutputStep)]
        self._parts = dict[int, TakenPart]()
        self._reasons = dict[int, str]()
        self._run = list[int]()
        """Steps in a row that one part has, and that are the same."""

    def decided(self) -> Reusable:
        broken = self._given.stranger
        if broken is None and self._plan.input.key not in self._given.inputs:
            broken = f"the rows of {self._plan.input.name} were read again"
        position = 0
        for step in self._plan.steps:
            if isinstance(step, OutputStep):
                self._end_run()
                continue
            reason = broken or self._difference(step, position) or self._unfit(step)
            position += 1
            if reason is None:
                self._take(step)
                continue
            self._end_run()
            if broken is not None and self._given.stranger is None and self._stands_alone(step):
                continue
            self._reasons[step.seq] = reason
            broken = broken or f"step {step.seq} comes before it, and was computed"
        self._end_run()
        return self._with_checks()

    def _difference(self, step: Step, position: int) -> str | None:
        """Why a step does not do what the step in its place did in the earlier run."""
        old = self._before[position] if position < len(self._before) else None
        if old is not None and old.seq != step.seq:
            if all(each.seq != step.seq for each in self._before):
                return "that run had no such operation"
            return f"that run had the operation {old.seq} before it"
        if old is None:
            return "that run had no such operation"
        return self._changed(old, step)

    def _changed(self, old: Step, step: Step) -> str | None:
        if _essence(old, _NO_MATTER) != _essence(step, _NO_MATTER):
            return _other_values(old, step) or "the operation was changed"
        columns = [
            [(column.name, column.type) for column in plan.columns_after(step.seq)]
            for plan in (self._earlier.plan, self._plan)
        ]
        return None if columns[0] == columns[1] else "the columns of the working dataset were changed"

    def _unfit(self, step: Step) -> str | None:
        """Why what a step did cannot be taken over, though it is the same."""
        if step.seq in self._given.computed:
            return "this run has computed it already"
        known = self._earlier.step(step.seq)
        if known is None or known.status is not StepStatus.SUCCESS:
            return "that run skipped it" if known and known.status is StepStatus.SKIPPED else "that run did not do it"
        for each in step.datasets:
            if each.use.key not in self._given.inputs:
                return f"the rows of {each.use.name} were read again"
        words = set(_words(to_plain(step, _NO_MATTER)))
        if not self._given.same_day and _TODAY in words:
            return "it asks for TODAY(), and that run was on another day"
        if _OF_THE_RUN in words:
            return "it looks at row ids, which each run has of its own"
        part = self._part_of(step)
        if part is None:
            return "that run has no files of it"
        if (part.kind, part.name) in self._given.damaged:
            return self._given.damaged[part.kind, part.name]
        return None if part.version == LAYOUT_VERSION else "its files have the layout of another version of Clew"

    def _part_of(self, step: Step) -> Part | None:
        if isinstance(step, CreatingStep):
            return self._earlier.part("created", str(step.seq))
        changes = (part for part in self._earlier.parts if part.kind == "changes")
        return next((part for part in changes if any(each.seq == step.seq for each in part.steps)), None)

    def _take(self, step: Step) -> None:
        part = self._part_of(step)
        assert part is not None  # noqa: S101 - looked for before
        if not isinstance(step, ChangingStep):
            self._end_run()
            self._parts[step.seq] = TakenPart((step.seq,), part)
            return
        if self._run and all(each.seq != self._run[0] for each in part.steps):
            self._end_run()
        self._run.append(step.seq)

    def _end_run(self) -> None:
        if self._run:
            seqs = tuple(self._run)
            step = next(step for step in self._plan.steps if step.seq == seqs[0])
            part = self._part_of(step)
            assert part is not None  # noqa: S101 - looked for before
            self._parts[seqs[0]] = TakenPart(seqs, _cut(part, seqs))
            self._run.clear()

    def _stands_alone(self, step: Step) -> bool:
        """Whether a step makes its rows from another dataset alone, and that is the same; then they are taken over."""
        old = next((each for each in self._before if each.seq == step.seq), None)
        if not isinstance(step, CreatingStep) or step.made_from is None or old is None:
            return False
        if self._changed(old, step) is not None or self._unfit(step) is not None:
            return False
        part = self._part_of(step)
        assert part is not None  # noqa: S101 - looked for before
        self._parts[step.seq] = TakenPart((step.seq,), part, is_renumbered=True)
        return True

    # Checks

    def _with_checks(self) -> Reusable:
        """Without the steps whose checks the earlier run has not answered, and all that come after them."""
        first: int | None = None
        for seq, taken in sorted(self._parts.items()):
            unanswered = self._unanswered(taken) if first is None else None
            if unanswered is not None:
                first = seq
                self._reasons |= dict.fromkeys(taken.seqs, self._why_asked_again(unanswered))
            elif first is not None:
                self._reasons |= dict.fromkeys(taken.seqs, f"step {first} comes before it, and was computed")
        parts = {seq: taken for seq, taken in self._parts.items() if first is None or seq < first}
        return Reusable(parts, self._reasons)

    def _unanswered(self, taken: TakenPart) -> PlannedCheck | None:
        """A check of a part that the earlier run has not answered."""
        looked_at = (
            check
            for check in self._plan.checks
            if check.at <= taken.seqs[-1] and check.quarantined_by is None and not check.of_dataset
        )
        return next((check for check in looked_at if answered(self._earlier, check, self._given) is None), None)

    def _why_asked_again(self, check: PlannedCheck) -> str:
        old = next((each for each in self._earlier.plan.checks if (each.name, each.at) == (check.name, check.at)), None)
        others = None if old is None else _other_values(old, check)
        return f'its check "{check.name}": {others}' if others else "its checks were changed"


def answered(earlier: EarlierRun, check: PlannedCheck, given: Circumstances) -> CheckResult | None:
    """What the earlier run found by a check; None where it had another one of the name, or other data."""
    if any(_essence(each, _NO_MATTER) == _essence(check, _NO_MATTER) for each in earlier.plan.checks):
        words = set(_words(to_plain(check, _NO_MATTER)))
        if all(use.key in given.inputs for use in check.datasets) and (given.same_day or _TODAY not in words):
            found = (each for each in earlier.snapshot.checks if (each.name, each.at) == (check.name, check.at))
            return next(found, None)
    return None


def _cut(part: Part, seqs: Sequence[int]) -> Part:
    """A part of changes as far as it belongs to these steps. Its files stay as they are."""
    steps = tuple(each for each in part.steps if each.seq in seqs)
    if len(steps) == len(part.steps):
        return part
    columns = part.columns if steps[-1] is part.steps[-1] else ()
    return replace(part, name=f"{seqs[0]}-{seqs[-1]}", seq=seqs[-1], steps=steps, columns=columns)


_TODAY = "TODAY()"


def _other_values(old: object, new: object) -> str | None:
    """What was given with other values, where that is all that differs between two parts of plans."""
    if _essence(old, _NO_MATTER) != _essence(with_values(new, given_values(old)), _NO_MATTER):
        return None
    told = ", ".join(differently_given(old, new))
    return f"it was given other values: {told}" if told else None


def _words(plain: object) -> Iterator[str]:
    """All texts in plain data, and `TODAY()` where that function is called."""
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, dict):
        for each in plain.values():
            yield from _words(each)
    elif isinstance(plain, list):
        if plain[:1] == ["apply"] and "TODAY" in plain[2:3]:
            yield _TODAY
        for each in plain:
            yield from _words(each)


def _essence(value: object, leave_out: frozenset[str]) -> str:
    """All of a step, a dataset or a check that decides rows, as text."""
    plain = to_plain(value, leave_out)
    if isinstance(plain, dict) and "seq" in plain:
        plain = {name: each for name, each in plain.items() if name not in _NAMES}
    return json.dumps(plain, sort_keys=True)
