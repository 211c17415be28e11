"""The links between the rows of one run: read if they were written, otherwise derived from steps and keys.

A summary row leads to the rows that its step selected and that have its keys. Going up asks which rows those are; going
down asks which summaries have a row's keys. Either way the answer equals that of written links.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Protocol

from clew.deferred import dataclass
from clew.explain.row_conditions import all_of, equals, is_not_deleted
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import ColumnValue, Expression, Value, columns_of
from clew.plan.operations import CreatingStep
from clew.storage.parts import LINEAGE, TRACE_ID, Part
from clew.trace.reader import RunTrace
from clew.trace.row_sets import Cells, RowSet
from clew.trace.row_trace_ids import PARENT
from clew.trace.run_parts import GroupKey
from clew.tracelink import Link

_FEW_KEYS = 8
"""Up to here summary rows are looked up by their keys; beyond, those of a step are read once, all of them."""

_LOOKUP_IN_ROWS = 20_000
"""How many rows are looked at one by one in the time that it takes to look up those of one group."""


def row_parts(trace: RunTrace) -> list[Part]:
    """The parts whose rows have trace ids: what was loaded, what appends took rows from, and what steps created."""
    sources = {use.key: use for use in trace.plan.datasets_becoming_rows}
    inputs = [trace.run.pinned(use) for use in sources.values()]
    return [*{part.name: part for part in inputs}.values(), *trace.run.created]


KeyValues = tuple[object, ...]
Values = tuple[Value, ...]


class ExpandedLinks(Protocol):
    """Finds the links of a step that were worked out after the run."""

    def of_step(self, run_id: str, seq: int) -> Part | None:
        """The part that holds them; None if they have not been worked out."""
        ...


class NoExpandedLinks:
    """Where nothing was worked out after runs."""

    def of_step(self, run_id: str, seq: int) -> Part | None:
        """None."""
        del run_id, seq
        return None


@dataclass(slots=True)
class RowLinks:
    """The links of one run."""

    trace: RunTrace
    expanded: ExpandedLinks = field(default_factory=NoExpandedLinks)
    _keys: dict[int, dict[KeyValues, int]] = field(default_factory=dict)

    def parents(self, trace_ids: Collection[int]) -> Iterator[Link]:
        """The links in which one of these is the trace of a summary row of this run."""
        for step, part in self._summaries():
            rows = self.trace.ids.rows_of(part, trace_ids)
            if not rows:
                continue
            links = self.expanded.of_step(self.trace.run_id, step.seq)
            if links is not None:
                yield from self.trace.ids.links(links, [trace_id for trace_id, _ in rows], TRACE_ID)
            elif _lineage(part) == "links":
                ids = {ordinal: trace_id for trace_id, ordinal in rows}
                for ordinal, parent in self.trace.ids.stored_parents(part, list(ids)):
                    yield ids[ordinal], parent
            else:
                yield from self._derived_parents(step, part, rows)

    def children(self, trace_ids: Collection[int]) -> Iterator[Link]:
        """The links in which one of these is a source row of a summary of this run."""
        for step, part in self._summaries():
            links = self.expanded.of_step(self.trace.run_id, step.seq)
            if links is not None:
                yield from self.trace.ids.links(links, trace_ids, PARENT)
            elif _lineage(part) == "links":
                found = self.trace.ids.stored_children(part, trace_ids)
                ids = self.trace.ids.ids_of(part, {ordinal for ordinal, _ in found})
                yield from ((ids[ordinal], parent) for ordinal, parent in found if ordinal in ids)
            else:
                yield from self._derived_children(step, part, trace_ids)

    def _summaries(self) -> Iterator[tuple[CreatingStep, Part]]:
        for part in self.trace.run.created:
            step = self.trace.run.step(part.seq)
            if isinstance(step, CreatingStep) and step.keys is not None:
                yield step, part

    # Links that were not written

    def _derived_parents(self, step: CreatingStep, part: Part, rows: Sequence[tuple[int, int]]) -> Iterator[Link]:
        """The rows of a group are looked up by its keys, or all rows are looked at once where that takes less."""
        ids = {ordinal: trace_id for trace_id, ordinal in rows}
        group = _Group.of(self.trace, step, part)
        names = [key.column for key in group.keys]
        summaries = self.trace.created(part).values(list(ids), names)
        by_key = {_key(cells[name] for name in names): ids[ordinal] for ordinal, cells in summaries}
        looks_up = len(summaries) == 1 or len(summaries) * _LOOKUP_IN_ROWS <= group.size
        members = list[tuple[int, int]]()
        for only in [cells for _, cells in summaries] if looks_up else [None]:
            for ordinal, cells in group.rows.matching(group.condition(only), group.columns, group.see):
                child = by_key.get(group.key(ordinal, cells))
                if child is not None:
                    members.append((child, ordinal))
        parents = group.ids_of({ordinal for _, ordinal in members})
        yield from sorted({(child, parents[ordinal]) for child, ordinal in members if ordinal in parents})

    def _derived_children(self, step: CreatingStep, part: Part, trace_ids: Collection[int]) -> Iterator[Link]:
        group = _Group.of(self.trace, step, part)
        rows = dict[int, int]()
        for source in group.parts:
            rows |= {ordinal: trace_id for trace_id, ordinal in self.trace.ids.rows_of(source, trace_ids)}
        if not rows:
            return
        condition = group.condition(None)
        decide = None if condition is None else evaluator(condition)
        members = list[tuple[Values, int]]()
        for ordinal, cells in group.rows.values(list(rows), sorted({*group.columns, *group.needed})):
            if decide is None or decide(group.see(ordinal, cells)) is True:
                members.append((group.values(ordinal, cells), rows[ordinal]))
        summaries = self._by_key(step, part, dict.fromkeys(values for values, _ in members))
        yield from sorted({(summaries[_key(values)], row) for values, row in members if _key(values) in summaries})

    def _by_key(self, step: CreatingStep, part: Part, wanted: Collection[Values]) -> dict[KeyValues, int]:
        """The trace ids of a step's summary rows, by their keys: of those with a few keys, or of all."""
        if len(wanted) > _FEW_KEYS and step.seq not in self._keys:
            self._keys[step.seq] = self._summaries_with(part, None)
        if step.seq in self._keys:
            return self._keys[step.seq]
        found = dict[KeyValues, int]()
        for values in wanted:
            found |= self._summaries_with(part, values)
        return found

    def _summaries_with(self, part: Part, values: Values | None) -> dict[KeyValues, int]:
        group_keys, table = self.trace.group_keys(part), self.trace.plan.input.table
        names = [key.column for key in group_keys]
        columns = [ColumnValue(table, key.column, key.value.type) for key in group_keys]
        keys = [equals(column, value) for column, value in zip(columns, values or (), strict=False) if _narrows(value)]
        rows = [
            (ordinal, _key(cells[name] for name in names))
            for ordinal, cells in self.trace.created(part).matching(all_of(keys), names, self.trace.see)
        ]
        ids = self.trace.ids.ids_of(part, [ordinal for ordinal, _ in rows])
        return {key: ids[ordinal] for ordinal, key in rows if ordinal in ids}


