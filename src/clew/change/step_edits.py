"""What differs between the steps of two plans, and the steps that there are where only some of it is changed."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
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
class StepMove:
    """A step that both plans have in different places: removed from the one, added at the other."""

    removed: StepEdit
    added: StepEdit
    told: str
    """What moved where, and what else of it changed, in words."""


@dataclass(frozen=True, slots=True)
class EditedSteps:
    """The steps of two plans, merged into one order."""

    entries: tuple[Step | StepEdit, ...]
    groups: tuple[tuple[StepEdit, ...], ...]
    """Edits that can be made by themselves; those that depend on each other are in one group."""
    together: str | None = None
    """Why edits are taken together."""
    moves: tuple[StepMove, ...] = ()
    """Steps that both plans have in different places."""

    def told(self, group: Sequence[StepEdit]) -> tuple[str, ...]:
        """What the edits of a group are, in words; a move is one."""
        moves = {move.removed: move.told for move in self.moves}
        later = {move.added for move in self.moves}
        return tuple(moves.get(each) or each.told() for each in group if each not in later)

    def with_edits(self, made: frozenset[StepEdit]) -> tuple[Step, ...]:
        """The steps where only some of the edits are made."""
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
    partner = partners_of(a, b)
    entries = tuple(aligned(a, b, partner, is_same_step))
    edits = tuple(each for each in entries if isinstance(each, StepEdit))
    moves = tuple(_moves(a, b, edits, partner))
    units = _units(edits, moves)
    found = EditedSteps(entries, _linked(units, table, loaded), moves=moves)
    if len(units) > _MOST_APART or not same_types or not _all_work(found, table, loaded, needed):
        because = "changes of operations depend on each other, so that they are taken together"
        return replace(found, groups=(edits,), together=because)
    linked = len(found.groups) < len(units)
    return replace(found, together="operations that need each other's columns are taken together") if linked else found


def partners_of(a: Sequence[Step], b: Sequence[Step]) -> dict[int, Step]:
    """The steps of the second plan that those of the first correspond to, by seq: of the same name, or else seq."""
    found, taken = dict[int, Step](), set[int]()
    for named in (True, False):
        for step in a:
            free = [each for each in b if each.seq not in taken and (not named or _called(each) == _called(step))]
            other = counterpart(step, free) if step.seq not in found else None
            if other is not None:
                found[step.seq] = other
                taken.add(other.seq)
    return found


def _called(step: Step) -> tuple[str, object]:
    return step.name, step.path


def aligned(
    a: Sequence[Step], b: Sequence[Step], partner: Mapping[int, Step], is_same: Callable[[Step, Step], bool]
) -> Iterator[Step | StepEdit]:
    """Both in one order. A step that has moved past others is removed where it was and added where it is."""
    paired = [step for step in a if step.seq in partner]
    kept = {paired[place].seq for place in _longest_rising([b.index(partner[step.seq]) for step in paired])}
    origin = {partner[seq].seq: seq for seq in kept}
    waiting = list(a)
    for step in b:
        if step.seq not in origin:
            yield StepEdit(None, step)
            continue
        while waiting[0].seq != origin[step.seq]:
            yield StepEdit(waiting.pop(0), None)
        before = waiting.pop(0)
        yield before if is_same(before, step) else StepEdit(before, step)
    yield from (StepEdit(step, None) for step in waiting)


def _longest_rising(numbers: Sequence[int]) -> list[int]:
    """The places of a longest rising subsequence."""
    tails, places, before = list[int](), list[int](), dict[int, int | None]()
    for place, number in enumerate(numbers):
        length = bisect_left(tails, number)
        tails[length:] = [number, *tails[length + 1 :]]
        places[length:] = [place, *places[length + 1 :]]
        before[place] = places[length - 1] if length else None
    found, last = list[int](), places[-1] if places else None
    while last is not None:
        found.append(last)
        last = before[last]
    return found[::-1]


def _moves(
    a: Sequence[Step], b: Sequence[Step], edits: Sequence[StepEdit], partner: Mapping[int, Step]
) -> Iterator[StepMove]:
    added = {each.new.seq: each for each in edits if each.old is None and each.new is not None}
    for removed in edits:
        old = removed.old
        if old is None or removed.new is not None or old.seq not in partner:
            continue
        new = partner[old.seq]
        name = f'operation {new.seq} "{new.name}" moved: {_place(a, old)} -> {_place(b, new)}'
        told = [*_differences(old, new), *differently_given(old, new)]
        yield StepMove(removed, added[new.seq], "; ".join([name, *told]))


def _place(steps: Sequence[Step], step: Step) -> str:
    place = steps.index(step)
    return f'after "{steps[place - 1].name}"' if place else "first"


def _units(edits: Sequence[StepEdit], moves: Sequence[StepMove]) -> list[tuple[StepEdit, ...]]:
    """Edits by themselves; both sides of a move together."""
    moved = {move.removed: (move.removed, move.added) for move in moves}
    later = {move.added for move in moves}
    return [moved.get(each, (each,)) for each in edits if each not in later]


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


def _linked(
    units: Sequence[tuple[StepEdit, ...]], table: str, loaded: frozenset[str]
) -> tuple[tuple[StepEdit, ...], ...]:
    """Edits in groups: one that reads a column which another one brings, or takes away, is in its group."""

    def needs(reader: Sequence[StepEdit], setter: Sequence[StepEdit]) -> bool:
        sets = [{name for edit in setter for name in _sets(_version(edit, side))} for side in (0, 1)]
        return any(
            _reads(_version(edit, side), table) & (sets[side] - sets[1 - side]) - loaded
            for edit in reader
            for side in (0, 1)
        )

    groups = [list(unit) for unit in units]
    for one, other in combinations(units, 2):
        mine, theirs = (next(group for group in groups if unit[0] in group) for unit in (one, other))
        if mine is not theirs and (needs(one, other) or needs(other, one)):
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
