"""Statistics of columns: what is in them, in a few numbers that are the same each time."""

# ruff: noqa: S608 - values are bound and names are quoted by `clew.trace.sql`

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from clew.captures.captured_rows import Questions, questions
from clew.deferred import dataclass
from clew.events.codec import decode, encode
from clew.lang.types import Kind, Type
from clew.trace.json_values import JsonValue, json_value
from clew.trace.sql import Sql, quoted

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
NUMBERS = frozenset({Kind.INTEGER, Kind.DECIMAL, Kind.DOUBLE})
SCALES = NUMBERS | {Kind.DATE, Kind.TIMESTAMP}
"""Kinds that have a histogram."""
_SUMMABLE = 29


@dataclass(frozen=True, slots=True)
class Bin:
    """How many values lie from one bound to the next; the last bin has its upper bound too."""

    low: JsonValue
    high: JsonValue
    count: int


@dataclass(frozen=True, slots=True)
class TopValue:
    """A frequent value."""

    value: JsonValue
    count: int


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """A column in numbers. Decimals and days are texts, so that nothing of them is lost."""

    name: str
    type: str
    rows: int
    nulls: int
    distinct: int
    min: JsonValue = None
    max: JsonValue = None
    mean: JsonValue = None
    quantiles: Mapping[str, JsonValue] | None = None
    top: tuple[TopValue, ...] = ()
    histogram: tuple[Bin, ...] = ()


@dataclass(frozen=True, slots=True)
class Statistics:
    """The columns of some rows."""

    rows: int
    columns: tuple[ColumnStatistics, ...]

    def column(self, name: str) -> ColumnStatistics | None:
        """The statistics of a column."""
        return next((column for column in self.columns if column.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        document: dict[str, Any] = encode(self)
        return document

    @classmethod
    def from_json(cls, document: object) -> "Statistics":
        """The statistics that `to_json` gave."""
        return decode(cls, document)


def statistics_of(rows: Sql, columns: Sequence[tuple[str, Type]], *, bins: int = 10, top: int = 5) -> Statistics:
    """Statistics of the columns of a query, which is run once."""
    with questions() as asked:
        kept = asked.keep("described", rows)
        found = asked.records(_summary(kept, columns))[0]
        total = int(found["n"])
        return Statistics(
            total,
            tuple(
                ColumnStatistics(
                    name=name,
                    type=str(type_),
                    rows=total,
                    nulls=total - int(found[f"present{index}"]),
                    distinct=int(found[f"distinct{index}"]),
                    min=json_value(found[f"min{index}"]),
                    max=json_value(found[f"max{index}"]),
                    mean=mean_of(found[f"sum{index}"], int(found[f"present{index}"])),
                    quantiles=_named(found[f"quantiles{index}"]),
                    top=_top(asked, kept, name, top),
                    histogram=_histogram(asked, kept, name, type_, bins) if type_.kind in SCALES else (),
                )
                for index, (name, type_) in enumerate(columns)
            ),
        )


def mean_of(total: float | int | Decimal | None, count: int) -> JsonValue:
    """A mean of twelve digits. Numbers are added exactly where there is room, so that small means are right too."""
    if total is None or not count:
        return None
    mean = total / count if isinstance(total, float) else Decimal(total) / count
    return json_value(float(f"{mean:.12g}"))


def is_added_exactly(type_: Type) -> bool:
    """Whether the sum of a billion numbers of a type has room in 38 digits."""
    return type_.kind is Kind.INTEGER or (type_.kind is Kind.DECIMAL and type_.precision <= _SUMMABLE)


def _summary(rows: Sql, columns: Sequence[tuple[str, Type]]) -> Sql:
    """One query for what takes one pass over all columns."""
    shares = ", ".join(map(str, QUANTILES))
    asked = ["count(*) AS n"]
    for index, (name, type_) in enumerate(columns):
        column = quoted(name)
        number = column if is_added_exactly(type_) else f"{column}::DOUBLE"
        total = f"sum({number})" if type_.kind in NUMBERS else "NULL"
        quantiles = f"quantile_disc({column}, [{shares}])" if type_.kind in SCALES else "NULL"
        asked += [
            f"count({column}) AS present{index}",
            f"count(DISTINCT {column}) AS distinct{index}",
            f"min({column}) AS min{index}",
            f"max({column}) AS max{index}",
            f"{total} AS sum{index}",
            f"{quantiles} AS quantiles{index}",
        ]
    return f"SELECT {', '.join(asked)} FROM (" + rows + ")"


def _named(quantiles: Sequence[Any] | None) -> dict[str, JsonValue] | None:
    if not quantiles:
        return None
    return {f"p{round(share * 100):02}": json_value(value) for share, value in zip(QUANTILES, quantiles, strict=True)}


def _top(asked: Questions, rows: Sql, name: str, count: int) -> tuple[TopValue, ...]:
    column = quoted(name)
    found = asked.records(
        f"SELECT {column} AS value, count(*) AS n FROM (" + rows + f") WHERE {column} IS NOT NULL "
        f"GROUP BY {column} ORDER BY n DESC, value LIMIT {int(count)}"
    )
    return tuple(TopValue(json_value(each["value"]), int(each["n"])) for each in found)


def _histogram(asked: Questions, rows: Sql, name: str, type_: Type, bins: int) -> tuple[Bin, ...]:
    measured = _measure(quoted(name), type_)
    of_finite = "FROM (" + rows + f") WHERE isfinite({measured})"
    [bounds] = asked.records(f"SELECT min({measured}) AS low, max({measured}) AS high, count(*) AS n " + of_finite)
    low, high = bounds["low"], bounds["high"]
    if low is None or high is None:
        return ()
    if low == high:
        return (Bin(low, high, int(bounds["n"])),)
    width = (high - low) / bins
    position = Sql(f"least({bins - 1}, greatest(0, floor(({measured} - ?) / ?)::BIGINT))", (low, width))
    counted = asked.records("SELECT " + position + " AS position, count(*) AS n " + of_finite + " GROUP BY ALL")
    counts = {int(each["position"]): int(each["n"]) for each in counted}
    return tuple(
        Bin(low + width * index, high if index == bins - 1 else low + width * (index + 1), counts.get(index, 0))
        for index in range(bins)
    )


def _measure(column: str, type_: Type) -> str:
    """A value as a number: days and moments as seconds since 1970."""
    if type_.kind in {Kind.DATE, Kind.TIMESTAMP}:
        return f"epoch({column}::TIMESTAMP)"
    return f"{column}::DOUBLE"
