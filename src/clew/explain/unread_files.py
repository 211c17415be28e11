"""Looks for a row that a run did not load in files that it did not read, or read only in part, and says why.

First come the files that the run did read, then those that other rules name for its period, then those that rules name
for other periods, nearest first. The search is bounded, because someone is waiting for the answer. Files are read in
plain Python.
"""

# ruff: noqa: PLC0415 - Parquet is read only where there is some

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import date
from decimal import Decimal
from io import TextIOWrapper
from pathlib import Path

from clew import budgets
from clew.deferred import dataclass
from clew.definitions import FilesDatasource, Period, Resolver, WorkspaceDefinitions
from clew.definitions.dataset import PERIOD_COLUMN, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN
from clew.diagnostics import ClewError, PlainText, UserError
from clew.explain.why_not import Elsewhere
from clew.lang import Scope, Table, check_condition, parse
from clew.lang.conversion import given_value, to_text
from clew.lang.evaluation import Row, evaluator
from clew.lang.typed import Expression, Value, columns_of
from clew.lang.types import Type
from clew.plan.columns import SYSTEM_COLUMNS
from clew.plan.datasets import DatasetUse
from clew.plan.local_files import SourceFile
from clew.plan.names import name_of
from clew.plan.resolution import ResolvedSource, resolve, rules_passed_over
from clew.plan.row_periods import is_seen
from clew.storage.csv_records import opened_records
from clew.storage.source_files import RootOf, opened_source, source_files
from clew.trace.records import LINE
from clew.trace.records import Source as RowSource

