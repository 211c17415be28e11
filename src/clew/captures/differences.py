"""Compares two captures: rows added, removed and changed, and columns side by side.

Rows of one run are matched by id, rows of different runs by a key. Where several rows have the same key, such as
summaries whose key is empty, they are matched in order. Values whose types cannot be compared, such as a number and its
masked form, are compared as text.
"""

# ruff: noqa: S608 - names are quoted by `clew.trace.sql`

from collections.abc import Collection, Sequence
from typing import Any

from clew.captures.captured_rows import ROW_ID, CapturedRows, Questions, questions
from clew.captures.statistics import ColumnStatistics, Statistics, statistics_of
from clew.deferred import dataclass
from clew.diagnostics import UserError, did_you_mean
from clew.diagnostics.codes.captures import NO_COMMON_KEY
from clew.events.codec import encode
from clew.lang.types import Kind, parse_type
from clew.trace.json_values import JsonValue, json_value
from clew.trace.sql import Sql, quoted

_NUMBER = "__number"
_COMPARABLE = (
    frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE}),
    frozenset({Kind.DATE, Kind.TIMESTAMP}),
)
"""Kinds of types that differ, and whose values are compared all the same."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A value on both sides."""

    before: JsonValue
    after: JsonValue


@dataclass(frozen=True, slots=True)
class RowChange:
    """A row that is on one side only, or that differs."""

    key: dict[str, JsonValue]
    columns: dict[str, ValueChange]
    natural_key: dict[str, JsonValue]
    """How people know the row, even if it was matched by id; empty if the dataset has no key."""
    row_before: str | None = None
    """Its id in the run of each side; None on a side that does not have it."""
    row_after: str | None = None

    @property
    def called_by(self) -> dict[str, JsonValue]:
        """The columns to call the row by: a row that a step created has an id only."""
        is_known = any(value is not None for value in self.natural_key.values())
        return self.natural_key if is_known and tuple(self.key) == (ROW_ID,) else self.key


@dataclass(frozen=True, slots=True)
class ColumnPair:
    """The statistics of a column on both sides; None if a side has no such column."""

    name: str
    changed: int
    """Rows, of those on both sides, in which it differs."""
    before: ColumnStatistics | None
    after: ColumnStatistics | None


@dataclass(frozen=True, slots=True)
class CaptureDiff:
    """In what the second capture differs from the first."""

    before: str
    after: str
    key: tuple[str, ...]
    rows_before: int
    rows_after: int
    added: int
    removed: int
    changed: int
    same: int
    examples_added: tuple[RowChange, ...]
    examples_removed: tuple[RowChange, ...]
    examples_changed: tuple[RowChange, ...]
    columns: tuple[ColumnPair, ...]

    @property
    def is_same(self) -> bool:
        """Whether there is no difference in the rows."""
        return not (self.added or self.removed or self.changed)

    def to_json(self) -> dict[str, Any]:
        """The form of `capture diff --json`."""
        document: dict[str, Any] = encode(self)
        return document


def diff_captures(
    before: CapturedRows, after: CapturedRows, *, key: Sequence[str] = (), examples: int = 10
) -> CaptureDiff:
    """Compare the views of two captures."""
    chosen = _key(before, after, key)
    shared = [name for name in before.columns if name in after.columns]
    with questions() as asked:
        asked.keep("b", _numbered(before, chosen))
        asked.keep("a", _numbered(after, chosen))
        asked.keep("pairs", _pairs(chosen, shared, _as_texts(before, after)))
        [counts] = asked.records(_counts(shared))
        differing = {name: int(counts[f"d{index}"]) for index, name in enumerate(shared)}
        natural = [name for name in before.manifest.natural_key if name in shared]
        found = {which: _examples(asked, which, chosen, shared, natural, examples) for which in _CONDITIONS}
    return CaptureDiff(
        before=before.manifest.capture_id,
        after=after.manifest.capture_id,
        key=chosen,
        rows_before=int(counts["before"]),
        rows_after=int(counts["after"]),
        added=int(counts["added"]),
        removed=int(counts["removed"]),
        changed=int(counts["changed"]),
        same=int(counts["in_both"]) - int(counts["changed"]),
        examples_added=found["added"],
        examples_removed=found["removed"],
        examples_changed=found["changed"],
        columns=_columns(before, after, differing),
    )


def _key(before: CapturedRows, after: CapturedRows, wanted: Sequence[str]) -> tuple[str, ...]:
    common = [name for name in before.columns if name in after.columns]
    if wanted:
        for name in wanted:
            if name not in common:
                problem = f'not both captures have a column "{name}"'
                raise UserError(NO_COMMON_KEY.anywhere(problem=problem, hint=did_you_mean(name, common)))
        return _as_masked(before, after, wanted)
    if before.manifest.run_id == after.manifest.run_id:
        return (ROW_ID,)
    natural = before.manifest.natural_key
    if natural and natural == after.manifest.natural_key and all(name in common for name in natural):
        return _as_masked(before, after, natural)
    problem = "the captures are of different runs, and their dataset has no natural key that both captures have"
    raise UserError(NO_COMMON_KEY.anywhere(problem=problem))


