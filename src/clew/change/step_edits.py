"""What differs between the steps of two plans, and the steps that there are where only some of it is changed."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Literal

from clew.change.points import counterpart
from clew.change.recomputing import trees_of
from clew.deferred import dataclass
from clew.lang.typed import columns_of
from clew.plan.binding import differently_given
from clew.plan.datasets import DatasetUse
from clew.plan.operations import OutputStep, Step
from clew.plan.steps import Assignment, ChangingStepBase, CreatingStepBase

StepEditKind = Literal["added", "removed", "changed"]
_MOST_APART = 8
"""More edits than that are taken together."""


@dataclass(frozen=True, slots=True, eq=False)
class StepEdit:
    """A step that only one plan has, or that differs."""

    old: Step | None
    new: Step | None

    @property
    def kind(self) -> StepEditKind:
        """What happened to it."""
        return "added" if self.old is None else "removed" if self.new is None else "changed"

    @property
    def step(self) -> Step:
        """The step as the second plan has it, or as the first had it."""
        found = self.new or self.old
        assert found is not None  # noqa: S101 - an edit has one of them
        return found

    def told(self) -> str:
        """What changed, in words, with old and new expressions."""
        name = f'operation {self.step.seq} "{self.step.name}"'
        if self.old is None or self.new is None:
            return f"{name} {self.kind}"
        told = [*_differences(self.old, self.new), *differently_given(self.old, self.new)]
        return f"{name} changed: {'; '.join(told) or 'its definition'}"


@dataclass(frozen=True, slots=True)
class EditedSteps:
    """The steps of two plans, merged into one order."""

    entries: tuple[Step | StepEdit, ...]
    groups: tuple[tuple[StepEdit, ...], ...]
    """Edits that can be made by themselves; those that depend on each other are in one group."""
    together: str | None = None
    """Why edits are taken together."""
    _swapped: tuple[tuple[Step, ...], tuple[Step, ...]] | None = None
    """Both lists of steps, where they can only be exchanged as a whole."""

    def with_edits(self, made: frozenset[StepEdit]) -> tuple[Step, ...]:
        """The steps where only some of the edits are made."""
        if self._swapped is not None:
            return self._swapped[1] if made else self._swapped[0]
        found = list[Step]()
        for each in self.entries:
            step = each if not isinstance(each, StepEdit) else each.new if each in made else each.old
            if step is not None:
                found.append(step)
        return tuple(found)


def edited_steps(
    a: Sequence[Step],
    b: Sequence[Step],
    *,
    table: str,
    loaded: frozenset[str],
    needed: frozenset[str],
    same_types: bool = True,
) -> EditedSteps:
    """Compare the steps of two plans.

    `loaded` are the columns of their input, `needed` those that are asked about. Where columns have other types, all
    changes are taken together.
    """
    partner = dict[int, Step]()
    taken = set[int]()
    for step in a:
        free = [each for each in b if each.seq not in taken]
        other = counterpart(step, free)
        if other is not None:
            partner[step.seq] = other
            taken.add(other.seq)
    entries = _merged(a, b, partner)
    if entries is None:
        partners = [(step, partner.get(step.seq)) for step in a]
        edits = tuple(StepEdit(step, other) for step, other in partners if not is_same_step(step, other))
        edits += tuple(StepEdit(None, step) for step in b if step.seq not in taken)
        moved = edits or (StepEdit(a[-1], b[-1]),)
        because = "operations were put into another order, so that their changes cannot be told apart"
        return EditedSteps((), (moved,), because, (tuple(a), tuple(b)))
    edits = tuple(each for each in entries if isinstance(each, StepEdit))
    found = EditedSteps(tuple(entries), _linked(edits, table, loaded))
    if len(edits) > _MOST_APART or not same_types or not _all_work(found, table, loaded, needed):
        because = "changes of operations depend on each other, so that they are taken together"
        return EditedSteps(tuple(entries), (edits,), because)
    linked = any(len(group) > 1 for group in found.groups)
    return replace(found, together="operations that need each other's columns are taken together") if linked else found


def _merged(a: Sequence[Step], b: Sequence[Step], partner: dict[int, Step]) -> list[Step | StepEdit] | None:
    """Both in one order; None if steps that both have are in another order."""
    places = [b.index(partner[step.seq]) for step in a if step.seq in partner]
    if places != sorted(places):
        return None
    found, waiting = list[Step | StepEdit](), list(a)
    origin = {other.seq: step for step in a if (other := partner.get(step.seq)) is not None}
    for step in b:
        old = origin.get(step.seq)
        if old is None:
            found.append(StepEdit(None, step))
            continue
        while waiting[0] is not old:
            found.append(StepEdit(waiting.pop(0), None))
        waiting.pop(0)
        found.append(step if is_same_step(old, step) else StepEdit(old, step))
    return [*found, *(StepEdit(step, None) for step in waiting)]


def is_same_step(one: Step, other: Step | None) -> bool:
    """Whether two steps do the same to rows."""
    return other is not None and _essence(one) == _essence(other)


def _essence(step: Step) -> object:
    """All of a step that decides rows: not its name and place, nor which version of a dataset it reads."""
    joins = [(join.alias, join.on.tree, _dataset(join.dataset)) for join in step.lookups]
    selector = step.selector.tree if step.selector else None
    if isinstance(step, CreatingStepBase):
        condition = step.condition.tree if step.condition else None
        source = None if step.made_from is None else _dataset(step.made_from)
        having = step.having.tree if step.having else None
        return step.type, selector, condition, source, step.keys, _assigned(step.filled), having
    if isinstance(step, ChangingStepBase):
        return step.type, selector, joins, _assigned(step.assigned), step.keeps, step.window_calls
    return step.type, selector, step.include_deleted


def _assigned(assignments: Sequence[Assignment]) -> list[tuple[str, object]]:
    return [(each.column, each.value.tree) for each in assignments]


def _dataset(use: DatasetUse) -> tuple[str, str]:
    return use.dataset_id, use.table


def _differences(old: Step, new: Step) -> list[str]:
    """Old and new expressions of a step that both plans have."""
    texts = [_texts(each) for each in (old, new)]
    return [
        f"{what}: {texts[0].get(what, 'nothing')} -> {texts[1].get(what, 'nothing')}"
        for what in dict.fromkeys([*texts[0], *texts[1]])
        if texts[0].get(what) != texts[1].get(what)
    ]


def _texts(step: Step) -> dict[str, str]:
    found = {} if step.selector is None else {"selector": step.selector.text}
    found |= {f"join {join.alias}": f"{join.dataset.name} on {join.on.text}" for join in step.lookups}
    if isinstance(step, OutputStep):
        found |= {"columns": ", ".join(step.columns)}
    elif isinstance(step, ChangingStepBase):
        found |= {each.column: each.value.text for each in step.assigned}
        found |= {"keep": step.keeps.text} if step.keeps is not None else {}
    elif isinstance(step, CreatingStepBase):
        found |= {"source": step.made_from.name} if step.made_from is not None else {}
        found |= {"condition": step.condition.text} if step.condition and step.condition is not step.selector else {}
        found |= {"group_by": ", ".join(step.keys)} if step.keys is not None else {}
        found |= {each.column: each.value.text for each in step.filled}
        found |= {"having": step.having.text} if step.having is not None else {}
    return found


# Which edits can be made by themselves


def _reads(step: Step | None, table: str) -> set[str]:
    if step is None:
        return set()
    keys = set(step.keys or ()) if isinstance(step, CreatingStepBase) and step.made_from is None else set[str]()
    if isinstance(step, ChangingStepBase) and step.keeps is not None:
        keys = set(step.keeps.columns)
    if isinstance(step, ChangingStepBase):
        keys |= {name for window in step.window_calls for name in window.deciding}
    return keys | {column for tree in trees_of(step) for owner, column in columns_of(tree) if owner == table}


def _sets(step: Step | None) -> set[str]:
    return set() if step is None else set(step.columns_set)


def _linked(edits: Sequence[StepEdit], table: str, loaded: frozenset[str]) -> tuple[tuple[StepEdit, ...], ...]:
    """Edits in groups: one that reads a column which another one brings, or takes away, is in its group."""
    groups = [[edit] for edit in edits]
    for one, other in combinations(edits, 2):
        needs = any(
            (
                _reads(_version(reader, side), table)
                & (_sets(_version(setter, side)) - _sets(_version(setter, 1 - side)))
            )
            - loaded
            for reader, setter in ((one, other), (other, one))
            for side in (0, 1)
        )
        mine, theirs = (next(group for group in groups if each in group) for each in (one, other))
        if needs and mine is not theirs:
            mine += theirs
            groups.remove(theirs)
    return tuple(map(tuple, groups))


def _version(edit: StepEdit, side: int) -> Step | None:
    return edit.new if side else edit.old


def _all_work(found: EditedSteps, table: str, loaded: frozenset[str], needed: frozenset[str]) -> bool:
    """Whether no step reads a column that is not there yet, whichever groups of edits are made."""
    for size in range(len(found.groups) + 1):
        for groups in combinations(found.groups, size):
            there = set(loaded)
            for step in found.with_edits(frozenset(edit for group in groups for edit in group)):
                if not _reads(step, table) <= there:
                    return False
                there |= _sets(step)
            if not needed <= there:
                return False
    return True
