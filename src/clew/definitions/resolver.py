"""Resolvers: rules that turn a table and a period into the location of the data."""

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from clew.definitions.dataset import Status
from clew.definitions.expression_text import ExpressionText
from clew.definitions.file_options import FILE_OPTION_MAP, OWN_FORMATS, TEXT_FORMATS, own_format, problems_of_options
from clew.definitions.file_reading import BadRows, ColumnReading, ValueReading
from clew.definitions.nodes import node_at
from clew.definitions.shapes import (
    EXPRESSION,
    FLAG,
    NAME,
    SLUG,
    TEMPLATE,
    TEXT,
    Choice,
    ConstantShape,
    Definition,
    ListOf,
    Located,
    MapOf,
    Record,
    Tagged,
    Whole,
    key,
    record,
)
from clew.definitions.shapes.scalars import format_of_path
from clew.definitions.yaml_scalars import Scalar
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE, MISSING_KEY

ANY_LEVEL = "any"

_OF_TEXTS = ("format", "decimal_mark", "thousands_mark", "true_values", "false_values", "nulls", "trim")
_OF_POSITIONS = ("start", "width")
_COMPRESSED = frozenset({".gz", ".bz2", ".xz", ".zst", ".zip"})


@record("a path strategy")
class PathStrategy(Located):
    """The data is in files."""

    type: Literal["path"] = key(ConstantShape("path"), "The data is in files.")
    datasource_id: str = key(NAME, "The files datasource.")
    path: str = key(
        TEMPLATE,
        "The path below the root of the datasource, with * for any name and placeholders such as {period} and {table}.",
    )
    format: str | None = key(
        NAME,
        "csv, jsonl, fixed_width, xlsx, parquet, or any other Spark format; by default derived from the suffix of the "
        "path.",
        default=None,
    )
    options: Mapping[str, Scalar] = key(
        FILE_OPTION_MAP,
        "Options of the format, such as delimiter, encoding and skip_lines of csv.",
        default_factory=dict,
    )
    values: ValueReading = key(
        Record(ValueReading),
        "How values are written in all columns, unless `columns` says otherwise.",
        default_factory=ValueReading,
    )
    columns: Mapping[str, ColumnReading] = key(
        MapOf(Record(ColumnReading), "columns"),
        "How columns are written, and what the file calls them, by the name of the dataset's column.",
        default_factory=dict,
    )
    bad_rows: BadRows = key(
        Choice(BadRows),
        "What happens to rows that are not as the dataset says: fail stops the run, null empties values that do not "
        "fit, quarantine keeps the rows apart.",
        default=BadRows.FAIL,
    )
    corrections: str | None = key(
        TEMPLATE,
        "The path of a CSV file with corrected rows for those in quarantine, as `clew quarantine --export` writes it.",
        default=None,
    )

    @property
    def file_format(self) -> str:
        """The format, by the suffix of the path where it is not given."""
        return self.format or _format_of_source(self.path)

    def check(self) -> Iterator[Diagnostic]:
        """Options, columns and positions are those of the format."""
        format_ = own_format(self.file_format)
        yield from problems_of_options(format_, self.options, node_at(self.node, ("options",)))
        if format_ not in OWN_FORMATS:
            yield from self._not_for(format_, ("values", "columns", "bad_rows", "corrections"))
            return
        for name, column in (*self.columns.items(), ("", self.values)):
            where = ("columns", name) if name else ("values",)
            for each in _given(column, _OF_TEXTS) if format_ not in TEXT_FORMATS else ():
                problem = f"{each} is for {', '.join(TEXT_FORMATS)}; the format here is {format_}"
                yield INVALID_VALUE.at(self.place(*where, each), problem=problem, hint="remove it")
            for each in _given(column, _OF_POSITIONS) if format_ != "fixed_width" else ():
                problem = f"{each} is for fixed_width; the format here is {format_}"
                yield INVALID_VALUE.at(self.place(*where, each), problem=problem, hint="remove it")
        if format_ == "fixed_width":
            yield from self._positions()
        if self.corrections is not None and self.bad_rows is not BadRows.QUARANTINE:
            problem = "corrections are for rows in quarantine"
            yield INVALID_VALUE.at(self.place("corrections"), problem=problem, hint="set `bad_rows: quarantine`")

    def _not_for(self, format_: str, names: tuple[str, ...]) -> Iterator[Diagnostic]:
        for name in _given(self, names):
            problem = f"{name} is for {', '.join(OWN_FORMATS)}; the format here is {format_}"
            yield INVALID_VALUE.at(self.place_of_key(name), problem=problem, hint="remove it")

    def _positions(self) -> Iterator[Diagnostic]:
        if not self.columns:
            hint = "write for example {id: {start: 1, width: 8}}"
            yield MISSING_KEY.at(self.span, key="columns", where=" in a fixed_width file", hint=hint)
        for name, column in self.columns.items():
            for each in ("start", "width"):
                if getattr(column, each) is None:
                    yield MISSING_KEY.at(column.span, key=each, where=f' in the column "{name}"')
            if column.source is not None:
                problem = "a fixed_width file has no names of columns"
                yield INVALID_VALUE.at(self.place("columns", name, "from"), problem=problem, hint="remove it")