def _as_masked(before: CapturedRows, after: CapturedRows, key: Sequence[str]) -> tuple[str, ...]:
    """A key that both sides keep in the same way: what one of them has masked finds nothing on the other."""
    masks, others = ({each.name: each.mask for each in rows.manifest.columns} for rows in (before, after))
    for name in key:
        if masks[name] != others[name]:
            problem = f'"{name}" is masked in one of the captures, or in another way, so it does not tell rows apart'
            raise UserError(NO_COMMON_KEY.anywhere(problem=problem, hint="name other columns with --key"))
    return tuple(key)


def _as_texts(before: CapturedRows, after: CapturedRows) -> frozenset[str]:
    """Columns whose types on the two sides have no values in common."""
    kinds, others = ({c.name: parse_type(c.type).kind for c in rows.manifest.columns} for rows in (before, after))
    return frozenset(
        name
        for name in kinds.keys() & others.keys()
        if kinds[name] is not others[name] and not any({kinds[name], others[name]} <= kind for kind in _COMPARABLE)
    )


def _numbered(rows: CapturedRows, key: Sequence[str]) -> Sql:
    """The view, with a number that distinguishes rows with the same key."""
    by = ", ".join(map(quoted, key))
    number = f"row_number() OVER (PARTITION BY {by} ORDER BY {quoted(ROW_ID)}) AS {_NUMBER}"
    return f"SELECT *, {number} FROM (" + rows.view() + ")"


def _pairs(key: Sequence[str], shared: Sequence[str], as_texts: Collection[str]) -> Sql:
    """Rows of both sides, side by side, and whether they differ."""

    def of(side: str, name: str) -> str:
        return f"{side}.{quoted(name)}::VARCHAR" if name in as_texts else f"{side}.{quoted(name)}"

    keys = "".join(f", coalesce({of('b', name)}, {of('a', name)}) AS k{i}" for i, name in enumerate(key))
    columns = "".join(
        f", b.{quoted(name)} AS b{index}, a.{quoted(name)} AS a{index}, "
        f"{of('b', name)} IS DISTINCT FROM {of('a', name)} AS d{index}"
        for index, name in enumerate(shared)
    )
    differs = " OR ".join(f"{of('b', name)} IS DISTINCT FROM {of('a', name)}" for name in shared) or "FALSE"
    same = " AND ".join(f"{of('b', name)} IS NOT DISTINCT FROM {of('a', name)}" for name in key)
    return Sql(
        f"SELECT b.{_NUMBER} IS NOT NULL AS in_b, a.{_NUMBER} IS NOT NULL AS in_a, ({differs}) AS differs, "
        f"coalesce(b.{quoted(ROW_ID)}, a.{quoted(ROW_ID)}) AS place, "
        f"b.{quoted(ROW_ID)} AS row_b, a.{quoted(ROW_ID)} AS row_a{keys}{columns} "
        f"FROM b FULL OUTER JOIN a ON b.{_NUMBER} = a.{_NUMBER} AND {same}"
    )


_CONDITIONS = {"added": "in_a AND NOT in_b", "removed": "in_b AND NOT in_a", "changed": "in_a AND in_b AND differs"}


def _counts(shared: Sequence[str]) -> str:
    kinds = ", ".join(f"count(*) FILTER (WHERE {condition}) AS {which}" for which, condition in _CONDITIONS.items())
    differing = "".join(
        f", count(*) FILTER (WHERE in_a AND in_b AND d{index}) AS d{index}" for index in range(len(shared))
    )
    return (
        f"SELECT count(*) FILTER (WHERE in_b) AS before, count(*) FILTER (WHERE in_a) AS after, "
        f"count(*) FILTER (WHERE in_a AND in_b) AS in_both, {kinds}{differing} FROM pairs"
    )


def _examples(
    asked: Questions, which: str, key: Sequence[str], shared: Sequence[str], natural: Sequence[str], count: int
) -> tuple[RowChange, ...]:
    rows = asked.records(f"SELECT * FROM pairs WHERE {_CONDITIONS[which]} ORDER BY place LIMIT {int(count)}")
    side = "a" if which == "added" else "b"
    return tuple(
        RowChange(
            {name: json_value(row[f"k{index}"]) for index, name in enumerate(key)},
            {
                name: ValueChange(json_value(row[f"b{index}"]), json_value(row[f"a{index}"]))
                for index, name in enumerate(shared)
                if row[f"d{index}"]
            },
            {name: json_value(row[f"{side}{shared.index(name)}"]) for name in natural},
            row["row_b"],
            row["row_a"],
        )
        for row in rows
    )


def _columns(before: CapturedRows, after: CapturedRows, differing: dict[str, int]) -> tuple[ColumnPair, ...]:
    left, right = statistics_of_rows(before), statistics_of_rows(after)
    names = [*before.columns, *(name for name in after.columns if name not in before.columns)]
    return tuple(ColumnPair(name, differing.get(name, 0), left.column(name), right.column(name)) for name in names)


def statistics_of_rows(rows: CapturedRows, *, bins: int = 10, top: int = 5) -> Statistics:
    """Statistics of the view of a capture."""
    types = [(column.name, parse_type(column.type)) for column in rows.manifest.columns]
    return statistics_of(rows.view(), types, bins=bins, top=top)
