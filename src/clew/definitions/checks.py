"""Checks: what must be true of the rows of a dataset, or of a project at one of its steps.

Each kind is one record, told apart by its key, and says in the expression language what it requires. Reading, messages,
JSON Schema, planning and the reference follow from these declarations.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, TypeAlias

from clew.definitions.controls import ToleranceShape
from clew.definitions.dataset_refs import DatasetRef
from clew.definitions.expression_text import ExpressionText
from clew.definitions.nodes import ListNode, MapNode, Node, ScalarNode
from clew.definitions.shapes import (
    ANY_SCALAR,
    COLUMN_TYPE,
    EXPRESSION,
    FLAG,
    NAME,
    SELECTOR,
    TEXT,
    ByKey,
    Choice,
    JsonSchema,
    ListOf,
    Located,
    MapOf,
    Record,
    Shape,
    TextOr,
    Whole,
    key,
    record,
    refused,
)
from clew.definitions.yaml_scalars import Scalar, scalar_value
from clew.diagnostics import Diagnostic
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.lang.literals import text_of_value
from clew.lang.types import Kind, Type

END, LOAD = "end", "load"
"""Where a check looks: after the last step, or at the rows as they were loaded."""


class Severity(StrEnum):
    """What a run does with a check that fails."""

    FAIL = "fail"
    """Stops before the next output is published."""
    WARN = "warn"
    """Raises an alert."""
    QUARANTINE = "quarantine"
    """Deletes the rows that fail, with the check as the reason."""


class Against(StrEnum):
    """From which day the age of data is counted."""

    TODAY = "today"
    PERIOD_END = "period_end"


class _Columns(Shape[tuple[str, ...]]):
    """A column, or a list of columns."""

    def read(self, node: Node) -> tuple[str, ...]:
        """The names."""
        if isinstance(node, ListNode):
            return ListOf(NAME, "columns", at_least=1).read(node)
        return (NAME.read(node),)

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """Either form."""
        many = ListOf(NAME, "columns", at_least=1).schema(definitions)
        return {"oneOf": [NAME.schema(definitions), many]}


class _Anchor(Shape[str]):
    """A step, by its seq, its name or the label of its breakpoint; `load` or `end`."""

    def read(self, node: Node) -> str:
        """The anchor as text."""
        value = scalar_value(node) if isinstance(node, ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, int | str) or not str(value).strip():
            raise refused(node, "the seq or the name of an operation, the label of a breakpoint, load or end")
        return str(value)

    def schema(self, _definitions: dict[str, JsonSchema]) -> JsonSchema:
        """A whole number or a string."""
        return {"oneOf": [{"type": "integer", "minimum": 0}, {"type": "string", "minLength": 1}]}


@record("a check")
class CheckBase(Located):
    """What all checks have."""

    kind: ClassVar[str]
    meaning: ClassVar[str]
    """What it requires, in a sentence for the reference."""
    of_rows: ClassVar[bool] = True
    """Whether single rows fail, so that they can be found and quarantined."""

    name: str = key(NAME, "The name, unique among the checks of a run; by default made of what it checks.", default="")
    description: str = key(TEXT, "Why it must be so.", default="")
    severity: Severity = key(
        Choice(Severity),
        "`fail` stops the run before the next output is published, `warn` raises an alert, `quarantine` deletes the "
        "rows that fail.",
        default=Severity.FAIL,
    )
    where: ExpressionText | None = key(
        SELECTOR, "Which rows are checked; by default all that are not deleted.", default=None
    )
    at: str = key(
        _Anchor(),
        "In a project: after which operation, by seq, name or breakpoint label; `load` for the rows as they were "
        "loaded. By default after the last one.",
        default=END,
    )

    @property
    def subject(self) -> str:
        """What is checked, in a few words."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """The name, or one made of what is checked."""
        return self.name or f"{self.kind} {self.subject}"

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """Other datasets that it reads."""
        return ()

    def text_at(self, text: str, *path: str) -> ExpressionText:
        """An expression that stands for what is written at a place."""
        node: Node = self.node
        for name in path:
            node = node.entries[name].value if isinstance(node, MapNode) and name in node.entries else node
        return ExpressionText(text, node)


def _column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(value: Scalar, type_: Type | None) -> str:
    """A value as a literal of the language. A day may be written in quotes."""
    is_day = isinstance(value, str) and type_ is not None and type_.kind in {Kind.DATE, Kind.TIMESTAMP}
    return f"DATE({text_of_value(value)})" if is_day else text_of_value(value)


@record("a not_null check")
class NotNull(CheckBase):
    """Columns that have a value in every row."""

    kind: ClassVar[str] = "not_null"
    meaning: ClassVar[str] = "Every row has a value in the column, or in each of the columns."

    columns: tuple[str, ...] = key(_Columns(), "The column, or a list of columns.", named="not_null")

    @property
    def subject(self) -> str:
        """The columns."""
        return ", ".join(self.columns)

    def failing(self, types: Mapping[str, Type]) -> ExpressionText:  # noqa: ARG002 - asked alike of all
        """When a row fails, given the types of columns."""
        return self.text_at(" OR ".join(f"{_column(name)} IS NULL" for name in self.columns), self.kind)


@record("a unique check")
class Unique(CheckBase):
    """Columns whose values together occur once."""

    kind: ClassVar[str] = "unique"
    meaning: ClassVar[str] = (
        "No two rows have the same values in the columns. Rows in which one of them is NULL are not compared."
    )

    columns: tuple[str, ...] = key(_Columns(), "The column, or a list of columns.", named="unique")

    @property
    def subject(self) -> str:
        """The columns."""
        return ", ".join(self.columns)


@record("the values of an in_set check")
class AllowedValues(Located):
    """A column and the values that it may have."""

    column: str = key(NAME, "The column.")
    values: tuple[Scalar, ...] = key(ListOf(ANY_SCALAR, "values", at_least=1), "The values that it may have.")


@record("an in_set check")
class InSet(CheckBase):
    """A column with a few allowed values."""

    kind: ClassVar[str] = "in_set"
    meaning: ClassVar[str] = "The column has one of the values, or none."

    in_set: AllowedValues = key(Record(AllowedValues), "The column and its values.")

    @property
    def subject(self) -> str:
        """The column."""
        return self.in_set.column

    def failing(self, types: Mapping[str, Type]) -> ExpressionText:
        """When a row fails, given the types of columns."""
        type_ = types.get(self.in_set.column)
        values = ", ".join(_literal(value, type_) for value in self.in_set.values)
        return self.text_at(f"NOT ({_column(self.in_set.column)} IN ({values}))", self.kind)


@record("the bounds of a range check")
class RangeBounds(Located):
    """A column and the smallest and largest value that it may have."""

    column: str = key(NAME, "The column.")
    min: Scalar = key(ANY_SCALAR, "The smallest value.", default=None)
    max: Scalar = key(ANY_SCALAR, "The largest value.", default=None)

    def check(self) -> Iterator[Diagnostic]:
        """One of both is there."""
        if self.min is None and self.max is None:
            yield INVALID_VALUE.at(self.span, problem="a range needs min, max or both", hint="add `min: 0`, say")


@record("a range check")
class Range(CheckBase):
    """A column between two bounds."""

    kind: ClassVar[str] = "range"
    meaning: ClassVar[str] = (
        "The column has a value from `min` to `max`, both included, or none. One of them is enough."
    )

    range: RangeBounds = key(Record(RangeBounds), "The column and its bounds.")

    @property
    def subject(self) -> str:
        """The column."""
        return self.range.column

    def failing(self, types: Mapping[str, Type]) -> ExpressionText:
        """When a row fails, given the types of columns."""
        column = _column(self.range.column)
        sides = [(self.range.min, "<"), (self.range.max, ">")]
        text = " OR ".join(
            f"{column} {sign} {_literal(bound, types.get(self.range.column))}"
            for bound, sign in sides
            if bound is not None
        )
        return self.text_at(text or f"{column} IS NULL", self.kind)


@record("the pattern of a pattern check")
class ColumnPattern(Located):
    """A column and the regular expression that is found in its values."""

    column: str = key(NAME, "The column.")
    matches: str = key(TEXT, "The regular expression; ^ and $ are the start and the end of the text.")


@record("a pattern check")
class PatternCheck(CheckBase):
    """A column of a certain form."""

    kind: ClassVar[str] = "pattern"
    meaning: ClassVar[str] = "The regular expression is found in the text of the column, or it has none."

    pattern: ColumnPattern = key(Record(ColumnPattern), "The column and its pattern.")

    @property
    def subject(self) -> str:
        """The column."""
        return self.pattern.column

    def failing(self, types: Mapping[str, Type]) -> ExpressionText:  # noqa: ARG002 - asked alike of all
        """When a row fails, given the types of columns."""
        text = f"NOT REGEX_MATCH({_column(self.pattern.column)}, {text_of_value(self.pattern.matches)})"
        return self.text_at(text, self.kind)


@record("an expression check")
class RowExpression(CheckBase):
    """A condition on each row."""

    kind: ClassVar[str] = "expression"
    meaning: ClassVar[str] = "The condition is not FALSE for any row. One that is NULL for a row passes."

    expression: ExpressionText = key(SELECTOR, "The condition; {{NAME}} is a named selector.")

    @property
    def subject(self) -> str:
        """The condition."""
        return " ".join(self.expression.value.split())


@record("a total")
class TotalTie(Located):
    """Two totals that are the same."""

    expression: ExpressionText = key(EXPRESSION, "A number over all rows, such as SUM(amount).")
    equals: ExpressionText = key(EXPRESSION, "The number that it must be, over all rows of `of` where that is given.")
    of: str | None = key(NAME, "The dataset that `equals` is calculated over; by default the same rows.", default=None)
    tolerance: Decimal = key(ToleranceShape(), "The largest difference that still ties.", default=Decimal(0))


class _OneTotal(Shape[ExpressionText]):
    """A condition over all rows."""

    def read(self, node: Node) -> ExpressionText:
        """The condition."""
        return EXPRESSION.read(node)

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """An expression."""
        return EXPRESSION.schema(definitions)


@record("a total check")
class Total(CheckBase):
    """A condition on all rows together."""

    kind: ClassVar[str] = "total"
    meaning: ClassVar[str] = (
        "The condition over all rows is TRUE; or two numbers are the same, the second perhaps over another dataset."
    )
    of_rows: ClassVar[bool] = False

    total: ExpressionText | TotalTie = key(
        TextOr(_OneTotal(), Record(TotalTie)), "A condition such as COUNT_ALL() > 0, or two numbers that must tie."
    )

    @property
    def subject(self) -> str:
        """The condition."""
        total = self.total
        if isinstance(total, ExpressionText):
            return " ".join(total.value.split())
        of = f" of {total.of}" if total.of else ""
        return f"{total.expression.value} = {total.equals.value}{of}"

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The dataset that the rows tie to."""
        total = self.total
        if isinstance(total, ExpressionText) or total.of is None:
            return ()
        node = total.node
        return (DatasetRef(dataset_id=total.of, node=node.entries["of"].value if isinstance(node, MapNode) else node),)


