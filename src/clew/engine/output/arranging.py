"""The order of the rows of an output, and which of them share a file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import PurePosixPath

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from clew.engine.expressing import Expressing
from clew.engine.output.conflicts import conflict
from clew.engine.output.places import StagedPiece
from clew.engine.sql import quoted
from clew.plan.operations import OutputStep
from clew.storage.parts import ORDINAL

FILE = "__file"
"""The column with what a file is called, where an output has one file for each value of an expression."""

_OF_NULL = "_NULL"
_NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"
"""What Spark calls the folder of rows without a value."""
_PART = ".c000"
"""Ends the names that Spark gives to files; the suffix stands behind it."""


def arranged(rows: DataFrame, step: OutputStep, expressing: Expressing, *, has_one_writer: bool) -> DataFrame:
    """The rows in the order that the step asks for, with those of one file or partition together."""
    if step.file_per is not None:
        rows = rows.withColumn(FILE, F.expr(f"CAST({expressing.sql(step.file_per.tree)} AS STRING)"))
    together = [F.col(quoted(name)) for name in folders_of(step)]
    order = [*(_ordered(key.column, key.descending) for key in step.sorted_by), F.col(ORDINAL).asc()]
    if together:
        return rows.repartition(*together).sortWithinPartitions(*together, *order)
    if not step.sorted_by:
        return rows
    if has_one_writer:
        return rows.repartition(1).sortWithinPartitions(*order)
    # Spark looks at a sample of the rows before it sorts them. Behind a shuffle it computes nothing twice for that, and
    # what counts rows on the way, for checks and control totals, does not count them once more.
    return rows.repartition(F.col(ORDINAL)).sort(*order)


def folders_of(step: OutputStep) -> tuple[str, ...]:
    """The columns by whose values Spark makes folders."""
    return step.partition_by if step.file_per is None else (FILE,)


def named_by_value(pieces: Sequence[StagedPiece], step: OutputStep, shown: str) -> list[StagedPiece]:
    """Files with the names that they get by the value of the expression that each is for."""
    if step.file_per is None:
        return list(pieces)
    known = set[str]()
    named = list[StagedPiece]()
    for piece in pieces:
        folder, _, name = piece.name.rpartition("/")
        value = folder.partition("=")[2]
        suffix = name.partition(_PART)[2] or PurePosixPath(name).suffix
        if step.destination.format == "jsonl":
            suffix = suffix.replace(".json", ".jsonl")
        published = f"{_OF_NULL if value == _NULL_FOLDER else value}{suffix}"
        if published.casefold() in known:
            problem = f"cannot write {shown}: two values of {step.file_per.text} would make the file {published}"
            raise conflict(step, problem, "names of files do not tell upper and lower case apart everywhere")
        known.add(published.casefold())
        named.append(replace(piece, published=published))
    return named


def _ordered(column: str, descending: bool) -> Column:
    found = F.col(quoted(column))
    return found.desc_nulls_last() if descending else found.asc_nulls_first()
