"""Rows as they were read, before anything was checked: the form that all kinds of sources share."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from clew.lang.types import Type
from clew.spark.loading.conversion import value_of_text
from clew.spark.loading.exact import value_of_typed
from clew.spark.loading.lines import LineTotals

BROKEN = "__broken"
"""The column with the reason why a line cannot be read, in words; NULL for good ones."""


@dataclass(frozen=True, slots=True)
class TextCell:
    """The value of a column as text."""

    sql: str
    """SQL over the rows as read."""

    def value(self, raw: str, target: Type) -> str:
        """SQL for the value of what was read; NULL where the text does not have one."""
        return value_of_text(raw, target)


@dataclass(frozen=True, slots=True)
class TypedCell:
    """The value of a column in a type of Spark that can serve the dataset's."""

    sql: str
    type: str

    def value(self, raw: str, target: Type) -> str:
        """SQL for the value of what was read; NULL where it does not fit."""
        return value_of_typed(raw, self.type, target)


Cell = TextCell | TypedCell


@dataclass(frozen=True, slots=True)
class RawRows:
    """Rows with `__source_file`, `__source_line`, `BROKEN`, and the columns that the cells read."""

    rows: DataFrame
    cells: Mapping[str, Cell]
    """By column of the dataset."""
    expected: LineTotals | None = None
    """What a first pass over the lines counted."""
