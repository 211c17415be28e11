"""Resolvers: rules that turn a table and a period into the location of the data."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from clew.definitions.dataset import Status
from clew.definitions.expression_text import ExpressionText
from clew.definitions.option_maps import options_of
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
    Record,
    Tagged,
    Whole,
    key,
    record,
)
from clew.definitions.shapes.scalars import format_of_path
from clew.definitions.yaml_scalars import Scalar

ANY_LEVEL = "any"


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
        "csv, jsonl, parquet, or any other Spark format; by default derived from the suffix of the path.",
        default=None,
    )
    options: Mapping[str, Scalar] = key(
        options_of("options"),
        "Options of the format; for csv: header, delimiter, encoding, null_value, quote.",
        default_factory=dict,
    )

    @property
    def file_format(self) -> str:
        """The format, by the suffix of the path where it is not given."""
        return self.format or format_of_path(self.path)


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
