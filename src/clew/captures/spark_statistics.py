"""Statistics of rows that lie nowhere: Spark counts them where it computes them, and only the numbers are kept.

The numbers are those that `statistics` finds in files: the values of every column are counted, and the counts tell the
least and the greatest, the quantiles, the most frequent and how many differ.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import or_
from typing import Any

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from clew.captures.statistics import (
    NUMBERS,
    QUANTILES,
    SCALES,
    Bin,
    ColumnStatistics,
    Statistics,
    TopValue,
    is_added_exactly,
    mean_of,
)
from clew.engine.sql import quoted
from clew.lang.types import Kind, Type
from clew.trace.json_values import JsonValue, json_value, values_of

_AT_ONCE = 16
"""Columns that one query counts: it takes every row as often as there are columns."""
_MEASURE, _COUNT, _GROUP = "__measure", "__count", "__group"


def statistics_in_spark(
    rows: DataFrame, columns: Sequence[tuple[str, Type]], *, bins: int = 10, top: int = 5
) -> Statistics:
    """Statistics of columns of rows, which are written nowhere."""
    total, sums = _added_up(rows, columns)
    found = list[ColumnStatistics]()
    for start in range(0, len(columns), _AT_ONCE):
        some = columns[start : start + _AT_ONCE]
        values = _picked(rows, some, top)
        bounds = {index: (each[0]["low"], each[0]["high"]) for index, each in values.items()}
        histograms = _histograms(rows, some, bounds, bins)
        for index, (name, type_) in enumerate(some):
            bounded = histograms.get(index, {})
            spread = tuple(_bins(*bounds[index], bounded, bins)) if bounded else ()
            found.append(_column(name, type_, total, sums.get(name), values.get(index, ()), spread, top))
    return Statistics(total, tuple(found))


def _picked(rows: DataFrame, columns: Sequence[tuple[str, Type]], top: int) -> dict[int, list[Mapping[str, Any]]]:
    """For each column with values, those that matter, with what is known of all."""
    names = [f"c{index}" for index in range(len(columns))]
    chosen = rows.select(*(F.col(quoted(name)).alias(short) for short, (name, _) in zip(names, columns, strict=True)))
    grouped = chosen.groupingSets([[F.col(name)] for name in names], *names).agg(
        F.grouping_id().alias(_GROUP), F.count(F.lit(1)).alias(_COUNT)
    )
    measures = [_measure(F.col(short), type_) for short, (_, type_) in zip(names, columns, strict=True)]
    present = grouped.where(reduce(or_, (F.col(name).isNotNull() for name in names))).withColumn(
        _MEASURE, F.coalesce(*measures, F.lit(None).cast("double"))
    )
    finite = F.when(~F.isnan(_MEASURE) & (F.abs(_MEASURE) < F.lit(float("inf"))), F.col(_MEASURE))
    everything = Window.partitionBy(_GROUP)
    in_order = everything.orderBy(*names).rowsBetween(Window.unboundedPreceding, Window.currentRow)
    frequent = everything.orderBy(F.desc(_COUNT), *names)
    known = present.select(
        "*",
        F.sum(_COUNT).over(in_order).alias("upto"),
        F.sum(_COUNT).over(everything).alias("present"),
        F.count(F.lit(1)).over(everything).alias("distinct"),
        F.min(finite).over(everything).alias("low"),
        F.max(finite).over(everything).alias("high"),
        F.row_number().over(frequent).alias("rank"),
    )
    before = F.col("upto") - F.col(_COUNT)
    is_quantile = [(F.col("upto") >= _position(share)) & (before < _position(share)) for share in QUANTILES]
    matters = (F.col("rank") <= top) | (before == 0) | (F.col("upto") == F.col("present")) | reduce(or_, is_quantile)
    table = known.where(matters).drop(_MEASURE).toArrow()
    plain = table.drop_columns(names).to_pylist()
    groups = {_group_of(index, len(names)): index for index in range(len(names))}
    typed = [values_of(table[short], type_) for short, (_, type_) in zip(names, columns, strict=True)]
    picked = dict[int, list[Mapping[str, Any]]]()
    for number, each in enumerate(plain):
        index = groups[each[_GROUP]]
        picked.setdefault(index, []).append({**each, "value": typed[index][number]})
    return {index: sorted(each, key=lambda one: one["upto"]) for index, each in picked.items()}


def _added_up(rows: DataFrame, columns: Sequence[tuple[str, Type]]) -> tuple[int, dict[str, Any]]:
    """How many rows there are, and the sums of columns with numbers: exact where they have room."""
    numbers = [(name, type_) for name, type_ in columns if type_.kind in NUMBERS]
    sums = [F.try_sum(_exact(F.col(quoted(name)), type_)).alias(f"c{at}") for at, (name, type_) in enumerate(numbers)]
    [found] = rows.agg(F.count(F.lit(1)).alias("rows"), *sums).collect()
    return int(found["rows"]), {name: found[f"c{at}"] for at, (name, _) in enumerate(numbers)}


def _exact(column: Column, type_: Type) -> Column:
    """A number with room for the sum of many."""
    return column.cast(f"decimal(38,{type_.scale})" if is_added_exactly(type_) else "double")


def _group_of(index: int, count: int) -> int:
    """The number that Spark gives to the groups of one column: a bit is set for each column that is not it."""
    return ((1 << count) - 1) ^ (1 << (count - 1 - index))


def _position(share: float) -> Column:
    """The position, from 1 on, of the value below which so many lie."""
    present = F.col("present").cast("double")
    return F.greatest(F.lit(1.0), present - F.floor(present - F.lit(share) * present))


def _measure(column: Column, type_: Type) -> Column:
    """A value as a number, days and moments as seconds since 1970; nothing for what has no scale."""
    if type_.kind is Kind.DATE:
        return F.unix_date(column).cast("double") * F.lit(86400.0)
    if type_.kind is Kind.TIMESTAMP:
        return F.unix_micros(column.cast("timestamp_ltz")).cast("double") / F.lit(1e6)
    return column.cast("double") if type_.kind in NUMBERS else F.lit(None).cast("double")


def _column(
    name: str,
    type_: Type,
    total: int,
    added_up: float | Decimal | None,
    picked: Sequence[Mapping[str, Any]],
    spread: tuple[Bin, ...],
    top: int,
) -> ColumnStatistics:
    if not picked:
        return ColumnStatistics(name, str(type_), total, total, 0)
    present = int(picked[0]["present"])
    frequent = sorted((each for each in picked if each["rank"] <= top), key=lambda each: int(each["rank"]))
    return ColumnStatistics(
        name=name,
        type=str(type_),
        rows=total,
        nulls=total - present,
        distinct=int(picked[0]["distinct"]),
        min=json_value(picked[0]["value"]),
        max=json_value(picked[-1]["value"]),
        mean=mean_of(added_up, present),
        quantiles=_quantiles(picked, present) if type_.kind in SCALES else None,
        top=tuple(TopValue(json_value(each["value"]), int(each[_COUNT])) for each in frequent),
        histogram=spread,
    )


def _quantiles(picked: Sequence[Mapping[str, Any]], present: int) -> dict[str, JsonValue]:
    found = dict[str, JsonValue]()
    for share in QUANTILES:
        position = max(1, present - int(present - share * present))
        value = next(each["value"] for each in picked if each["upto"] >= position)
        found[f"p{round(share * 100):02}"] = json_value(value)
    return found


def _histograms(
    rows: DataFrame, columns: Sequence[tuple[str, Type]], bounds: Mapping[int, tuple[Any, Any]], bins: int
) -> dict[int, dict[int, int]]:
    """For each column with a scale, how many values lie in each bin."""
    positions = list[Column]()
    for index, (low, high) in bounds.items():
        name, type_ = columns[index]
        if type_.kind not in SCALES or low is None:
            continue
        measured = _measure(F.col(quoted(name)), type_)
        is_finite = ~F.isnan(measured) & (F.abs(measured) < F.lit(float("inf")))
        width = (high - low) / bins or 1.0
        position = F.least(F.lit(bins - 1), F.greatest(F.lit(0), F.floor((measured - F.lit(low)) / F.lit(width))))
        place = F.when(is_finite, position.cast("int"))
        positions.append(F.struct(F.lit(index).alias("column"), place.alias("position")))
    if not positions:
        return {}
    placed = (
        rows.select(F.explode(F.array(*positions)).alias("placed")).select("placed.*").where("position IS NOT NULL")
    )
    found = dict[int, dict[int, int]]()
    for each in placed.groupBy("column", "position").count().collect():
        found.setdefault(each["column"], {})[each["position"]] = int(each["count"])
    return found


def _bins(low: float, high: float, counts: Mapping[int, int], bins: int) -> Iterator[Bin]:
    if low == high:
        yield Bin(low, high, sum(counts.values()))
        return
    width = (high - low) / bins
    for index in range(bins):
        yield Bin(low + width * index, high if index == bins - 1 else low + width * (index + 1), counts.get(index, 0))
