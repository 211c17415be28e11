"""Turns rows as read into rows as the dataset declares them, and finds everything wrong with them in one pass.

No two rows of a period may have the same natural key.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F

from clew.deferred import dataclass
from clew.definitions import Period, PeriodTree
from clew.definitions.dataset import PERIOD_COLUMN, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN
from clew.diagnostics import UserError
from clew.engine.loading.conversions import BROKEN, RawCell, RawRows, TextCell
from clew.engine.loading.periods import first_day_of_text, is_no_time, period_condition
from clew.engine.loading.sources import NO_JSON_OBJECT, NOT_UTF8, mismatch, place, shown
from clew.engine.names import named
from clew.engine.parts import DraftedPart, arrow_tables, sources_of_files
from clew.engine.spark_internals import select_sql
from clew.engine.sql import quoted, spark_type
from clew.engine.sql.literals import text_literal
from clew.engine.table_rows import is_of_table, table_rows
from clew.lang.types import DATE, STRING
from clew.plan.datasets import DatasetColumn, DatasetUse
from clew.plan.file_rules import BadRowsName
from clew.storage.parts import SOURCE_FILE, SOURCE_LINE, SOURCE_ROW_ID
from clew.storage.quarantine import CORRECTION, PROBLEMS, RECORD, TEXTS

_HINT = "correct the line; a field with a line break inside needs the option `multiline: true`"
_HINTS = {
    NOT_UTF8: "save the file as UTF-8; for csv, set the option `encoding` of the rule to use another",
    NO_JSON_OBJECT: "write one JSON object on each line",
}
"""What to do about a line, by what is wrong with it."""
_QUARANTINE = "bad_rows: quarantine"
_COUNTS = "__counts"
_FIRST = "__first"
_RECORD_TEXT = "__record_text"
_TEMPORAL = (PERIOD_COLUMN, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN)

Fault = Literal["broken", "not a value", "missing", "no time"]


@dataclass(frozen=True, slots=True)
class _Check:
    """Something that can be wrong with a row."""

    fault: Fault
    column: DatasetColumn | None
    condition: str
    shown: str
    """SQL for what a message quotes."""
    text: str = "CAST(NULL AS STRING)"
    """SQL for the value itself."""
    is_emptied: bool = False
    """Whether it is no fault, since the value becomes NULL."""

    @property
    def reason(self) -> str:
        """What is wrong, without the value. A row that cannot be read says itself why."""
        assert self.column is not None  # noqa: S101 - asked of values only
        match self.fault:
            case "missing":
                return "it must not be empty"
            case "no time":
                return "it is neither a date nor a period"
            case _:
                return f"it is not {_article(self.column)}"


@dataclass(frozen=True, slots=True)
class Findings:
    """What the pass found."""

    rows_read: int
    rows_wrong: int
    without_line: int
    sum_of_lines: int | None
    """None where there are no numbers, or too many to add up."""
    first: Sequence[object] | None
    """File, line, number of the check and quotation of the first row that is wrong."""
    emptied: Mapping[str, int] = field(default_factory=dict)
    """How many values of each column did not fit and became NULL."""


class Checking:
    """The checks of one dataset, for one period, and what is done with rows that do not pass them."""

    def __init__(self, use: DatasetUse, period: Period, periods: PeriodTree, bad_rows: BadRowsName = "fail") -> None:
        self._use = use
        self._periods = periods
        self._bad_rows = bad_rows
        self._condition = period_condition(use, period, periods)
        self._observation = Observation()

    @property
    def columns(self) -> tuple[DatasetColumn, ...]:
        """The data columns, in the order in which they are written; `_period` is not among them."""
        return tuple(column for column in self._use.columns if column.name != PERIOD_COLUMN)

    def rows(self, raws: Sequence[RawRows]) -> DataFrame:
        """The rows that count, typed. What `findings` gives is known when they have been written."""
        checked = reduce(DataFrame.unionAll, (self._checked(raw) for raw in raws))
        emptied = [F.sum(F.col(name)).alias(name) for name in self._emptied_names()]
        observed = checked.observe(
            self._observation,
            F.count(F.lit(1)).alias("rows"),
            F.count(F.col(_FIRST)).alias("wrong"),
            F.count(F.col(SOURCE_LINE)).alias("numbered"),
            F.try_sum(SOURCE_LINE).alias("lines"),
            # As text: Spark 4.0 cannot observe a struct.
            F.to_json(F.min(F.col(_FIRST)), {"ignoreNullFields": "false"}).alias("first"),
            *emptied,
        )
        kept = observed.where(F.col(_COUNTS))
        if self._bad_rows == "quarantine":
            kept = kept.where(F.col(_FIRST).isNull())
        return kept.drop(_COUNTS, _FIRST, *self._emptied_names())

    def refused(self, raws: Sequence[RawRows], corrections: DataFrame | None) -> DataFrame:
        """The other rows, as a quarantine part has them."""
        rows = reduce(DataFrame.unionAll, (self._refused(raw) for raw in raws))
        if corrections is None:
            return rows.withColumn(CORRECTION, F.lit(None).cast("STRING"))
        return rows.join(F.broadcast(corrections), [SOURCE_FILE, SOURCE_LINE], "left")

    def _refused(self, raw: RawRows) -> DataFrame:
        names, typed = self._typed(raw)
        checks = self._checks(names, raw)
        problems = ", ".join(
            f"CASE WHEN {check.condition} THEN named_struct('column', {text_literal(check.column.name)}, "
            f"'value', {check.text}, 'reason', {text_literal(check.reason)}) END"
            for check in checks
            if check.column is not None
        )
        whole = f"named_struct('column', CAST(NULL AS STRING), 'value', CAST(NULL AS STRING), 'reason', {BROKEN})"
        listed = f"IF({BROKEN} IS NOT NULL, array({whole}), filter(array({problems}), each -> each IS NOT NULL))"
        texts = ", ".join(f"CAST({name} AS STRING)" for name in names.values())
        absent = ", ".join("CAST(NULL AS STRING)" for _ in names)
        is_wrong = " OR ".join(f"coalesce({check.condition}, FALSE)" for check in checks)
        # The fields of a row that cannot be taken apart may be those of other columns, which a role may see.
        return typed.where(is_wrong).selectExpr(
            *(named(f"IF({BROKEN} IS NULL, {quoted(each.name)}, NULL)", each.name) for each in self.columns),
            self._period_column(),
            SOURCE_FILE,
            SOURCE_LINE,
            named(listed, PROBLEMS),
            named(f"IF({BROKEN} IS NULL, array({texts}), array({absent}))", TEXTS),
            named(f"IF({BROKEN} IS NOT NULL, {_RECORD_TEXT}, NULL)", RECORD),
        )

    def _emptied_names(self) -> dict[str, str]:
        """The columns whose values may become NULL, by the name under which they are counted."""
        if self._bad_rows != "null":
            return {}
        columns = [column for column in self._use.columns if _may_be_emptied(column)]
        return {f"__e{index}": column.name for index, column in enumerate(columns)}

    def findings(self) -> Findings:
        """What was found while the rows were written."""
        found = self._observation.get
        return Findings(
            rows_read=int(found["rows"]),
            rows_wrong=int(found["wrong"]),
            without_line=int(found["rows"]) - int(found["numbered"]),
            sum_of_lines=found["lines"],
            first=None if found["first"] is None else tuple(json.loads(found["first"]).values()),
            emptied={column: int(found[name] or 0) for name, column in self._emptied_names().items() if found[name]},
        )

    def problem(self, findings: Findings, unit: str, *, offers_quarantine: bool = False) -> UserError | None:
        """What is wrong, by the first example; None where nothing is, or where such rows are kept apart."""
        if findings.first is None or self._bad_rows == "quarantine":
            return None
        file, line, number, quotation = findings.first
        check = self._checks(None, None)[int(str(number))]
        where = place(str(file), None if line is None else int(str(line)), unit)
        more = findings.rows_wrong - 1
        others = f"; {more} more {'row is' if more == 1 else 'rows are'} wrong" if more else ""
        told = _said(check, self._use, where, str(quotation), others)
        return _with_quarantine(told) if offers_quarantine else told

    def _checked(self, raw: RawRows) -> DataFrame:
        names, typed = self._typed(raw)
        checks = self._checks(names, raw)
        emptied = [f"CAST({check.condition} AS INT)" for check in checks if check.is_emptied]
        counted = zip(emptied, self._emptied_names(), strict=True)
        columns = [
            *(quoted(column.name) for column in self.columns),
            self._period_column(),
            *self._places(raw),
            _COUNTS,
            named(self._first(checks), _FIRST),
            *(named(f"coalesce({sql}, 0)", name) for sql, name in counted),
        ]
        return select_sql(typed, columns)

    @staticmethod
    def _places(raw: RawRows) -> list[str]:
        return [SOURCE_FILE, SOURCE_LINE, *([SOURCE_ROW_ID] if raw.has_row_ids else [])]

    def _typed(self, raw: RawRows) -> tuple[dict[str, str], DataFrame]:
        """Values first, then what depends on them, so that Spark calculates each value once."""
        names = {column.name: quoted(f"__r{index}") for index, column in enumerate(self._use.columns)}
        read = [f"{raw.cells[column].sql} AS {alias}" for column, alias in names.items()]
        texts = select_sql(raw.rows, [*self._places(raw), BROKEN, named(raw.record, _RECORD_TEXT), *read])
        values = {
            column.name: f"CAST({self._value(column, raw.cells[column.name], names)} AS {spark_type(column.type)})"
            for column in self._use.columns
        }
        typed = select_sql(texts, ["*", *(named(sql, name) for name, sql in values.items())])
        counts = f"{BROKEN} IS NULL" if self._condition is None else f"{BROKEN} IS NULL AND {self._condition}"
        return names, typed.selectExpr("*", named(counts, _COUNTS))

    def _value(self, column: DatasetColumn, cell: RawCell, names: dict[str, str]) -> str:
        raw = names[column.name]
        is_time = column.name in {PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN} and column.type == DATE
        if isinstance(cell, TextCell) and is_time and not cell.rules.formats:
            return first_day_of_text(raw, self._periods.periods)
        return cell.value(raw, column.type)

    def _period_column(self) -> str:
        if self._use.temporal_mode == "period":
            return PERIOD_COLUMN
        return named("CAST(NULL AS STRING)", PERIOD_COLUMN)

    def _first(self, checks: Sequence[_Check]) -> str:
        """SQL for file, line and what is wrong; NULL for good rows."""
        cases = " ".join(
            f"WHEN {check.condition} THEN named_struct('file', {SOURCE_FILE}, 'line', {SOURCE_LINE}, "
            f"'check', {number}, 'shown', {check.shown})"
            for number, check in enumerate(checks)
            if not check.is_emptied
        )
        return f"CASE {cases} END"

    def _checks(self, names: dict[str, str] | None, raw: RawRows | None) -> list[_Check]:
        """All checks in order: a broken line has no values, and values of rows that do not count do not matter."""
        checks = [_Check("broken", None, f"{BROKEN} IS NOT NULL", BROKEN)]
        temporal = [column for column in self._use.columns if column.name in _TEMPORAL]
        others = [column for column in self._use.columns if column.name not in _TEMPORAL]
        for column in temporal:
            checks += self._of_column(column, names, raw)
        checks += [
            replace(check, condition=f"{_COUNTS} AND {check.condition}")
            for column in others
            for check in self._of_column(column, names, raw)
        ]
        return checks

    def _of_column(self, column: DatasetColumn, names: dict[str, str] | None, rows: RawRows | None) -> list[_Check]:
        raw = names[column.name] if names else ""
        value = quoted(column.name)
        quotation = "'?'" if column.privacy else f"CAST({raw} AS STRING)"
        text = f"CAST({raw} AS STRING)"
        is_emptied = self._bad_rows == "null" and _may_be_emptied(column)
        condition = f"({raw} IS NOT NULL AND {value} IS NULL)"
        checks = [_Check("not a value", column, condition, quotation, text, is_emptied)]
        if not column.nullable:
            has_default = rows is not None and rows.cells[column.name].rules.default is not None
            checks.append(_Check("missing", column, "FALSE" if has_default else f"{raw} IS NULL", "''"))
        no_time = is_no_time(self._use, column.name, self._periods)
        if no_time is not None:
            checks.append(_Check("no time", column, f"({no_time})", quotation, text))
        return checks


def _may_be_emptied(column: DatasetColumn) -> bool:
    """Whether a value may become NULL: where none is needed, and where no type takes every text."""
    return column.nullable and column.name not in _TEMPORAL and column.type != STRING


def _said(check: _Check, use: DatasetUse, where: str, quotation: str, others: str) -> UserError:
    if check.column is None:
        hint = _HINTS.get(quotation, _HINT)
        return mismatch(f'{where}, cannot be read as a row of "{use.name}": {quotation}{others}', hint)
    name = f'column "{check.column.name}" of "{use.name}"'
    value = "a value" if check.column.privacy else shown(quotation)
    match check.fault:
        case "missing":
            return mismatch(f"{name} must not be empty, but is in {where}{others}")
        case "no time":
            return mismatch(f"{name}: {value} is neither a date nor a period, in {where}{others}")
        case _:
            meaning = None if check.column.privacy else _no_value_hint(value, where)
            return mismatch(f"{name}: {value} is not {_article(check.column)}, in {where}{others}", meaning)


def _with_quarantine(told: UserError) -> UserError:
    """The same problem, with the way to run without such rows."""
    said = told.diagnostic
    return mismatch(said.message, f"{said.hint}; `{_QUARANTINE}` in the rule keeps such rows apart")


def _no_value_hint(value: str, where: str) -> str | None:
    """A word in a text file often stands for no value."""
    is_word = not any(character.isdigit() for character in value)
    if not is_word or ".csv" not in where:
        return None
    return f"correct the value; if {value} stands for no value, set the option `null_value: {value}` of the rule"


def _article(column: DatasetColumn) -> str:
    return f"{'an' if str(column.type)[0] in 'aeio' else 'a'} {column.type}"


_FEW_ROWS = 100_000
"""Up to this many, keys are compared in this process, which is faster than Spark."""


def require_unique_key(spark: SparkSession, use: DatasetUse, drafted: DraftedPart, unit: str) -> None:
    """Raise where two rows have the same natural key, naming the key and both rows."""
    number = sum(file.rows for file in drafted.part.files)
    if not use.natural_key or number < 2:
        return
    names = _key_columns(use)
    if number <= _FEW_ROWS and _are_unique(drafted, names):
        return
    if is_of_table(drafted.part):
        rows = table_rows(spark, drafted.root, drafted.part, names)
    else:
        rows = spark.read.parquet(*sources_of_files(drafted.root, drafted.part))
    require_unique_rows(use, rows, unit)


def require_unique_rows(use: DatasetUse, rows: DataFrame, unit: str) -> None:
    """The same for rows with their places, however they are read."""
    if not use.natural_key:
        return
    names = _key_columns(use)
    keys = [quoted(name) for name in names]
    hashed = rows.select(F.xxhash64(*keys).alias("__hash"))
    suspects = [row[0] for row in hashed.groupBy("__hash").count().where("count > 1").limit(100).collect()]
    if not suspects:
        return
    origin = F.struct(F.col(SOURCE_FILE).alias("file"), F.col(SOURCE_LINE).alias("line"))
    twice = (
        rows.where(F.xxhash64(*keys).isin(suspects))
        .groupBy(*keys)
        .agg(F.count(F.lit(1)).alias("__rows"), F.min(origin).alias("__one"), F.max(origin).alias("__other"))
        .where("__rows > 1")
        .orderBy("__one")
        .limit(1)
        .collect()
    )
    if twice:
        row = twice[0]
        places = [place(row[name]["file"], row[name]["line"], unit) for name in ("__one", "__other")]
        count = row["__rows"]
        told = f'two rows of "{use.name}"' if count == 2 else f'{count} rows of "{use.name}"'
        where = f"{places[0]}, and {places[1]}"
        raise mismatch(f"{told} have the natural key {_shown_key(use, names, row)}: {where}", "remove one of them")


def _are_unique(drafted: DraftedPart, names: Sequence[str]) -> bool:
    columns = list(names)
    rows = pa.concat_tables(arrow_tables(drafted.root, drafted.part, columns))
    for index, each in enumerate(rows.schema):
        if pa.types.is_floating(each.type):
            rows = rows.set_column(index, each, _comparable(rows.column(index)))
    return bool(rows.group_by(columns).aggregate([]).num_rows == rows.num_rows)


def _comparable(doubles: pa.ChunkedArray) -> pa.ChunkedArray:
    """Doubles with one zero and one NaN. Arrow groups by their bits, of which both have several."""
    return pc.if_else(pc.is_nan(doubles), math.nan, pc.add(doubles, 0.0))


def _key_columns(use: DatasetUse) -> list[str]:
    """A key tells rows of one period apart; the same key may come again in the next."""
    by_folded = {column.name.casefold(): column.name for column in use.columns}
    names = [by_folded.get(name.casefold(), name) for name in use.natural_key]
    if use.temporal_mode == "period" and PERIOD_COLUMN not in names:
        names.append(PERIOD_COLUMN)
    return names


def _shown_key(use: DatasetUse, names: Sequence[str], row: Row) -> str:
    private = {column.name for column in use.columns if column.privacy}
    return ", ".join(f"{name} {'…' if name in private else shown(str(row[name]))}" for name in names)