READABLE = frozenset({"csv", "jsonl", "parquet"})
"""The formats that can be looked into."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """A row of a file."""

    line: int
    given: Mapping[str, object]
    unit: str = LINE

    def values(self, use: DatasetUse, names: frozenset[str]) -> dict[str, Value]:
        """The values of some columns of the dataset."""
        return {
            column.name: _value(self.given.get(column.name), column.type)
            for column in use.columns
            if column.name in names
        }


def rows_of_file(file: SourceFile, source: ResolvedSource, use: DatasetUse) -> Iterator[SourceRow]:
    """The rows of a file. OSError, ValueError or csv.Error where it is not what its rule says."""
    match source.format:
        case "csv":
            yield from _csv_rows(file, source.options, [column.name for column in use.columns])
        case "jsonl":
            with opened_source(file) as opened, TextIOWrapper(opened, encoding="utf-8", errors="replace") as lines:
                for number, line in enumerate(lines, 1):
                    given = json.loads(line, parse_float=Decimal) if line.strip() else None
                    if isinstance(given, dict):
                        yield SourceRow(number, given)
        case "parquet":
            import pyarrow.parquet as pq

            first = 1
            with opened_source(file) as opened:
                for batch in pq.ParquetFile(opened).iter_batches():
                    for offset, given in enumerate(batch.to_pylist()):
                        yield SourceRow(first + offset, given, "row")
                    first += batch.num_rows
        case _:
            raise ValueError(f"{source.format} cannot be searched")


def _csv_rows(file: SourceFile, options: Mapping[str, str], columns: list[str]) -> Iterator[SourceRow]:
    absent = options.get("null_value", "")
    names = columns
    with opened_records(file, options) as records:
        if options.get("header", "true").lower() == "true":
            first = next((record for record in records if any(record.fields)), None)
            names = [] if first is None else [name.strip() for name in first.fields]
        for record in records:
            pairs = zip(names, record.fields, strict=False)
            yield SourceRow(record.line, {name: None if text in {"", absent} else text for name, text in pairs})


def _value(given: object, type_: Type) -> Value:
    if given is None:
        return None
    try:
        return given_value(given, type_)
    except (ClewError, KeyError, TypeError, ValueError):
        return None


_MOST_BYTES = 32_000_000
_MOST_FILES = 200
_MOST_PERIODS = 24

_OWN = frozenset({PERIOD_COLUMN, PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN})


@dataclass(frozen=True, slots=True)
class _Place:
    """A source that may hold the row, and why the run has not loaded what is in it; None for one that it has read."""

    source: ResolvedSource
    reason: str | None


@dataclass(slots=True)
class UnreadFiles:
    """The files of a dataset, seen from a run that looked for a row and did not find it."""

    definitions: WorkspaceDefinitions
    root: Path
    """The folder of the workspace."""
    root_of: RootOf
    use: DatasetUse
    resolver: Resolver
    period: Period
    today: date
    not_looked_into: int = 0
    """Files that were too many or too large."""
    _bytes: int = 0
    _seen: set[str] = field(default_factory=set)

    def rows(self, where: str) -> Iterator[Elsewhere]:
        """The rows that match a condition over rows as they are loaded."""
        condition = self._condition(where)
        if condition is None:
            return
        for place in self._places():
            for file in self._files(place.source):
                if self._may_look_into(place.source, file):
                    yield from self._rows_in(file, place, condition)

    def _condition(self, where: str) -> Expression | None:
        types = {column.name: column.type for column in self.use.columns}
        scope = Scope((Table(self.use.table, {**types, **SYSTEM_COLUMNS}),))
        try:
            checked = check_condition(parse(PlainText(where, "<where>")), scope, "in a search")
        except UserError:
            return None
        if checked.expression is None or any(name == "_row_id" for _, name in columns_of(checked.expression)):
            return None
        return checked.expression

    # Which files

    def _places(self) -> Iterator[_Place]:
        periods = self.definitions.periods
        yield from (_Place(source, None) for source in self._sources(self.period))
        try:
            for sources, reason in rules_passed_over(self.use, self.resolver, self.period, periods, today=self.today):
                yield from (_Place(source, reason) for source in sources)
        except UserError:
            return
        for period in self._other_periods():
            for source in self._sources(period):
                reason = f'the rule "{source.rule}" reads this file for {period.identifier}'
                yield _Place(source, f"{reason}, and the run is for {self.period.identifier}")

    def _sources(self, period: Period) -> tuple[ResolvedSource, ...]:
        try:
            return resolve(self.use, self.resolver, period, self.definitions.periods, today=self.today)
        except UserError:
            return ()

    def _other_periods(self) -> list[Period]:
        """Periods like that of the run, the nearest first."""
        alike = [each for each in self.definitions.periods.periods if each.level == self.period.level]
        start = self.period.start_date
        others = sorted(
            (each for each in alike if each.identifier != self.period.identifier),
            key=lambda each: (abs((each.start_date - start).days), each.start_date),
        )
        return others[:_MOST_PERIODS]

    def _files(self, source: ResolvedSource) -> list[SourceFile]:
        """The files of a source on this machine; none if they are elsewhere, or gone."""
        datasource = self.definitions.datasource(source.datasource_id)
        if source.kind != "path" or not isinstance(datasource, FilesDatasource):
            return []
        try:
            return source_files(datasource, self.root, self.root_of, source)
        except UserError:
            return []

    def _may_look_into(self, source: ResolvedSource, file: SourceFile) -> bool:
        if file.path in self._seen:
            return False
        if source.format not in READABLE or len(self._seen) >= _MOST_FILES or self._bytes + file.size > _MOST_BYTES:
            self.not_looked_into += 1
            return False
        self._seen.add(file.path)
        self._bytes += file.size
        return True

    # Which rows

    def _rows_in(self, file: SourceFile, place: _Place, condition: Expression) -> Iterator[Elsewhere]:
        decide = evaluator(condition)
        named = frozenset(name for _, name in columns_of(condition))
        needed = named | _OWN | frozenset(self.use.natural_key)
        try:
            for row in rows_of_file(file, place.source, self.use):
                budgets.check()
                cells = row.values(self.use, needed)
                if place.source.holds_one_period and cells.get(PERIOD_COLUMN) is None:
                    cells[PERIOD_COLUMN] = place.source.period
                seen = Row(
                    {self.use.table: {PERIOD_COLUMN: None, "_labels": "", "_deleted": False, **cells}}, self.today
                )
                if decide(seen) is True:
                    yield self._found(file, row, place, cells)
        except (OSError, ValueError, LookupError, csv.Error):
            self.not_looked_into += 1

    def _found(self, file: SourceFile, row: SourceRow, place: _Place, cells: Mapping[str, Value]) -> Elsewhere:
        period = cells.get(PERIOD_COLUMN)
        return Elsewhere(
            period=None if period is None else str(period),
            label=name_of(cells, self.use.names),
            source=RowSource(self.use.dataset_id, file=file.shown, line=row.line, unit=row.unit),
            reason=place.reason or self._not_taken(cells),
        )

    def _not_taken(self, cells: Mapping[str, Value]) -> str:
        """Why a row of a file that the run has read was not loaded."""
        first_day = self.period.start_date.isoformat()
        if not is_seen(cells, self.use, self.period, self.definitions.periods):
            if self.use.temporal_mode == "bitemporal":
                begin, end = (cells.get(name) for name in (PERIOD_FROM_COLUMN, PERIOD_TO_COLUMN))
                until = f" until {to_text(end)}" if end is not None else ""
                since = f" from {to_text(begin)}" if begin is not None else ""
                return f"it is valid{since}{until}, and the run is for {first_day}"
            return f"the run takes the rows of {self.period.identifier} from this file"
        return "the file has it now, but did not have it when the run read it"