@record("the age of a freshness check")
class GreatestAge(Located):
    """A column with days, and how old the newest of them may be."""

    column: str = key(NAME, "A column with dates or timestamps.")
    days: int = key(Whole(0), "How many days the newest value may lie back.")
    before: Against = key(
        Choice(Against), "Counted back from the day of the run, or from the end of its period.", default=Against.TODAY
    )


@record("a freshness check")
class Freshness(CheckBase):
    """Data that is not older than some days."""

    kind: ClassVar[str] = "freshness"
    meaning: ClassVar[str] = "The newest value of the column is at most so many days old."
    of_rows: ClassVar[bool] = False

    freshness: GreatestAge = key(Record(GreatestAge), "The column and how old it may be.")

    @property
    def subject(self) -> str:
        """The column."""
        return self.freshness.column

    @property
    def condition(self) -> ExpressionText:
        """What must be true of all rows together."""
        age = self.freshness
        day = "TODAY()" if age.before is Against.TODAY else "PERIOD_END()"
        newest = f"MAX_AGG({_column(age.column)})"
        return self.text_at(f"{newest} >= DATEADD({day}, {-age.days})", self.kind)


@record("a complete check")
class Complete(CheckBase):
    """Rows of every period that a run for a longer one takes together."""

    kind: ClassVar[str] = "complete"
    meaning: ClassVar[str] = "Each period of the level that the period of the run has, such as its months, has rows."
    of_rows: ClassVar[bool] = False

    level: str = key(NAME, "The level of the calendar, such as month.", named="complete")

    @property
    def subject(self) -> str:
        """The level."""
        return self.level

    @property
    def condition(self) -> ExpressionText:
        """What must be true of all rows together."""
        level = text_of_value(self.level)
        within = f"""CONTAINS(PERIOD_LIST({level}), CONCAT(",", _period, ","))"""
        return self.text_at(f"COUNT_DISTINCT(IF({within}, _period, NULL)) = PERIOD_COUNT({level})", self.kind)