@dataclass(frozen=True, slots=True)
class _Group:
    """The rows that a summary step looked at, and how it put them together."""

    trace: RunTrace
    rows: RowSet
    parts: tuple[Part, ...]
    """Where those rows have their trace ids from."""
    table: str
    keys: tuple[GroupKey, ...]
    filters: tuple[Expression | None, ...]

    @classmethod
    def of(cls, trace: RunTrace, step: CreatingStep, part: Part) -> "_Group":
        keys = trace.group_keys(part)
        chosen = step.condition.tree if step.condition else None
        source = step.made_from
        if source is None:
            return cls._of_working(trace, step.seq, chosen, keys)
        filters = (chosen,)
        return cls(trace, trace.pinned(source), (trace.run.pinned(source),), source.table, keys, filters)

    @classmethod
    def _of_working(cls, trace: RunTrace, seq: int, chosen: Expression | None, keys: tuple[GroupKey, ...]) -> "_Group":
        table, before = trace.plan.input.table, trace.run.before(seq)
        parts = (trace.run.loaded, *(part for part in trace.run.created if part.seq < seq))
        filters = (is_not_deleted(table), chosen)
        return cls(trace, trace.working(before), parts, table, keys, filters)

    @property
    def size(self) -> int:
        """How many rows there are, roughly: rows that do not count are among them."""
        return sum(file.counted for part in self.parts for file in part.files)

    @property
    def columns(self) -> list[str]:
        """The columns that keys are made from."""
        return sorted({name for key in self.keys for _, name in columns_of(key.value)})

    @property
    def needed(self) -> set[str]:
        """The columns that decide which rows count."""
        found = {name for each in self.filters if each is not None for _, name in columns_of(each)}
        return found - {"_row_id"}

    def condition(self, only: Cells | None) -> Expression | None:
        """What rows of the step, or of one group of it, must fulfil. Keys narrow down what is read, `key` decides."""
        cells = {} if only is None else only
        chosen = [key for key in self.keys if key.column in cells and _narrows(cells[key.column])]
        narrowing = [equals(key.value, cells[key.column]) for key in chosen]
        return all_of([*narrowing, *self.filters])

    def key(self, ordinal: int, cells: Cells) -> KeyValues:
        return _key(self.values(ordinal, cells))

    def values(self, ordinal: int, cells: Cells) -> Values:
        seen = self.see(ordinal, cells)
        return tuple(evaluator(key.value)(seen) for key in self.keys)

    def see(self, ordinal: int, cells: Cells) -> Row:
        return Row({self.table: {**cells, "_row_id": self.trace.row_ids.row_id(ordinal)}}, self.trace.today)

    def ids_of(self, ordinals: Collection[int]) -> dict[int, int]:
        found = dict[int, int]()
        for part in self.parts:
            found |= self.trace.ids.ids_of(part, ordinals)
        return found


def _narrows(value: Value) -> bool:
    """Numbers that are not exact are compared as groups compare them, and not as conditions do."""
    return not isinstance(value, float)


def _key(values: Iterable[Value]) -> KeyValues:
    """Values as groups distinguish them: NULL is one value, NaN is one value, zero has no sign."""
    return tuple("not a number" if value != value else value + 0 if value == 0 else value for value in values)  # type: ignore[operator]  # noqa: PLR0124


def _lineage(part: Part) -> object:
    return (part.details or {}).get(LINEAGE)
