"""An output on Spark: which rows it writes, as which columns. `clew.engine.output` writes them where they belong."""

from collections.abc import Iterator

from pyspark.sql import DataFrame

from clew.engine.creating import columns_looked_at
from clew.engine.expressing import Expressing
from clew.engine.names import named, row_id_sql
from clew.engine.sql import quoted
from clew.engine.suspects import Suspect, selector_suspects
from clew.plan.operations import CreatingStep, OutputStep

SELECTED = "__selected"
"""Whether an output takes a row, where that was decided below."""


def output_rows(rows: DataFrame, step: OutputStep, expressing: Expressing) -> DataFrame:
    """The rows that an output step selects. Deleted ones only where it opts in."""
    if SELECTED in rows.columns:
        return rows.where(SELECTED)
    if step.include_deleted and step.selector is None:
        return rows
    return rows.where(chosen_by(step, expressing))


def chosen_by(step: OutputStep, expressing: Expressing) -> str:
    """SQL that is TRUE for the rows that an output step selects."""
    if not step.include_deleted:
        return expressing.filter(step.selector)
    return expressing.sql(step.selector.tree) if step.selector is not None else "TRUE"


def output_columns(step: OutputStep, run_id: str) -> list[str]:
    """The columns that an output step writes, as SQL."""
    return [named(row_id_sql(run_id), name) if name == "_row_id" else quoted(name) for name in step.columns]


def has_all_that(creating: CreatingStep, output: OutputStep) -> bool:
    """Whether an output has all rows and columns that the step before it looks at."""
    has_all_rows = output.selector is None and not output.include_deleted and output.registers is None
    has_all_rows &= not (output.sorted_by or output.partition_by or output.file_per)
    return has_all_rows and columns_looked_at(creating) <= set(output.columns) - {"_row_id"}


def output_suspects(rows: DataFrame, step: OutputStep) -> Iterator[Suspect]:
    """Its selector, and what its files are called by."""
    there = rows if step.include_deleted else rows.where("NOT `_deleted`")
    yield from selector_suspects(step.selector, there)
    if step.file_per is not None:
        yield Suspect("file_per", step.file_per.tree, there)