@record("a join")
class CheckedJoin(Located):
    """Another dataset, in which every row has to find a match."""

    alias: str = key(NAME, "The name that the condition puts before its columns.")
    dataset_id: str = key(NAME, "The id or name of the dataset.")
    dataset_version: int | None = key(Whole(1), "The version; by default the latest active one.", default=None)
    on: ExpressionText = key(EXPRESSION, "When a row of the dataset matches a row that is checked.")
    as_of: ExpressionText | None = key(
        EXPRESSION,
        "For a bitemporal dataset: the day whose rows are matched; by default the first day of the run's period.",
        default=None,
    )

    @property
    def dataset(self) -> DatasetRef:
        """The dataset that is joined."""
        return DatasetRef(dataset_id=self.dataset_id, dataset_version=self.dataset_version, node=self.node)


@record("a join_must_match check")
class JoinMustMatch(CheckBase):
    """Rows that find their match in another dataset."""

    kind: ClassVar[str] = "join_must_match"
    meaning: ClassVar[str] = (
        "Every row finds a match: in the dataset that is named, or, given the alias of a join, in the join of that "
        "update."
    )

    join: CheckedJoin | str = key(
        TextOr(NAME, Record(CheckedJoin)),
        "The alias of a join of an update, or a join: alias, dataset_id and on.",
        named="join_must_match",
    )

    @property
    def subject(self) -> str:
        """The alias."""
        return self.join if isinstance(self.join, str) else self.join.alias

    @property
    def datasets(self) -> tuple[DatasetRef, ...]:
        """The dataset of a join of its own."""
        return () if isinstance(self.join, str) else (self.join.dataset,)


