"""By what rows of two runs are matched: loaded rows by their natural key, summaries by the keys of their groups."""

from collections.abc import Sequence
from dataclasses import field

from clew.change.points import Point, counterpart
from clew.deferred import dataclass
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.changes import DIFFERENT_KEYS
from clew.plan.names import names_of_created
from clew.plan.operations import CreatingStep
from clew.plan.steps import StepBase
from clew.storage.parts import ORDINAL
from clew.storage.row_identity import ROW_INDEX_BITS, place_of
from clew.trace.reader import RunTrace
from clew.trace.sql import quoted

_PERIOD = "_period"
_Identity = tuple[str, int | None, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class RowKind:
    """Rows that are matched in the same way."""

    name: str
    """What they are: rows of the dataset, or summaries of a step."""
    key: tuple[str, ...]
    """The columns by which they are matched; none for the one summary of everything."""
    has_key: bool = True
    """Whether there is anything to match them by but all their values."""

    def to_json(self) -> dict[str, object]:
        """The form that commands and the server give."""
        return {"rows": self.name, "columns": list(self.key), "matched_by": "key" if self.has_key else "all values"}


@dataclass(slots=True)
class RowKinds:
    """The kinds of rows at a point of two runs."""

    kinds: list[RowKind] = field(default_factory=list)
    by_file: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    """The kind of the rows of each file, for each run."""
    loaded: int = 0
    _known: dict[_Identity, int] = field(default_factory=dict)

    def add(self, identity: _Identity, kind: RowKind) -> int:
        """The number of a kind."""
        if identity not in self._known:
            self._known[identity] = len(self.kinds)
            self.kinds.append(kind)
        return self._known[identity]

    def of(self, side: int, ordinal: int) -> RowKind:
        """The kind of a row of the first run (0) or the second (1)."""
        return self.kinds[self.by_file[side].get(place_of(ordinal)[0], self.loaded)]

    @property
    def key_columns(self) -> list[str]:
        """All columns that are keys of any rows."""
        return list(dict.fromkeys(name for kind in self.kinds for name in kind.key))

    @property
    def keyless(self) -> list[int]:
        """The kinds that can be matched by all values only."""
        return [number for number, kind in enumerate(self.kinds) if not kind.has_key]

    def in_sql(self, side: int) -> str:
        """The kind of a row by its ordinal."""
        listed = {file: kind for file, kind in self.by_file[side].items() if kind != self.loaded}
        if not listed:
            return str(self.loaded)
        cases = " ".join(f"WHEN {file} THEN {kind}" for file, kind in sorted(listed.items()))
        return f"CASE ({ORDINAL} >> {ROW_INDEX_BITS}) {cases} ELSE {self.loaded} END"

    def key_in_sql(self, column: str, kind: str) -> str:
        """The value of a key column; NULL in rows that are not matched by it."""
        having = [number for number, each in enumerate(self.kinds) if column in each.key]
        if len(having) == len(self.kinds):
            return quoted(column)
        return f"CASE WHEN ({kind}) IN ({', '.join(map(str, having))}) THEN {quoted(column)} END"


def kinds_of(a: RunTrace, b: RunTrace, points: tuple[Point, Point], wanted: Sequence[str] = ()) -> RowKinds:
    """How rows at a point of two runs are matched. `wanted` are columns to match all rows by."""
    found = RowKinds()
    if wanted:
        _require_columns(a, b, points, wanted)
        found.add(("wanted", None, tuple(wanted)), RowKind("all rows", tuple(wanted)))
        return found
    key = _loaded_key(a, b)
    dropped = {_PERIOD} if a.period != b.period else set[str]()
    key = tuple(name for name in key if name not in dropped)
    loaded = RowKind(f"rows of {a.plan.input.name}", key, has_key=bool(key))
    found.loaded = found.add(("rows", None, key), loaded)
    for side, (trace, point) in enumerate(((a, points[0]), (b, points[1]))):
        for part in trace.run.created:
            if part.seq <= point.seq:
                step = trace.run.step(part.seq)
                number = found.add(*_created(step, trace, a, dropped, is_second=side == 1))
                found.by_file[side].update((file.ordinal, number) for file in part.files if file.ordinal is not None)
    return found


def _created(
    step: StepBase, trace: RunTrace, a: RunTrace, dropped: set[str], *, is_second: bool
) -> tuple[_Identity, RowKind]:
    """The kind of the rows that a step created. Its number is the seq of the step of the first run."""
    assert isinstance(step, CreatingStep)  # noqa: S101 - others leave no such part
    if step.keys is None:
        names = names_of_created(trace.plan.input, step)
        key = tuple(name for name in (names[0] if names else ()) if name not in dropped)
        kind = RowKind(f"rows of {trace.plan.input.name}", key, has_key=bool(key))
        return ("rows", None, key), kind
    first: StepBase | None = step
    if is_second:
        mine = [each for each in a.plan.steps if isinstance(each, CreatingStep)]
        first = counterpart(step, mine)
    key = tuple(name for name in step.keys if name not in dropped)
    number = first.seq if first is not None else -step.seq
    return ("summaries", number, key), RowKind(f'summaries of step {step.seq} "{step.name}"', key)


def _loaded_key(a: RunTrace, b: RunTrace) -> tuple[str, ...]:
    first, second = (trace.plan.input.names[:1] for trace in (a, b))
    if first != second:
        keys = [", ".join(names[0]) if names else "nothing" for names in (first, second)]
        problem = (
            f"rows of {a.plan.input.name} are identified by {keys[0]} in {a.run_id}, and by {keys[1]} in {b.run_id}"
        )
        raise UserError(DIFFERENT_KEYS.anywhere(problem=problem))
    return first[0] if first else ()


def _require_columns(a: RunTrace, b: RunTrace, points: tuple[Point, Point], wanted: Sequence[str]) -> None:
    for trace, point in ((a, points[0]), (b, points[1])):
        known = [name for name, _ in trace.run.columns(point.seq)]
        for name in wanted:
            if name not in known:
                problem = f'the rows of {trace.run_id} have no column "{name}"'
                raise UserError(DIFFERENT_KEYS.anywhere(problem=problem, hint=did_you_mean(name, known)))
