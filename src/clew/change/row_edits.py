"""What differs between the rows of a dataset as two runs saw them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from clew.deferred import dataclass
from clew.lang.typed import Value
from clew.storage.parts import ORDINAL

RowCells = Mapping[str, Value]
EditKind = Literal["added", "removed", "changed"]
_Frozen = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, slots=True, eq=False)
class RowEdit:
    """A row that only one of the runs saw, or that they saw with different values."""

    dataset: str
    """What it is a row of: the key of a dataset, or nothing for the working dataset."""
    key: RowCells
    old: RowCells | None
    new: RowCells | None

    @property
    def kind(self) -> EditKind:
        """What happened to it."""
        return "added" if self.old is None else "removed" if self.new is None else "changed"

    @property
    def columns(self) -> list[str]:
        """The columns that differ; of a row that one run saw, all of them."""
        old, new = self.old or {}, self.new or {}
        return [name for name in dict.fromkeys([*old, *new]) if old.get(name) != new.get(name)]


@dataclass(frozen=True, slots=True)
class EditedRows:
    """The rows of a dataset in both runs: those that are the same, and what differs."""

    entries: tuple["RowCells | RowEdit", ...]

    @property
    def edits(self) -> tuple[RowEdit, ...]:
        """What differs."""
        return tuple(each for each in self.entries if isinstance(each, RowEdit))

    def with_edits(self, made: frozenset[RowEdit]) -> list[RowCells]:
        """The rows where only some of the edits are made: all as in the first run if none is."""
        found = list[RowCells]()
        for each in self.entries:
            row = each if not isinstance(each, RowEdit) else each.new if each in made else each.old
            if row is not None:
                found.append(row)
        return found


def edited_rows(dataset: str, before: Sequence[RowCells], after: Sequence[RowCells], key: Sequence[str]) -> EditedRows:
    """Match rows: equal ones first, then those with the same key, in their order. Without a key, only equal ones."""
    left = _without_equal(before, after)
    right = _without_equal(after, before)
    partners = defaultdict[tuple[Value, ...], list[RowCells]](list)
    for row in right:
        partners[_key(row, key)].append(row)
    changed = dict[int, RowEdit]()
    for row in left:
        same_key = partners[_key(row, key)] if key else []
        changed[id(row)] = RowEdit(dataset, _shown(row, key), row, same_key.pop(0) if same_key else None)
    added = {id(row): row for rows in partners.values() for row in rows}
    entries: list[RowCells | RowEdit] = [changed.get(id(row), row) for row in before]
    entries += [RowEdit(dataset, _shown(row, key), None, row) for row in right if id(row) in added]
    return EditedRows(tuple(entries))


def _without_equal(rows: Iterable[RowCells], others: Iterable[RowCells]) -> list[RowCells]:
    counts = defaultdict[_Frozen, int](int)
    for row in others:
        counts[_frozen(row)] += 1
    found = list[RowCells]()
    for row in rows:
        if counts[_frozen(row)]:
            counts[_frozen(row)] -= 1
        else:
            found.append(row)
    return found


def _frozen(row: RowCells) -> _Frozen:
    """All values of a row, in a fixed order; a NaN is the same as any other."""
    return tuple(
        (name, "\x00NaN" if value != value else value)  # noqa: PLR0124 - only NaN differs from itself
        for name, value in sorted(row.items())
        if name not in {"_row_id", ORDINAL}
    )


def _key(row: RowCells, key: Sequence[str]) -> tuple[Value, ...]:
    return tuple(row.get(name) for name in key)


def _shown(row: RowCells, key: Sequence[str]) -> RowCells:
    return {name: row.get(name) for name in key}
