"""The answer to what differs between two runs: counts, totals side by side, and a page of the rows that differ."""

# ruff: noqa: PLC0415 - table libraries are imported only when a table is requested

from collections.abc import Mapping
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Literal

from clew.change.points import Point
from clew.change.row_kinds import RowKind
from clew.deferred import dataclass
from clew.lang.typed import Value
from clew.lang.types import Type
from clew.trace.json_values import JsonValue, json_value
from clew.trace.records import Diff
from clew.trace.results import Html, data_frame, html_table, shown

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]
    import pyarrow as pa

Difference = Literal["changed", "only_in_a", "only_in_b"]
Amount = Decimal | float
"""Totals of doubles are doubles; all others are exact."""


@dataclass(frozen=True, slots=True)
class DifferingRow:
    """A row that differs, or that only one of the runs has."""

    change: Difference
    key: Mapping[str, Value]
    """What it was matched by, as far as the caller may see it."""
    row_a: str | None
    row_b: str | None
    columns: Mapping[str, Diff]
    """The columns that differ. Of a row that one run has: all columns, with NULL on the other side."""

    def to_json(self) -> dict[str, object]:
        """The form of `clew compare --json`."""
        return {
            "change": self.change,
            "key": {name: json_value(value) for name, value in self.key.items()},
            "row_a": self.row_a,
            "row_b": self.row_b,
            "columns": {
                name: {"old": json_value(each.old), "new": json_value(each.new)} for name, each in self.columns.items()
            },
        }


@dataclass(frozen=True, slots=True)
class ColumnTotals:
    """A column of both runs."""

    name: str
    type_a: Type
    type_b: Type
    changed: int
    """In how many of the rows that both runs have it differs."""
    total_a: Amount | None = None
    """The sum of its values; None if it has no numbers, or the caller may not see it."""
    total_b: Amount | None = None

    @property
    def has_totals(self) -> bool:
        """Whether it was added up."""
        return self.total_a is not None

    @property
    def difference(self) -> Amount | None:
        """The second total without the first."""
        if self.total_a is None or self.total_b is None:
            return None
        if isinstance(self.total_a, Decimal) and isinstance(self.total_b, Decimal):
            return exact_difference(self.total_a, self.total_b)
        return float(self.total_b) - float(self.total_a)

    def to_json(self) -> dict[str, object]:
        """The form of `clew compare --json`."""
        totals = (self.total_a, self.total_b, self.difference)
        return {
            "name": self.name,
            "type": str(self.type_b),
            "changed": self.changed,
            **dict(zip(("total_a", "total_b", "difference"), map(_json_amount, totals), strict=True)),
        }


def exact_difference(before: Decimal, after: Decimal) -> Decimal:
    """The second number without the first, with all digits."""
    with localcontext(prec=100):
        return after - before


@dataclass(frozen=True, slots=True)
class NotCompared:
    """A column that was left out, and why."""

    column: str
    because: str


@dataclass(frozen=True, slots=True)
class ComparisonCounts:
    """How many rows there are, and how many differ."""

    rows_a: int
    rows_b: int
    only_in_a: int
    only_in_b: int
    changed: int
    repeated_keys: int
    """Keys that several rows of one run have."""

    @property
    def same(self) -> int:
        """Rows that both runs have, with the same values."""
        return self.rows_a - self.only_in_a - self.changed

    @property
    def is_same(self) -> bool:
        """Whether no row differs."""
        return not (self.only_in_a or self.only_in_b or self.changed)


