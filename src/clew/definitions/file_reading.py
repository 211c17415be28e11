"""How the values of a file are written: formats of dates, marks of numbers, words for true, false and no value.

These are keys of the path strategy of a resolver rule, not of a dataset. A dataset says what its columns mean, wherever
they come from; the same dataset may come as 31.12.2025 from one system and as 2026-01-31 from the one after it, by two
rules. So plans do not change when a file is delivered in another dress.
"""

from collections.abc import Iterator
from enum import StrEnum

from clew.deferred import dataclass
from clew.definitions.nodes import ListNode, Node
from clew.definitions.shapes import ANY_SCALAR, FLAG, TEXT, JsonSchema, Located, Shape, TextShape, Whole, key, record
from clew.definitions.yaml_scalars import Scalar
from clew.diagnostics import Diagnostic, UserError
from clew.diagnostics.codes.workspace import INVALID_VALUE
from clew.lang.moment_patterns import HINT, MomentPatternProblem, moment_pattern


class BadRows(StrEnum):
    """What happens to rows that are not as their dataset says."""

    FAIL = "fail"
    """The run fails and names the first."""
    NULL = "null"
    """Values that do not fit become NULL."""
    QUARANTINE = "quarantine"
    """They stay out of the run and are kept apart, with the reason."""


@dataclass(frozen=True, slots=True, eq=False)
class Texts(Shape[tuple[str, ...]]):
    """A text, or a list of them."""

    item: Shape[str]

    def read(self, node: Node) -> tuple[str, ...]:
        """The texts."""
        if not isinstance(node, ListNode):
            return (self.item.read(node),)
        problems, found = list[Diagnostic](), list[str]()
        for each in node.items:
            try:
                found.append(self.item.read(each))
            except UserError as error:
                problems += error.diagnostics
        if problems:
            raise UserError(*problems)
        return tuple(found)

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """A string or an array of them."""
        item = self.item.schema(definitions)
        return {"oneOf": [item, {"type": "array", "items": item}]}


class _Pattern(Shape[str]):
    """A pattern of dates or timestamps."""

    def read(self, node: Node) -> str:
        """The pattern as it is written."""
        text = TEXT.read(node)
        try:
            moment_pattern(text)
        except MomentPatternProblem as problem:
            raise UserError(INVALID_VALUE.at(node.span, problem=str(problem), hint=HINT)) from None
        return text

    def schema(self, definitions: dict[str, JsonSchema]) -> JsonSchema:
        """A string."""
        return {**TEXT.schema(definitions), "examples": ["dd.MM.yyyy", "yyyy-MM-dd HH:mm:ss"]}


_MARK = TextShape("one character", r"[^0-9A-Za-z+\-]", "one character that is no letter, digit or sign")
_TEXTS = Texts(TEXT)


@record("how values are written")
class ValueReading(Located):
    """How values are written in a file; what is left out is as Clew reads values everywhere."""

    format: tuple[str, ...] = key(
        Texts(_Pattern()), "The pattern of dates and timestamps, such as dd.MM.yyyy, or several to try.", default=()
    )
    decimal_mark: str | None = key(
        _MARK, "What stands before the fraction of a number; by default a point.", default=None
    )
    thousands_mark: str | None = key(
        _MARK, "What stands between groups of three digits; by default nothing.", default=None
    )
    true_values: tuple[str, ...] = key(
        _TEXTS, "The words for true, in small or capital letters; by default true.", default=()
    )
    false_values: tuple[str, ...] = key(
        _TEXTS, "The words for false, in small or capital letters; by default false.", default=()
    )
    nulls: tuple[str, ...] = key(_TEXTS, "Texts that stand for no value, besides an empty field.", default=())
    trim: bool | None = key(FLAG, "Whether blanks around a value are left out.", default=None)

    def check(self) -> Iterator[Diagnostic]:
        """The two marks are not the same."""
        if self.thousands_mark is not None and self.thousands_mark == (self.decimal_mark or "."):
            problem = f'"{self.thousands_mark}" cannot be both the thousands mark and the decimal mark'
            place = self.place("thousands_mark")
            yield INVALID_VALUE.at(place, problem=problem, hint="set decimal_mark to the other one")


@record("a column of a file")
class ColumnReading(ValueReading):
    """How the values of one column are written, and where in the file they are."""

    source: str | None = key(
        TEXT, "The name of the column in the file; by default that of the column.", named="from", default=None
    )
    default: Scalar = key(ANY_SCALAR, "The value of rows that have none.", default=None)
    start: int | None = key(
        Whole(1), "In a fixed_width file: the position of its first character, counted from 1.", default=None
    )
    width: int | None = key(Whole(1), "In a fixed_width file: how many characters it has.", default=None)
