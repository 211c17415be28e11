"""What a rule says about the texts in its files, as one value for every column.

Spark (`engine/loading/conversions`) and plain Python (`storage/text_values`) both read texts by these rules.
"""

from collections.abc import Mapping
from dataclasses import field
from datetime import date, datetime
from typing import Literal

from clew.deferred import dataclass
from clew.definitions import PathStrategy
from clew.definitions.file_reading import ColumnReading, ValueReading

BadRowsName = Literal["fail", "null", "quarantine"]


@dataclass(frozen=True, slots=True)
class TextRules:
    """How the values of a column are written."""

    formats: tuple[str, ...] = ()
    """Patterns of dates and timestamps; none for YYYY-MM-DD."""
    decimal_mark: str = "."
    thousands_mark: str = ""
    true_values: tuple[str, ...] = ("true",)
    """In small letters."""
    false_values: tuple[str, ...] = ("false",)
    nulls: tuple[str, ...] = ()
    trim: bool = False
    default: str | None = None
    """The value of rows that have none, as Clew writes values everywhere."""

    @property
    def has_marks(self) -> bool:
        """Whether numbers are written in another way than with a point."""
        return self.decimal_mark != "." or self.thousands_mark != ""


PLAIN = TextRules()
"""Values as Clew reads them where nothing is said."""


@dataclass(frozen=True, slots=True)
class FileRules:
    """The rules of all columns of a file."""

    columns: Mapping[str, TextRules] = field(default_factory=dict)
    """By column of the dataset."""
    others: TextRules = PLAIN
    """For columns that are not named."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """What the file calls columns, by column of the dataset, where that is another name."""
    positions: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """First character, counted from 1, and width of each column of a fixed_width file."""
    bad_rows: BadRowsName = "fail"

    def of(self, column: str) -> TextRules:
        """The rules of a column."""
        return self.columns.get(column, self.others)

    def source(self, column: str) -> str:
        """What the file calls a column."""
        return self.sources.get(column, column)


def rules_of(strategy: PathStrategy) -> FileRules:
    """What a strategy says."""
    is_fixed = strategy.file_format == "fixed_width"
    others = _rules(strategy.values, ValueReading(), None, trims=is_fixed)
    return FileRules(
        {name: _rules(each, strategy.values, each.default, trims=is_fixed) for name, each in strategy.columns.items()},
        others,
        {name: each.source for name, each in strategy.columns.items() if each.source is not None},
        {name: _position(each) for name, each in strategy.columns.items() if is_fixed},
        strategy.bad_rows.value,
    )


def _rules(own: ValueReading, general: ValueReading, default: object, *, trims: bool) -> TextRules:
    trim = own.trim if own.trim is not None else general.trim
    return TextRules(
        formats=own.format or general.format,
        decimal_mark=own.decimal_mark or general.decimal_mark or ".",
        thousands_mark=own.thousands_mark or general.thousands_mark or "",
        true_values=_folded(own.true_values or general.true_values) or ("true",),
        false_values=_folded(own.false_values or general.false_values) or ("false",),
        nulls=own.nulls or general.nulls,
        trim=trims if trim is None else trim,
        default=None if default is None else text_of_default(default),
    )


def _folded(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(word.lower() for word in words)


def _position(column: ColumnReading) -> tuple[int, int]:
    return column.start or 1, column.width or 1


def text_of_default(value: object) -> str:
    """A value of YAML as texts in files have it."""
    match value:
        case bool():
            return str(value).lower()
        case datetime() | date():
            return value.isoformat()
        case _:
            return str(value)