@dataclass(frozen=True, slots=True)
class RunComparison:
    """In what the second run differs from the first."""

    run_a: str
    run_b: str
    point_a: Point
    point_b: Point
    where: str | None
    kinds: tuple[RowKind, ...]
    counts: ComparisonCounts
    columns: tuple[ColumnTotals, ...]
    columns_only_in_a: tuple[str, ...]
    columns_only_in_b: tuple[str, ...]
    not_compared: tuple[NotCompared, ...]
    rows: tuple[DifferingRow, ...]
    """A page of the rows that differ."""
    has_more: bool
    offset: int = 0

    @property
    def is_same(self) -> bool:
        """Whether the runs have the same rows."""
        return self.counts.is_same

    @property
    def next_offset(self) -> int | None:
        """Where the next page starts."""
        return self.offset + len(self.rows) if self.has_more else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the reader must know about how rows were matched."""
        found = [
            f"{kind.name} have no natural key: they are matched by all their values, so that a changed row is "
            "one that only the first run has and one that only the second has"
            for kind in self.kinds
            if not kind.has_key
        ]
        if self.counts.repeated_keys:
            found.append(
                f"{self.counts.repeated_keys:,} keys are those of several rows: equal rows are matched first, "
                "the others in their order"
            )
        return tuple(found)

    def to_json(self) -> dict[str, object]:
        """The form of `clew compare --json`."""
        counts = self.counts
        return {
            "run_a": self.run_a,
            "run_b": self.run_b,
            "at_a": self.point_a.to_json(),
            "at_b": self.point_b.to_json(),
            "where": self.where,
            "matching": [kind.to_json() for kind in self.kinds],
            "rows_a": counts.rows_a,
            "rows_b": counts.rows_b,
            "only_in_a": counts.only_in_a,
            "only_in_b": counts.only_in_b,
            "changed": counts.changed,
            "same": counts.same,
            "repeated_keys": counts.repeated_keys,
            "is_same": self.is_same,
            "columns": [column.to_json() for column in self.columns],
            "columns_only_in_a": list(self.columns_only_in_a),
            "columns_only_in_b": list(self.columns_only_in_b),
            "not_compared": [{"column": each.column, "because": each.because} for each in self.not_compared],
            "notes": list(self.notes),
            "rows": [row.to_json() for row in self.rows],
            "has_more": self.has_more,
            "next_offset": self.next_offset,
        }

    def to_arrow(self) -> "pa.Table":
        """The rows that differ: what they are, their keys, and every column before and after."""
        import pyarrow as pa

        from clew.trace.json_values import arrow_type, table_of

        keys = dict.fromkeys(name for kind in self.kinds for name in kind.key)
        seen = [name for name in keys if any(name in row.key for row in self.rows)]
        return table_of(
            [
                ("change", pa.string(), [row.change for row in self.rows]),
                ("row_a", pa.string(), [row.row_a for row in self.rows]),
                ("row_b", pa.string(), [row.row_b for row in self.rows]),
                ("differs", pa.list_(pa.string()), [list(row.columns) for row in self.rows]),
                *((f"key.{name}", *_key_column([row.key.get(name) for row in self.rows])) for name in seen),
                *(
                    (f"{side}.{column.name}", arrow_type(type_), [_of(row, column.name, side) for row in self.rows])
                    for column in self.columns
                    for side, type_ in (("old", column.type_a), ("new", column.type_b))
                ),
            ]
        )

    def to_csv(self) -> bytes:
        """The same as a CSV file; the columns that differ are named with a blank between them."""
        import pyarrow as pa
        from pyarrow import csv

        sink, table = pa.BufferOutputStream(), self.to_arrow()
        differs = pa.array([" ".join(names) for names in table["differs"].to_pylist()], pa.string())
        csv.write_csv(table.set_column(table.column_names.index("differs"), "differs", differs), sink)
        return bytes(sink.getvalue())

    def to_parquet(self) -> bytes:
        """The same as a Parquet file."""
        import pyarrow as pa
        from pyarrow import parquet

        sink = pa.BufferOutputStream()
        parquet.write_table(self.to_arrow(), sink)
        return bytes(sink.getvalue())

    def to_pandas(self) -> "pd.DataFrame":
        """The same as a data frame; pandas must be installed."""
        return data_frame(self.to_arrow())

    def _repr_html_(self) -> str:
        counts = self.counts
        caption = (
            f"{self.run_a[:8]} and {self.run_b[:8]}: {counts.changed:,} rows changed, {counts.only_in_a:,} only in the "
            f"first, {counts.only_in_b:,} only in the second, {counts.same:,} the same"
        )
        totals = [
            [each.name, _amount(each.total_a), _amount(each.total_b), _amount(each.difference)]
            for each in self.columns
            if each.has_totals
        ]
        rows = [
            [row.change, ", ".join(f"{name} {shown(value)}" for name, value in row.key.items()), _changes(row)]
            for row in self.rows
        ]
        return Html(
            html_table(caption, ["total of", "first", "second", "difference"], totals)
            + html_table("", ["change", "key", "columns"], rows)
        )


def _key_column(values: list[Value]) -> "tuple[pa.DataType, list[Value]]":
    import pyarrow as pa

    return pa.array(values).type, values


def _of(row: DifferingRow, column: str, side: str) -> Value:
    diff = row.columns.get(column)
    return None if diff is None else (diff.old if side == "old" else diff.new)


def _changes(row: DifferingRow) -> str:
    return ", ".join(f"{name} {shown(each.old)} -> {shown(each.new)}" for name, each in row.columns.items())


def _amount(value: Amount | None) -> str:
    return "" if value is None else shown(value)


def _json_amount(value: Amount | None) -> JsonValue:
    return json_value(value)