@record("the columns of a schema check")
class ExpectedColumns(Located):
    """Columns with their types."""

    columns: Mapping[str, Type] = key(MapOf(COLUMN_TYPE, "types", at_least=1), "The type of each column, by name.")
    exact: bool = key(FLAG, "Whether there may be no other columns.", default=False)


@record("a schema check")
class SchemaCheck(CheckBase):
    """Columns that there must be."""

    kind: ClassVar[str] = "schema"
    meaning: ClassVar[str] = (
        "The rows have these columns with these types, and with `exact` no others. It is decided when the project is "
        "compiled."
    )
    of_rows: ClassVar[bool] = False

    expected: ExpectedColumns = key(Record(ExpectedColumns), "The columns.", named="schema")

    @property
    def subject(self) -> str:
        """The columns."""
        return ", ".join(self.expected.columns)


Check: TypeAlias = (
    NotNull
    | Unique
    | InSet
    | Range
    | PatternCheck
    | RowExpression
    | Total
    | Freshness
    | Complete
    | JoinMustMatch
    | SchemaCheck
)

CHECK_KINDS: Mapping[str, type[Check]] = {
    each.kind: each
    for each in (
        NotNull,
        Unique,
        InSet,
        Range,
        PatternCheck,
        RowExpression,
        Total,
        Freshness,
        Complete,
        JoinMustMatch,
        SchemaCheck,
    )
}
"""Every kind of check by its key."""

CHECK: ByKey[Check] = ByKey("a check", {kind: Record(each) for kind, each in CHECK_KINDS.items()})
CHECKS = ListOf(CHECK, "checks")