@record("a table strategy")
class TableStrategy(Located):
    """The data is in a table of a database or of a catalog."""

    type: Literal["table"] = key(ConstantShape("table"), "The data is in a table of a database or of a catalog.")
    datasource_id: str = key(NAME, "The database or catalog datasource.")
    table: str = key(
        TEMPLATE,
        "The table, with placeholders such as {period} and {table}; for a catalog also schema.table or "
        "catalog.schema.table.",
    )


def _format_of_source(path: str) -> str:
    """By the suffix; that of a compression, as in claims.csv.gz, is not counted."""
    named = PurePosixPath(path)
    if named.suffix.lower() in _COMPRESSED:
        named = named.with_suffix("")
    return "xlsx" if named.suffix.lower() == ".xlsx" else format_of_path(str(named))


def _given(holder: Located, names: tuple[str, ...]) -> list[str]:
    """Those of the keys that are not left out."""
    keys = {key.attribute: key for key in holder.keys.values()}
    return [
        name for name in names if name in keys and getattr(holder, name) not in (keys[name].default, {}, ValueReading())
    ]


Strategy: TypeAlias = PathStrategy | TableStrategy

STRATEGY: Tagged[Strategy] = Tagged(
    "a strategy", "type", {"path": Record(PathStrategy), "table": Record(TableStrategy)}
)


@record("a rule")
class Rule(Located):
    """The location of data, for the tables and periods that the rule applies to. The first rule that applies counts."""

    name: str = key(NAME, "What the rule is called in messages.")
    when: ExpressionText | None = key(
        EXPRESSION,
        "When the rule applies: an expression over period.identifier, period.level, period.start_date, "
        "period.end_date, dataset.id, dataset.name and table.name. By default it always applies.",
        default=None,
    )
    data_level: str = key(NAME, "The calendar level of the data, or any.", default=ANY_LEVEL)
    strategy: Strategy = key(STRATEGY, "Where the data is.")


@record("a resolver")
class Resolver(Definition):
    """Rules for where the data of a table is for a period."""

    id: str = key(SLUG, "The id, unique among resolvers.")
    name: str = key(NAME, "The name; by default the id.", same_as="id")
    description: str = key(TEXT, "What the resolver is for.", default="")
    version: int = key(Whole(1), "The version of the definition.", default=1)
    status: Status = key(Choice(Status), "Only an active resolver is used.", default=Status.ACTIVE)
    is_default: bool = key(FLAG, "Whether datasets that name no resolver use this one.", default=False)
    rules: tuple[Rule, ...] = key(ListOf(Record(Rule), "rules", at_least=1), "The rules, tried in this order.")
